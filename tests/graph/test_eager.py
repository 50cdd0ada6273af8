"""`schedule="eager"`: a node does not wait for the slow ones beside the node it follows (G20)."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.graph import (
    END,
    START,
    CheckpointStore,
    Graph,
    GraphBuilder,
    MemoryCheckpointStore,
    NodeBegin,
    NodeContext,
    NodeResult,
    Reducers,
    ResumeCommand,
    RunControl,
    RunFinished,
    RunOptions,
    StepCommitted,
)
from dialoom.graph.options import Schedule
from dialoom.testing.clock import ManualClock, settle
from tests.graph.graphs import Heard
from tests.graph.test_replay import WRITES, graph_of, plans

EAGER = RunOptions(schedule="eager")


class Naps:
    """Nodes that take their time on a manual clock and say when they were through, in tenths of a second."""

    def __init__(self) -> None:
        self.clock = ManualClock(0.0)
        self.through: list[tuple[str, int]] = []
        self.begun: list[str] = []

    def node(self, name: str, tenths: int, **more: Any) -> Callable[[NodeContext], Any]:
        async def nap(ctx: NodeContext) -> NodeResult:
            self.begun.append(name)
            await self.clock.sleep(tenths / 10)
            self.through.append((name, round(self.clock.now() * 10)))
            return NodeResult.ok({"said": [name]}, **more)

        return nap

    def graph(
        self,
        nodes: dict[str, int],
        edges: Iterable[str],
        *,
        store: CheckpointStore | None = None,
        observers: tuple[Heard, ...] = (),
        extra: Callable[[GraphBuilder], None] = lambda _: None,
    ) -> Graph:
        builder = GraphBuilder("naps")
        builder.add_channel("said", Reducers.append, type=list[str])
        for name, tenths in nodes.items():
            builder.add_node(name, self.node(name, tenths), dynamic=True)
        extra(builder)
        for edge in edges:
            source, target = edge.split(">")
            builder.add_edge(source or START, target)
        return builder.build(store, observers, clock=self.clock)

    async def run(self, graph: Graph, options: RunOptions = EAGER, *, resume: Any = None) -> Any:
        if resume is None:
            run = asyncio.create_task(graph.run(None, options))
        else:
            run = asyncio.create_task(graph.resume("t", resume, options=options))
        for _ in range(40):
            await settle()
            if run.done():
                break
            await self.clock.advance(0.1)
        return await run


@pytest.mark.parametrize(
    ("schedule", "through"),
    [
        ("eager", [("b", 1), ("d", 2), ("c", 5)]),
        ("superstep", [("b", 1), ("c", 5), ("d", 6)]),
    ],
)
async def test_a_fast_branch_does_not_wait_for_its_slow_sibling(
    schedule: Schedule, through: list[tuple[str, int]]
) -> None:
    """G20: b(0.1)->d(0.1) beside c(0.5)."""
    naps = Naps()
    graph = naps.graph({"b": 1, "c": 5, "d": 1}, [">b", ">c", "b>d"])
    result = await naps.run(graph, RunOptions(schedule=schedule))
    assert naps.through == through
    assert (result.state, result.steps, result.stop_reason) == ({"said": ["b", "c", "d"]}, 2, "finished")


async def test_a_whole_line_runs_ahead_and_its_supersteps_commit_in_order() -> None:
    naps, heard, store = Naps(), Heard(), MemoryCheckpointStore()
    nodes = {"b": 1, "c": 5, "d": 1, "e": 1, "f": 1, "g": 1}
    edges = [">b", ">c", "b>d", "d>e", "e>f", "c>g"]
    graph = naps.graph(nodes, edges, store=store, observers=(heard,))
    await naps.run(graph, RunOptions(schedule="eager", thread_id="t"))
    assert naps.through == [("b", 1), ("d", 2), ("e", 3), ("f", 4), ("c", 5), ("g", 6)]
    assert [event.nodes for event in heard.events if isinstance(event, StepCommitted)] == [
        ("b", "c"),
        ("d", "g"),
        ("e",),
        ("f",),
    ]
    assert [(each.node, each.step) for each in heard.events if isinstance(each, NodeBegin)] == [
        ("b", 1),
        ("c", 1),
        ("d", 2),
        ("e", 3),
        ("f", 4),
        ("g", 2),
    ]
    assert [each.state.get("said", []) for each in store.history("t")] == [
        ["b", "c", "d", "g", "e", "f"],
        ["b", "c", "d", "g", "e"],
        ["b", "c", "d", "g"],
        ["b", "c"],
        [],
    ]


async def test_a_node_sees_what_its_own_line_has_written() -> None:
    naps, seen = Naps(), list[list[str]]()

    def look(ctx: NodeContext) -> None:
        seen.append(list(ctx.state["said"]))

    graph = naps.graph(
        {"b": 1, "c": 5, "d": 1},
        [">b", ">c", "b>d", "d>look"],
        extra=lambda builder: builder.add_node("look", look, blocking=False),
    )
    await naps.run(graph)
    assert seen == [["b", "d"]]


@pytest.mark.parametrize(
    ("edges", "begun"),
    [
        ([">b", ">c", "b>d", "c>d"], ["b", "c", "d"]),  # d follows both, and must see both
        ([">b", ">c", "b>d", "c>x", "x>e", "d>e"], ["b", "c", "d", "x", "e"]),  # x may come to e as well
        ([">b", ">c", "b>d", "b>c"], ["b", "c", "d", "c"]),  # never beside itself
    ],
)
async def test_a_node_that_others_may_lead_to_waits_for_them(edges: list[str], begun: list[str]) -> None:
    naps = Naps()
    await naps.run(naps.graph({"b": 1, "c": 5, "d": 1, "x": 1, "e": 1}, edges))
    assert naps.begun == begun
    assert [name for name, _ in naps.through].count("d") == 1


async def test_a_goto_is_followed_ahead_and_a_conditional_edge_is_not() -> None:
    naps = Naps()

    def extra(builder: GraphBuilder) -> None:
        builder.add_node("go", naps.node("go", 1, goto="d"))
        builder.add_node("ask", naps.node("ask", 1))
        builder.add_conditional_edges("ask", lambda _: "e", {"e": "e"})

    graph = naps.graph({"slow": 5, "d": 1, "e": 1}, [">go", ">ask", ">slow"], extra=extra)
    await naps.run(graph)
    assert naps.through == [("go", 1), ("ask", 1), ("d", 2), ("slow", 5), ("e", 6)]


async def test_a_map_a_join_and_an_end_are_never_begun_ahead() -> None:
    naps = Naps()

    async def each(ctx: NodeContext) -> str:
        naps.begun.append(ctx.input)
        return ctx.input

    def extra(builder: GraphBuilder) -> None:
        builder.add_channel("words", type=list[str])
        builder.add_node("words", lambda _: {"words": ["x", "y"]}, blocking=False)
        builder.add_map("all", each, over="words", into="said")
        builder.add_node("over", naps.node("over", 1, goto=END))

    edges = [">b", ">c", ">words", ">over", "words>all", "b>d"]
    mapped = await naps.run(naps.graph({"b": 1, "c": 5, "d": 1}, edges, extra=extra))
    assert (naps.begun, mapped.stop_reason) == (["b", "c", "over", "d", "x", "y"], "finished")
    assert naps.through == [("b", 1), ("over", 1), ("d", 2), ("c", 5)]
    naps = Naps()
    joined = naps.graph(
        {"b": 1, "c": 5, "d": 1, "e": 1},
        [">b", ">c", "b>d"],
        extra=lambda builder: builder.add_join(["b", "c"], "e"),
    )
    await naps.run(joined)
    assert naps.begun == ["b", "c", "d", "e"]
    assert dict(naps.through)["d"] == 6


async def test_a_node_that_asks_or_uses_once_runs_again_in_its_turn() -> None:
    naps, store, charged = Naps(), MemoryCheckpointStore(), list[str]()

    def pay(ctx: NodeContext) -> dict[str, list[str]]:
        naps.begun.append("pay")
        ctx.once("charge", lambda: charged.append("card"))
        return {"said": [ctx.interrupt("sure?")]}

    graph = naps.graph(
        {"b": 1, "c": 5},
        [">b", ">c", "b>pay"],
        store=store,
        extra=lambda builder: builder.add_node("pay", pay, blocking=False),
    )
    options = RunOptions(schedule="eager", thread_id="t")
    asked = await naps.run(graph, options)
    assert (asked.stop_reason, naps.begun) == ("interrupted", ["b", "c", "pay", "pay"])
    paid = await naps.run(graph, options, resume=ResumeCommand.for_node("pay", "yes"))
    assert (paid.state, charged) == ({"said": ["b", "c", "yes"]}, ["card"])


async def test_a_node_that_fails_for_want_of_what_its_siblings_write_succeeds_in_its_turn() -> None:
    naps = Naps()

    def extra(builder: GraphBuilder) -> None:
        builder.add_channel("word", type=str)
        builder.add_node("write", lambda _: {"word": "hello"}, dynamic=True, blocking=False)
        builder.add_node("read", lambda ctx: {"said": [ctx.state["word"]]}, blocking=False)

    graph = naps.graph(
        {"b": 1, "c": 5, "slow": 1}, [">b", ">c", "b>slow", "c>write", "slow>read"], extra=extra
    )
    result = await naps.run(graph)
    assert (result.state["said"], result.errors) == (["b", "c", "slow", "hello"], ())


async def test_what_ran_ahead_of_a_failure_does_not_count_and_runs_again_on_resume() -> None:
    naps, store = Naps(), MemoryCheckpointStore()
    broken = [True]

    async def c(ctx: NodeContext) -> dict[str, list[str]]:
        await naps.clock.sleep(0.5)
        if broken:
            raise ValueError(broken.pop())
        return {"said": ["c"]}

    graph = naps.graph(
        {"b": 1, "d": 1, "e": 9},
        [">b", ">c", "b>d", "d>e"],
        store=store,
        extra=lambda builder: builder.add_node("c", c),
    )
    options = RunOptions(schedule="eager", thread_id="t")
    failed = await naps.run(graph, options)
    assert (failed.stop_reason, failed.state["said"]) == ("error", ["b"])
    assert naps.through == [("b", 1), ("d", 2)]
    assert len(asyncio.all_tasks()) == 1  # e, which had begun, is over with the run
    resumed = await naps.run(graph, options, resume=ResumeCommand())
    assert (resumed.stop_reason, resumed.state["said"]) == ("finished", ["b", "c", "d", "e"])


@pytest.mark.parametrize("way", ["control", "task", "timeout"])
async def test_a_stop_ends_what_runs_ahead_too(way: str) -> None:
    naps, heard, control = Naps(), Heard(), RunControl()
    graph = naps.graph({"b": 1, "c": 5, "d": 9}, [">b", ">c", "b>d"], observers=(heard,))
    timeout = 0.3 if way == "timeout" else None
    run = asyncio.create_task(graph.run(None, RunOptions(schedule="eager", control=control, timeout=timeout)))
    await settle()
    await naps.clock.advance(0.1)
    assert naps.begun == ["b", "c", "d"]
    if way == "control":
        control.cancel()
    elif way == "task":
        run.cancel()
    await naps.clock.advance(0.2)
    await asyncio.wait({run})
    assert len(asyncio.all_tasks()) == 1
    last = heard.events[-1]
    assert isinstance(last, RunFinished)
    assert (last.stop_reason, last.steps) == ("timeout" if way == "timeout" else "cancelled", 1)
    if way == "task":
        assert run.cancelled()


async def test_a_stop_commits_what_was_through_and_the_others_run_on_resume() -> None:
    naps, store, control = Naps(), MemoryCheckpointStore(), RunControl()
    graph = naps.graph({"b": 1, "c": 5, "d": 9}, [">b", ">c", "b>d"], store=store)
    options = RunOptions(schedule="eager", thread_id="t", control=control)
    run = asyncio.create_task(graph.run(None, options))
    await settle()
    await naps.clock.advance(0.2)
    control.cancel()
    stopped = await run
    assert (stopped.stop_reason, stopped.state["said"], naps.clock.sleeping) == ("cancelled", ["b"], 0)
    resumed = await naps.run(graph, RunOptions(schedule="eager", thread_id="t"), resume=ResumeCommand())
    assert (resumed.stop_reason, resumed.state["said"]) == ("finished", ["b", "c", "d"])


@pytest.mark.parametrize("ahead", [False, True])
def test_an_exit_asked_for_in_a_node_is_an_exit(ahead: bool) -> None:
    async def leave(_: NodeContext) -> None:
        raise SystemExit(3)

    naps = Naps()
    edges = [">b", ">c", "b>leave"] if ahead else [">b", ">c", ">leave"]
    graph = naps.graph({"b": 0, "c": 5}, edges, extra=lambda builder: builder.add_node("leave", leave))
    with pytest.raises(SystemExit):
        asyncio.run(graph.run(None, EAGER))


async def test_nothing_is_started_beyond_max_steps_or_behind_a_halt() -> None:
    naps = Naps()
    graph = naps.graph({"b": 1, "c": 5, "d": 1}, [">b", ">c", "b>d"])
    result = await naps.run(graph, RunOptions(schedule="eager", max_steps=1))
    assert (result.stop_reason, naps.begun) == ("max_steps", ["b", "c"])
    naps = Naps()
    halting = naps.graph(
        {"c": 5, "d": 1},
        [">b", ">c", "b>d"],
        extra=lambda builder: builder.add_node("b", naps.node("b", 1, halt=True)),
    )
    result = await naps.run(halting)
    assert (result.stop_reason, naps.begun) == ("halted", ["c", "b"])


async def test_no_more_run_at_once_than_may() -> None:
    naps = Naps()
    graph = naps.graph({"b": 1, "c": 5, "d": 9, "e": 1}, [">b", ">c", "b>d", "c>e"])
    await naps.run(graph, RunOptions(schedule="eager", max_concurrency=2))
    assert naps.through == [("b", 1), ("c", 5), ("e", 6), ("d", 10)]


async def test_a_write_that_does_not_fit_is_told_in_its_superstep() -> None:
    naps = Naps()

    def extra(builder: GraphBuilder) -> None:
        builder.add_node("b", lambda _: {"typo": 1}, blocking=False)

    result = await naps.run(naps.graph({"c": 5, "d": 1}, [">b", ">c", "b>d"], extra=extra))
    assert [error.node for error in result.errors] == ["b"]
    assert naps.begun == ["c"]


def test_plain_nodes_run_ahead_on_workers_for_code_without_an_event_loop() -> None:
    def gone(_: NodeContext) -> dict[str, list[str]]:
        return {"said": ["x"]}

    builder = GraphBuilder("plain")
    builder.add_channel("said", Reducers.append, type=list[str])
    for name in ("b", "c", "d"):
        builder.add_node(name, gone)
    for source, target in ((START, "b"), (START, "c"), ("b", "d"), ("d", END)):
        builder.add_edge(source, target)
    assert builder.build().run_sync(options=EAGER).state == {"said": ["x", "x", "x"]}


def test_an_unknown_schedule_is_refused() -> None:
    with pytest.raises(UsageError, match="schedule is 'lazy'; it may be: superstep, eager"):
        RunOptions(schedule="lazy")  # pyright: ignore[reportArgumentType] - what the test is about


@given(plans(), WRITES, st.lists(st.integers(0, 12), min_size=6, max_size=6))
@settings(deadline=None)
def test_eager_comes_to_the_same_as_supersteps(plan: Any, inputs: dict[str, Any], naps: list[int]) -> None:
    def napping(name: str, result: NodeResult) -> Callable[[NodeContext], Any]:
        async def node(_: NodeContext) -> NodeResult:
            await settle(naps[int(name[1:])])
            return result

        return node

    def outcome(schedule: Schedule) -> tuple[object, ...]:
        store = MemoryCheckpointStore()
        graph = graph_of(plan, store, napping)
        options = RunOptions(max_steps=5, schedule=schedule, thread_id="t")
        result = asyncio.run(graph.run(inputs, options))
        # what tasks note on their way is kept when they say it, which is when they run
        whole = [kept for kept in store.history("t") if "." not in kept.id]
        steps = [(kept.step, kept.frontier, kept.ops) for kept in whole]
        return result.state, result.stop_reason, result.steps, result.errors, result.interrupts, steps

    assert outcome("eager") == outcome("superstep")
