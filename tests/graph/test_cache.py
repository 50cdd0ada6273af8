"""Nodes that are not run again for what they have seen already."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.graph import (
    START,
    Graph,
    GraphBuilder,
    MemoryNodeCache,
    NodeContext,
    NodeResult,
    Reducers,
    cached,
)
from dialoom.testing import ManualClock


class Calls:
    """Counts how often its nodes really run."""

    def __init__(self, output: Callable[[NodeContext], Any] = lambda ctx: {"out": [ctx.state["a"]]}) -> None:
        self.count = 0
        self._output = output

    def plain(self, ctx: NodeContext) -> Any:
        self.count += 1
        return self._output(ctx)

    async def waiting(self, ctx: NodeContext) -> Any:
        return self.plain(ctx)


def graph_of(node: Any, name: str = "node") -> Graph:
    """A graph with channels `a` and `b`, and `node` in it."""
    builder = GraphBuilder("cached")
    builder.add_channel("a")
    builder.add_channel("b")
    builder.add_channel("out", Reducers.append)
    builder.add_node(name, node)
    builder.add_edge(START, name)
    return builder.build()


def same_key(one: Any, other: Any) -> bool:
    """Whether a node that was given `one` takes its answer for `other` from the cache."""
    calls = Calls(lambda _: None)
    graph = graph_of(cached(calls.plain, MemoryNodeCache(), name="n"))
    for value in (one, other):
        assert graph.run_sync({"a": value}).stop_reason == "finished"
    return calls.count == 1


@pytest.mark.parametrize("way", ["plain", "waiting"])
def test_a_node_runs_once_for_each_of_its_inputs(way: str) -> None:
    calls = Calls()
    graph = graph_of(cached(getattr(calls, way), MemoryNodeCache(), name="n"))
    assert [graph.run_sync({"a": a}).state["out"] for a in (1, 2, 1, 2)] == [[1], [2], [1], [2]]
    assert calls.count == 2


def test_only_the_channels_it_reads_count() -> None:
    calls = Calls()
    graph = graph_of(cached(calls.plain, MemoryNodeCache(), name="n", reads=["a"]))
    for b in (1, 2, 3):
        graph.run_sync({"a": 1, "b": b})
    assert calls.count == 1


def test_an_answer_is_kept_for_its_seconds_and_while_there_is_room() -> None:
    clock, calls = ManualClock(), Calls()
    graph = graph_of(cached(calls.plain, MemoryNodeCache(2, clock=clock), name="n", seconds=10))
    graph.run_sync({"a": 1})
    clock._now += 9.9
    graph.run_sync({"a": 1})
    assert calls.count == 1
    clock._now += 0.1
    graph.run_sync({"a": 1})
    assert calls.count == 2
    for a in (2, 1, 3, 1, 2):
        graph.run_sync({"a": a})
    assert calls.count == 5


def test_what_a_node_was_sent_is_part_of_its_input() -> None:
    calls = Calls(lambda ctx: ctx.input * 2)
    builder = GraphBuilder("map")
    builder.add_channel("items", default=[1, 2, 1])
    builder.add_channel("twice")
    node = cached(calls.plain, MemoryNodeCache(), name="n", reads=[])
    builder.add_map("double", node, over="items", into="twice", max_concurrency=1)
    builder.add_edge(START, "double")
    assert builder.build().run_sync().state["twice"] == [2, 4, 2]
    assert calls.count == 2


def test_a_failure_is_not_kept_and_a_result_keeps_its_goto() -> None:
    answers = iter([NodeResult.fail("no luck"), NodeResult.ok({"out": [1]}, goto="__end__")])
    calls = Calls(lambda _: next(answers))
    graph = graph_of(cached(calls.plain, MemoryNodeCache(), name="n"))
    assert [graph.run_sync({"a": 1}).stop_reason for _ in range(3)] == ["error", "finished", "finished"]
    assert graph.run_sync({"a": 1}).state["out"] == [1]
    assert calls.count == 2


def test_what_is_kept_cannot_be_changed_by_the_node_that_gave_it() -> None:
    mine: list[int] = [1]
    calls = Calls(lambda _: {"out": mine})
    graph = graph_of(cached(calls.plain, MemoryNodeCache(), name="n"))
    graph.run_sync({"a": 1})
    mine.append(2)
    assert graph.run_sync({"a": 1}).state["out"] == [1]


def test_nodes_and_functions_that_share_a_cache_are_told_apart() -> None:
    cache, calls = MemoryNodeCache(), Calls()
    for name, node in (("x", "n"), ("n", "x"), ("n,x", "n"), ("n", "x,n"), ("n", "x")):
        graph_of(cached(calls.plain, cache, name=name), node).run_sync({"a": 1})
    assert calls.count == 4


@dataclass(frozen=True)
class Point:
    x: Any


@dataclass(frozen=True)
class Pixel:
    x: int


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        ("1", 1),
        ("a", b"a"),
        ([1, 2], (1, 2)),
        (["a", "b"], ["a,b"]),
        (["list", []], [[]]),
        ({"a": [1]}, [["a", [1]]]),
        ({1, 2}, [1, 2]),
        (2**70, str(2**70)),
        (Point(1), Pixel(1)),
        (Point(1), {"x": 1}),
        (None, []),
    ],
)
def test_inputs_that_differ_never_share_an_answer(one: Any, other: Any) -> None:
    assert not same_key(one, other)
    assert same_key(one, one)


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.sets(scalars)
    ),
    max_leaves=6,
)


@given(values, values)
def test_any_two_inputs_share_an_answer_only_when_they_are_the_same(one: Any, other: Any) -> None:
    assert same_key(one, one)
    if one != other:
        assert not same_key(one, other)


def test_the_order_of_keys_is_no_difference() -> None:
    assert same_key({"a": 1, "b": {"x", "y", "z"}}, {"b": {"z", "y", "x"}, "a": 1})


def test_input_that_cannot_be_told_apart_is_an_error_with_the_node() -> None:
    deep: list[Any] = []
    for _ in range(150):
        deep = [deep]
    calls = Calls()
    graph = graph_of(cached(calls.plain, MemoryNodeCache(), name="n"))
    (error,) = graph.run_sync({"a": object()}).errors
    assert error.message == (
        "UsageError: node 'node' cannot be cached: Encoding objects of type object is unsupported;"
        " name the channels it needs in reads="
    )
    (error,) = graph.run_sync({"a": Point(deep)}).errors
    assert "its input is nested deeper than 100 levels" in error.message
    assert calls.count == 0


def named(_: NodeContext) -> None: ...


def test_a_function_without_a_name_of_its_own_must_be_given_one() -> None:
    cache = MemoryNodeCache()
    assert graph_of(cached(named, cache)).run_sync({"a": 1}).stop_reason == "finished"
    for nameless in (lambda _: None, partial(named), Calls().plain):
        with pytest.raises(
            UsageError, match="has no name that tells it from others in the cache; give it one"
        ):
            cached(nameless, cache)
    with pytest.raises(UsageError, match="size is 0; give 1 or more outputs"):
        MemoryNodeCache(0)
