"""What a write does to a channel, and what is refused."""

from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.graph import (
    START,
    AppendLog,
    Graph,
    GraphBuilder,
    MemoryCheckpointStore,
    NodeContext,
    NodeError,
    Reducer,
    Reducers,
    State,
)
from dialoom.graph.channels import UNSET


def one_write(reducer: Reducer, *, old: Any, new: Any, type: Any = None) -> Graph:  # noqa: A002
    """A graph whose channel holds `old` and whose node writes `new`."""
    builder = GraphBuilder("one write")
    builder.add_channel("cell", reducer, type=type, default=old)
    builder.add_node("write", lambda _: {"cell": new}, blocking=False)
    builder.add_edge(START, "write")
    return builder.build()


@pytest.mark.promise("graph-007")
def test_overwrite_keeps_the_newest_write() -> None:
    assert one_write(Reducers.overwrite, old=1, new=2).run_sync().state == {"cell": 2}


@pytest.mark.promise("graph-008")
def test_append_adds_behind_what_is_there() -> None:
    assert one_write(Reducers.append, old=[1], new=(2, 3)).run_sync().state == {"cell": [1, 2, 3]}


@pytest.mark.promise("graph-009")
def test_merge_lays_keys_over_what_is_there() -> None:
    graph = one_write(Reducers.merge, old={"a": 1, "b": 1}, new=MappingProxyType({"b": 2, "c": 2}))
    assert graph.run_sync().state == {"cell": {"a": 1, "b": 2, "c": 2}}


@pytest.mark.promise("graph-010")
def test_a_custom_reducer_combines_old_and_new() -> None:
    assert one_write(Reducers.custom(max), old=5, new=3).run_sync().state == {"cell": 5}


def test_a_custom_reducer_without_default_takes_the_first_write_as_it_is() -> None:
    builder = GraphBuilder("sum")
    builder.add_channel("total", Reducers.custom(lambda old, new: old + new, name="sum"))
    builder.add_node("a", lambda _: {"total": 2})
    builder.add_node("b", lambda _: {"total": 3})
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    graph = builder.build()
    assert graph.run_sync().state == {"total": 5}
    assert graph.run_sync({"total": 10}).state == {"total": 15}


def test_reducers_have_names_for_those_who_look_at_them() -> None:
    assert [Reducers.overwrite.name, Reducers.append.name, Reducers.merge.name] == [
        "overwrite",
        "append",
        "merge",
    ]
    assert Reducers.custom(max).name == "max"
    assert Reducers.custom(lambda old, _: old, name="first").name == "first"


@pytest.mark.parametrize(
    ("reducer", "old", "new", "type_", "reason"),
    [
        (Reducers.overwrite, 1, "foo", int, "Expected `int`, got `str`"),
        (Reducers.append, [], ["a", 1], list[str], "Expected `str`, got `int` - at `$[1]`"),
        (Reducers.append, [], "abc", None, "append takes a list of items, not str; write [item]"),
        (Reducers.merge, {}, [1], None, "merge takes a mapping of keys to lay over, not list"),
        (Reducers.merge, {}, {"a": "x"}, dict[str, int], "Expected `int`, got `str` - at `$[...]`"),
        (Reducers.custom(max), 1, "x", None, "'>' not supported between instances of 'str' and 'int'"),
    ],
)
def test_a_write_that_does_not_fit_names_node_channel_and_reason(
    reducer: Reducer, old: Any, new: Any, type_: Any, reason: str
) -> None:
    """G27."""
    result = one_write(reducer, old=old, new=new, type=type_).run_sync()
    assert result.stop_reason == "error"
    assert result.errors == (NodeError(node="write", message=f"write to channel 'cell' refused: {reason}"),)
    assert result.state == {"cell": old}


def test_an_unknown_channel_is_an_error_that_lists_the_channels() -> None:
    """G27."""
    builder = GraphBuilder("typo")
    builder.add_channel("text")
    builder.add_channel("count")
    builder.add_node("write", lambda _: {"txet": 1})
    builder.add_edge(START, "write")
    result = builder.build().run_sync()
    message = "write to channel 'txet' refused: there is no such channel; the graph has: count, text"
    assert result.errors == (NodeError(node="write", message=message),)


def test_nothing_of_a_superstep_with_a_bad_write_is_committed() -> None:
    store = MemoryCheckpointStore()
    builder = GraphBuilder("all or nothing")
    builder.add_channel("log", Reducers.append)
    builder.add_channel("n", type=int)
    builder.add_node("good", lambda _: {"log": ["good"]})
    builder.add_node("bad", lambda _: {"log": ["bad"], "n": "foo"})
    builder.add_edge(START, "good")
    builder.add_edge(START, "bad")
    graph = builder.build(store)
    result = graph.run_sync({"log": ["input"]})
    assert (result.state, result.steps) == ({"log": ["input"]}, 0)
    assert [kept.state for kept in graph.history(result.thread_id)] == [{"log": ["input"]}]


def test_a_bad_input_is_an_error_of_start_and_begins_nothing() -> None:
    store = MemoryCheckpointStore()
    builder = GraphBuilder("strict")
    builder.add_channel("n", type=int)
    builder.add_node("never", lambda _: {"n": 1})
    builder.add_edge(START, "never")
    result = builder.build(store).run_sync({"n": "x"})
    message = "write to channel 'n' refused: Expected `int`, got `str`"
    assert (result.stop_reason, result.errors) == ("error", (NodeError(node=START, message=message),))
    assert result.checkpoint_id is None
    assert list(store.threads()) == []


def test_a_default_that_was_not_given_says_so() -> None:
    assert repr(UNSET) == "UNSET"


def test_a_value_that_holds_itself_does_not_get_in() -> None:
    endless: list[Any] = []
    endless.append(endless)
    result = one_write(Reducers.overwrite, old=None, new=endless).run_sync()
    assert "nested deeper than 100 levels" in result.errors[0].message


class Point(msgspec.Struct, frozen=True):
    x: int


def test_a_typed_channel_makes_its_type_of_what_fits_it() -> None:
    given = Point(2)
    graph = one_write(Reducers.append, old=[], new=[{"x": 1}, given], type=list[Point])
    assert graph.run_sync().state["cell"] == [Point(1), Point(2)]
    assert graph.run_sync().state["cell"][1] is given


def test_channels_begin_with_their_default_or_empty_or_without_a_value() -> None:
    seen: list[State] = []
    builder = GraphBuilder("first values")
    builder.add_channel("plain")
    builder.add_channel("five", default=5)
    builder.add_channel("list", Reducers.append)
    builder.add_channel("given", Reducers.append, default=["x"])
    builder.add_channel("dict", Reducers.merge)
    builder.add_node("look", lambda ctx: seen.append(ctx.state))
    builder.add_edge(START, "look")
    builder.build().run_sync()
    assert seen == [{"five": 5, "list": [], "given": ["x"], "dict": {}}]
    assert isinstance(seen[0]["given"], AppendLog)


def test_what_a_node_read_it_may_write_elsewhere() -> None:
    builder = GraphBuilder("copy")
    builder.add_channel("log", Reducers.append)
    builder.add_channel("copy", type=list[str])
    builder.add_node("copy", lambda ctx: {"copy": ctx.state["log"]})
    builder.add_edge(START, "copy")
    assert builder.build().run_sync({"log": ["a"]}).state == {"log": ["a"], "copy": ["a"]}


def test_a_node_that_changes_what_it_reads_fails_and_nobody_else_notices() -> None:
    """G25."""
    mine = {"items": [1], "facts": {"a": [1]}, "log": [[1]]}

    def meddle(ctx: NodeContext) -> None:
        with pytest.raises(TypeError, match="read-only"):
            ctx.state["facts"]["a"].append(2)
        with pytest.raises(TypeError, match="read-only"):
            ctx.state["log"][0].append(2)
        with pytest.raises(TypeError, match="read-only"):
            ctx.state["facts"] = {}  # type: ignore[index]
        ctx.state["items"].append(2)

    builder = GraphBuilder("meddle")
    builder.add_channel("items")
    builder.add_channel("facts", Reducers.merge)
    builder.add_channel("log", Reducers.append)
    builder.add_node("meddle", meddle)
    builder.add_edge(START, "meddle")
    result = builder.build().run_sync(mine)
    assert "state is read-only" in result.errors[0].message
    assert result.state == mine == {"items": [1], "facts": {"a": [1]}, "log": [[1]]}


def test_what_a_node_returned_it_cannot_change_afterwards() -> None:
    kept: list[int] = [1]
    builder = GraphBuilder("kept")
    builder.add_channel("items")
    builder.add_node("write", lambda _: {"items": kept})
    builder.add_node("later", lambda _: kept.append(2))
    builder.add_edge(START, "write")
    builder.add_edge("write", "later")
    assert builder.build().run_sync().state == {"items": [1]}
    assert kept == [1, 2]


def written(reducer: Reducer, *writes: Any) -> Any:
    builder = GraphBuilder("writes")
    builder.add_channel("cell", reducer)
    for at, write in enumerate(writes):
        builder.add_node(f"n{at}", lambda _, write=write: {"cell": write})
        builder.add_edge(START, f"n{at}")
    return builder.build().run_sync().state["cell"]


def test_sum_adds_and_begins_at_zero() -> None:
    assert written(Reducers.sum, 1, 2.5, -4) == -0.5


def test_set_union_holds_each_item_once() -> None:
    assert written(Reducers.set_union, ["a", "b"], {"b", "c"}) == frozenset("abc")


@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers()), max_size=5), min_size=1, max_size=4))
def test_upsert_keeps_the_newest_item_of_each_id_in_the_place_of_the_first(
    writes: list[list[tuple[int, int]]],
) -> None:
    newest = {id_: value for write in writes for id_, value in write}
    items = [[{"id": id_, "value": value} for id_, value in write] for write in writes]
    assert written(Reducers.upsert("id"), *items) == [{"id": id_, "value": newest[id_]} for id_ in newest]


class Note(msgspec.Struct, frozen=True):
    id: str
    text: str = ""


def test_an_upserted_item_is_removed_by_its_id_and_one_that_is_not_there_is_no_matter() -> None:
    first = [Note("a"), Note("b"), Note("c")]
    then = [Reducers.remove("b"), Reducers.remove("nobody"), Note("a", "new")]
    assert written(Reducers.upsert("id"), first, then) == [Note("a", "new"), Note("c")]
