"""A graph is checked as a whole before it ever runs."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from dialoom.base.errors import UsageError
from dialoom.graph import (
    END,
    START,
    GraphBuilder,
    GraphBuildError,
    GraphProblem,
    MemoryCheckpointStore,
    NodeContext,
    Reducers,
)
from dialoom.graph.compile_draft import is_async


def problems(describe: Callable[[GraphBuilder], object]) -> list[tuple[str, str]]:
    builder = GraphBuilder("broken")
    describe(builder)
    with pytest.raises(GraphBuildError) as refused:
        builder.build()
    return [(problem.code, problem.where) for problem in refused.value.problems]


def nothing(_: NodeContext) -> None: ...


async def nothing_async(_: NodeContext) -> None: ...


def start_with(builder: GraphBuilder, *names: str) -> None:
    for name in names:
        builder.add_node(name, nothing)
        builder.add_edge(START, name)


def test_all_problems_are_named_at_once_in_one_line() -> None:
    builder = GraphBuilder("broken")
    builder.add_channel("text")
    builder.add_channel("text")
    builder.add_node("a", nothing)
    builder.add_edge("a", "b")
    with pytest.raises(GraphBuildError) as refused:
        builder.build()
    assert refused.value.problems == (
        GraphProblem("duplicate-channel", "channel 'text'", "added 2 times; keep one"),
        GraphProblem("unknown-node", "edge 'a' -> 'b'", "there is no node 'b'"),
    )
    assert str(refused.value) == (
        "graph 'broken' has 2 problems: [duplicate-channel] channel 'text': added 2 times; keep one;"
        " [unknown-node] edge 'a' -> 'b': there is no node 'b'"
    )
    assert refused.value.code == "graph_build"


def test_a_join_is_between_nodes() -> None:
    builder = GraphBuilder("broken")
    start_with(builder, "a")
    builder.add_join(["a"], END)
    with pytest.raises(
        GraphBuildError, match=r"\[bad-join\] .*: a join is between nodes, and not from START"
    ):
        builder.build()


@pytest.mark.parametrize("store", ["store.db", MemoryCheckpointStore, 5])
def test_the_name_of_a_file_is_no_store(store: Any) -> None:
    builder = GraphBuilder("named")
    start_with(builder, "a")
    with pytest.raises(
        UsageError, match=r"is no store; give one, such as SqliteCheckpointStore\('store.db'\)"
    ):
        builder.build(store)


def test_one_problem_is_counted_as_one() -> None:
    with pytest.raises(GraphBuildError, match=r"^graph 'empty' has 1 problem: \[no-nodes\]"):
        GraphBuilder("empty").build()


@pytest.mark.parametrize("name", ["", "two\nlines", "x" * 201, "\ud800"])
def test_a_name_is_one_printable_line(name: str) -> None:
    assert [code for code, _ in problems(lambda b: start_with(b, name))] == ["bad-name"]
    assert [code for code, _ in problems(lambda b: (start_with(b, "a"), b.add_channel(name)))] == ["bad-name"]


@pytest.mark.parametrize("name", ["a,b", "a b", "节点", "x/y:z", "node[1]#2"])
def test_any_other_name_is_fine(name: str) -> None:
    builder = GraphBuilder(name)
    builder.add_channel("said", Reducers.append)
    builder.add_node(name, lambda ctx: {"said": [ctx.node]})
    builder.add_edge(START, name)
    assert builder.build().run_sync().state == {"said": [name]}


def test_start_and_end_are_no_names_for_nodes() -> None:
    def describe(builder: GraphBuilder) -> None:
        start_with(builder, "a")
        builder.add_node(START, nothing)
        builder.add_channel(END)

    assert problems(describe) == [
        ("reserved-name", "channel '__end__'"),
        ("reserved-name", "node '__start__'"),
    ]


def test_a_node_is_added_once_and_can_be_called() -> None:
    def describe(builder: GraphBuilder) -> None:
        start_with(builder, "a", "a")
        builder.add_node("b", "not a function")  # type: ignore[arg-type]
        builder.add_edge("a", "b")

    assert problems(describe) == [("duplicate-node", "node 'a'"), ("bad-node", "node 'b'")]


def test_a_channel_has_a_reducer_a_type_that_can_be_checked_and_a_default_that_fits() -> None:
    def describe(builder: GraphBuilder) -> None:
        start_with(builder, "a")
        builder.add_channel("reducer", max)  # type: ignore[arg-type]
        builder.add_channel("type", type="no type")
        builder.add_channel("default", type=int, default="x")
        builder.add_channel("list", Reducers.append, default="x")
        builder.add_channel("fine", type=int | None, default=None)

    assert problems(describe) == [
        ("bad-reducer", "channel 'reducer'"),
        ("bad-type", "channel 'type'"),
        ("bad-default", "channel 'default'"),
        ("bad-default", "channel 'list'"),
    ]


def test_edges_join_nodes_that_are_there() -> None:
    def describe(builder: GraphBuilder) -> None:
        start_with(builder, "a")
        builder.add_edge("ghost", "a")
        builder.add_edge("a", "ghost")
        builder.add_edge(END, "a")
        builder.add_edge("a", START)

    assert problems(describe) == [
        ("unknown-node", "edge 'ghost' -> 'a'"),
        ("unknown-node", "edge 'a' -> 'ghost'"),
        ("edge-from-end", "edge '__end__' -> 'a'"),
        ("edge-to-start", "edge 'a' -> '__start__'"),
    ]


def test_conditional_edges_lead_to_nodes_that_are_there_and_are_plain_functions() -> None:
    async def late(_: object) -> str:
        return "a"

    def describe(builder: GraphBuilder) -> None:
        start_with(builder, "a")
        builder.add_conditional_edges("ghost", lambda _: "x", {"x": "nowhere", "y": END}, default="void")
        builder.add_conditional_edges("a", late)  # type: ignore[arg-type]
        builder.add_conditional_edges("a", "text")  # type: ignore[arg-type]

    assert problems(describe) == [
        ("unknown-node", "conditional edges of 'ghost'"),
        ("unknown-node", "conditional edges of 'ghost'"),
        ("unknown-node", "conditional edges of 'ghost'"),
        ("bad-route", "conditional edges of 'a'"),
        ("bad-route", "conditional edges of 'a'"),
    ]


def test_a_run_has_to_begin_somewhere() -> None:
    assert problems(lambda b: b.add_node("a", nothing)) == [("no-start", "graph 'broken'")]


def test_a_node_that_no_path_leads_to_is_a_mistake_unless_it_is_marked_dynamic() -> None:
    """G23."""

    def describe(builder: GraphBuilder) -> None:
        start_with(builder, "a")
        builder.add_node("island", nothing)
        builder.add_node("beyond", nothing)
        builder.add_edge("island", "beyond")

    assert problems(describe) == [("unreachable", "node 'island'"), ("unreachable", "node 'beyond'")]
    builder = GraphBuilder("fine")
    start_with(builder, "a")
    builder.add_node("island", nothing, dynamic=True)
    builder.add_node("beyond", nothing)
    builder.add_edge("island", "beyond")
    assert builder.build().run_sync().stop_reason == "finished"


def test_targets_and_defaults_of_conditional_edges_count_as_paths() -> None:
    builder = GraphBuilder("paths")
    start_with(builder, "a")
    for name in ("b", "c", "d"):
        builder.add_node(name, nothing)
    builder.add_conditional_edges("a", lambda _: "x", {"x": "b"}, default="c")
    builder.add_conditional_edges("c", lambda _: END)
    assert builder.build().name == "paths"


def test_a_built_graph_does_not_change_when_its_builder_does() -> None:
    builder = GraphBuilder("early")
    builder.add_channel("said", Reducers.append)
    builder.add_node("a", lambda _: {"said": ["a"]})
    builder.add_edge(START, "a")
    early = builder.build()
    builder.add_node("b", lambda _: {"said": ["b"]})
    builder.add_edge("a", "b")
    late = builder.build()
    assert early.run_sync().state == {"said": ["a"]}
    assert late.run_sync().state == {"said": ["a", "b"]}
    assert early.fingerprint != late.fingerprint
    assert repr(early) == "<Graph 'early' 1 nodes>"


def test_the_same_description_has_the_same_fingerprint_whatever_its_code() -> None:
    def build(answer: str, reducer: object = Reducers.append) -> str:
        builder = GraphBuilder("twin")
        builder.add_channel("said", reducer)  # type: ignore[arg-type]
        builder.add_node("a", lambda _: {"said": [answer]})
        builder.add_conditional_edges(START, lambda _: answer, {"x": "a"}, default=END)
        return builder.build().fingerprint

    assert build("one") == build("two")
    assert build("one") != build("one", Reducers.overwrite)


def test_async_functions_are_known_however_they_are_wrapped() -> None:
    class Callable_:  # noqa: N801
        async def __call__(self, ctx: NodeContext) -> None: ...

        async def method(self, ctx: NodeContext) -> None: ...

    async def with_extra(_: int, ctx: NodeContext) -> None: ...

    awaited = [nothing_async, Callable_(), Callable_().method, partial(partial(with_extra), 1)]
    assert [is_async(fn) for fn in awaited] == [True] * 4
    assert [is_async(fn) for fn in (nothing, lambda _: None, partial(nothing), print)] == [False] * 4
