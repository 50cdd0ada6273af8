"""A graph as one node of another: what passes between them; stopping, asking and telling go through."""

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest

from dialoom.base.errors import UsageError
from dialoom.graph import (
    START,
    Chunk,
    Graph,
    GraphBuilder,
    GraphBuildError,
    MemoryCheckpointStore,
    NodeContext,
    NodeResult,
    Reducers,
    ResumeCommand,
    RetryPolicy,
    RunControl,
    RunOptions,
    Send,
    SubgraphConfig,
)
from dialoom.graph.threads import WorkerPool
from dialoom.testing import ManualClock
from dialoom.testing.clock import settle
from tests.graph.graphs import PATIENCE, Heard, line, speakers, wait_for

ALICE = RunOptions(thread_id="alice")
BOTH = pytest.mark.parametrize(
    "how", [Graph.run_sync, lambda graph, *given: asyncio.run(graph.run(*given))], ids=["sync", "async"]
)


def around(
    child: Graph, config: SubgraphConfig | None = None, heard: Heard | None = None, **choices: Any
) -> Graph:
    """Before -> sub -> after, all of which say something."""
    builder = speakers("before", "after")
    builder.add_subgraph("sub", child, SubgraphConfig() if config is None else config, **choices)
    builder.add_edge(START, "before")
    builder.add_edge("before", "sub")
    builder.add_edge("sub", "after")
    return builder.build(MemoryCheckpointStore(), [heard] if heard else [])


def one(node: Any, *, channels: tuple[str, ...] = ()) -> Graph:
    """A graph of one node."""
    builder = speakers()
    for name in channels:
        builder.add_channel(name)
    builder.add_node("inner", node)
    builder.add_edge(START, "inner")
    return builder.build()


@pytest.mark.promise("graph-063", "graph-066", "graph-067")
@BOTH
def test_a_shared_log_is_not_doubled_and_what_the_child_adds_comes_behind(how: Any) -> None:
    """G24."""
    seen: list[list[str]] = []
    child = one(lambda ctx: seen.append(list(ctx.state["said"])) or {"said": ["child"]})
    assert how(around(child)).state == {"said": ["before", "child", "after"]}
    assert seen == [["before"]]


@BOTH
def test_an_async_child_makes_the_whole_async(how: Any) -> None:
    async def inner(ctx: NodeContext) -> dict[str, list[str]]:
        await asyncio.sleep(0)
        return {"said": [ctx.thread_id]}

    assert how(around(one(inner)), None, ALICE).state == {"said": ["before", "alice", "after"]}


@pytest.mark.promise("graph-064", "graph-065", "graph-079")
def test_inputs_and_outputs_say_what_passes() -> None:
    child = GraphBuilder("retrieve")
    for name in ("query", "docs", "secret"):
        child.add_channel(name)
    child.add_node("find", lambda ctx: {"docs": [f"about {ctx.state['query']}", ctx.thread_id], "secret": 1})
    child.add_edge(START, "find")
    builder = GraphBuilder("answer")
    for name in ("question", "query", "docs", "secret"):
        builder.add_channel(name)
    builder.add_subgraph(
        "retrieve", child.build(), SubgraphConfig(inputs={"query": "question"}, outputs=["docs"])
    )
    builder.add_edge(START, "retrieve")
    result = builder.build().run_sync({"question": "looms", "query": "no"}, ALICE)
    assert result.state == {"question": "looms", "query": "no", "docs": ["about looms", "alice"]}


def test_what_the_child_did_not_touch_is_not_written_and_what_it_added_counts_once() -> None:
    """G24: a sum that the child did not touch."""

    def builder_with_channels(name: str) -> GraphBuilder:
        builder = GraphBuilder(name)
        builder.add_channel("count", Reducers.sum)
        builder.add_channel("untouched", Reducers.sum, default=1)
        builder.add_channel("tags", Reducers.set_union)
        builder.add_channel("facts", Reducers.merge)
        builder.add_channel("note", default="default")
        return builder

    child = builder_with_channels("child")
    child.add_node("inner", lambda _: {"count": 5, "tags": ["new"], "facts": {"b": 2}})
    child.add_edge(START, "inner")
    builder = builder_with_channels("parent")
    builder.add_subgraph("sub", child.build())
    builder.add_node("beside", lambda _: {"count": 100, "facts": {"c": 3}, "note": "beside"})
    builder.add_edge(START, "sub")
    builder.add_edge(START, "beside")
    result = builder.build().run_sync({"count": 10, "untouched": 6, "tags": ["old"], "facts": {"a": 1}})
    assert result.state == {
        "count": 115,
        "untouched": 7,
        "tags": {"old", "new"},
        "facts": {"a": 1, "b": 2, "c": 3},
        "note": "beside",
    }


def test_a_child_begins_anew_each_time_it_is_called() -> None:
    child = GraphBuilder("child")
    child.add_channel("n", Reducers.sum)
    child.add_channel("own", Reducers.sum)
    child.add_node("inner", lambda ctx: {"n": 1 + ctx.state["own"], "own": 1})
    child.add_edge(START, "inner")
    builder = GraphBuilder("loop")
    builder.add_channel("n", Reducers.sum)
    builder.add_subgraph("sub", child.build())
    builder.add_edge(START, "sub")
    builder.add_conditional_edges("sub", lambda state: "sub" if state["n"] < 3 else [])
    assert builder.build().run_sync().state == {"n": 3}


@pytest.mark.promise("graph-068")
@BOTH
def test_a_child_that_fails_fails_the_node_and_goes_on_where_it_stood(how: Any) -> None:
    runs: Counter[str] = Counter()
    broken = [True]

    def node(ctx: NodeContext) -> dict[str, list[str]]:
        runs[ctx.node] += 1
        if ctx.node == "y" and broken:
            raise OSError("no line")
        return {"said": [ctx.node]}

    child = speakers()
    for source, name in ((START, "x"), ("x", "y")):
        child.add_node(name, node)
        child.add_edge(source, name)
    graph = around(child.build())
    failed = how(graph, None, ALICE)
    assert (failed.stop_reason, failed.state, [(error.node, error.message) for error in failed.errors]) == (
        "error",
        {"said": ["before"]},
        [("sub", "its subgraph failed: node 'y': OSError: no line")],
    )
    broken.clear()
    assert graph.resume_sync("alice").state == {"said": ["before", "x", "y", "after"]}
    assert runs == {"x": 1, "y": 2}


@pytest.mark.promise("graph-071", "graph-072")
def test_a_child_that_halts_halts_the_whole_and_one_that_is_not_through_fails() -> None:
    halted = around(one(lambda _: NodeResult.ok({"said": ["enough"]}, halt=True))).run_sync()
    assert (halted.stop_reason, halted.state) == ("halted", {"said": ["before", "enough"]})
    endless = around(one(lambda _: NodeResult.ok(goto="inner"))).run_sync(None, RunOptions(max_steps=7))
    assert [error.message for error in endless.errors] == ["its subgraph was not through after 7 supersteps"]


def test_an_input_that_does_not_fit_fails_the_node() -> None:
    child = GraphBuilder("child")
    child.add_channel("number", type=int)
    child.add_node("inner", lambda _: None)
    child.add_edge(START, "inner")

    async def wait(_: NodeContext) -> None: ...

    waiting = GraphBuilder("child")
    waiting.add_channel("number", type=int)
    waiting.add_node("inner", wait)
    waiting.add_edge(START, "inner")
    for each in (child, waiting):
        (error,) = around(each.build(), SubgraphConfig(inputs={"number": "said"})).run_sync().errors
        assert (error.node, error.message) == (
            "sub",
            "write to channel 'number' refused: Expected `int`, got `array`",
        )


def asking(*names: str) -> Graph:
    """A child whose nodes ask, beside each other."""
    builder = speakers()
    for name in names:
        builder.add_node(name, lambda ctx: {"said": [f"{ctx.node}: {ctx.interrupt('sure?')}"]})
        builder.add_edge(START, name)
    return builder.build()


@pytest.mark.promise("graph-073", "graph-075", "graph-076")
@BOTH
def test_what_a_child_asks_is_asked_by_the_whole(how: Any) -> None:
    heard = Heard()
    graph = around(asking("x", "y"), heard=heard)
    paused = how(graph, None, ALICE)
    assert [(each.id, each.node, each.ns) for each in paused.interrupts] == [
        ("sub/x#1", "x", ("sub",)),
        ("sub/y#1", "y", ("sub",)),
    ]
    assert heard.names().count("InterruptEvent") == 2
    paused = graph.resume_sync("alice", ResumeCommand.for_id("sub/y#1", "no"))
    assert ([each.id for each in paused.interrupts], paused.state) == (["sub/x#1"], {"said": ["before"]})
    done = graph.resume_sync("alice", ResumeCommand.for_node("sub", "yes"))
    assert done.state == {"said": ["before", "y: no", "x: yes", "after"]}


def test_all_that_a_child_asks_is_answered_at_once() -> None:
    graph = around(asking("x", "y"))
    graph.run_sync(None, ALICE)
    done = graph.resume_sync("alice", ResumeCommand.many({"x": 1, "sub/y#1": 2}))
    assert done.state == {"said": ["before", "x: 1", "y: 2", "after"]}


@pytest.mark.promise("graph-074", "graph-077")
def test_an_answer_to_the_child_as_a_whole_goes_to_its_resume_node() -> None:
    graph = around(asking("x", "y"))
    graph.run_sync(None, ALICE)
    with pytest.raises(
        UsageError, match="node 'sub' waits with 2 questions; answer by id, one of: 'sub/x#1', 'sub/y#1'"
    ):
        graph.resume_sync("alice", ResumeCommand.for_node("sub", "which?"))
    with pytest.raises(UsageError, match="nothing waits for an answer to 'z'"):
        graph.resume_sync("alice", ResumeCommand.for_node("z", "who?"))
    aimed = around(asking("x", "y"), SubgraphConfig(resume_node="y"))
    aimed.run_sync(None, ALICE)
    paused = aimed.resume_sync("alice", ResumeCommand.for_node("sub", "no"))
    assert [each.id for each in paused.interrupts] == ["sub/x#1"]


def test_children_of_children_ask_and_remember_too() -> None:
    effects: list[str] = []

    def inner(ctx: NodeContext) -> dict[str, list[str]]:
        ctx.once("effect", lambda: effects.append("once"))
        return {"said": [ctx.interrupt("sure?")]}

    middle = speakers()
    middle.add_subgraph("deep", one(inner))
    middle.add_edge(START, "deep")
    graph = around(middle.build())
    paused = graph.run_sync(None, ALICE)
    assert [each.id for each in paused.interrupts] == ["sub/deep/inner#1"]
    done = graph.resume_sync("alice", ResumeCommand.for_node("inner", "yes"))
    assert (done.state, effects) == ({"said": ["before", "yes", "after"]}, ["once"])


def test_children_that_are_sent_have_a_place_each() -> None:
    builder = speakers()
    builder.add_node("plan", lambda _: NodeResult.ok(sends=[Send("sub"), Send("sub")]))
    builder.add_subgraph("sub", asking("x"))
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", lambda _: [], {"never": "sub"})
    graph = builder.build(MemoryCheckpointStore())
    paused = graph.run_sync(None, ALICE)
    assert [each.id for each in paused.interrupts] == ["sub[0]/x#1", "sub[1]/x#1"]
    graph.resume_sync("alice", ResumeCommand.for_id("sub[1]/x#1", "two"))
    done = graph.resume_sync("alice", ResumeCommand.for_id("sub[0]/x#1", "one"))
    assert done.state == {"said": ["x: two", "x: one"]}


@pytest.mark.promise("graph-078")
async def test_events_of_a_child_pass_through_with_its_place_and_without_gaps() -> None:
    async def inner(ctx: NodeContext) -> None:
        await ctx.aemit("hello")

    graph = around(one(inner))
    async with graph.stream() as stream:
        events = [event async for event in stream]
    assert [event.value for event in events if isinstance(event, Chunk)] == ["hello"]
    assert [(type(event).__name__, event.ns) for event in events if event.ns] == [
        ("NodeBegin", ("sub",)),
        ("Chunk", ("sub",)),
        ("NodeEnd", ("sub",)),
        ("StepCommitted", ("sub",)),
    ]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert {event.run_id for event in events} == {stream.result.run_id}


@pytest.mark.promise("graph-069", "graph-070")
@pytest.mark.parametrize("by", ["control", "deadline", "task"])
async def test_a_stop_reaches_the_nodes_of_a_child_and_the_thread_goes_on_later(by: str) -> None:
    """G14."""
    ticks, begun, clock, control = [], asyncio.Event(), ManualClock(), RunControl()

    async def inner(_: NodeContext) -> dict[str, list[str]]:
        while not ticks or by:
            begun.set()
            await clock.sleep(0.05)
            ticks.append(1)
        return {"said": ["through"]}

    builder = speakers("before")
    builder.add_subgraph("sub", one(inner))
    builder.add_edge(START, "before")
    builder.add_edge("before", "sub")
    graph = builder.build(MemoryCheckpointStore(), clock=clock)
    timeout = 1 if by == "deadline" else None
    run = asyncio.create_task(
        graph.run(None, RunOptions(thread_id="alice", control=control, timeout=timeout))
    )
    await begun.wait()
    await clock.advance(0.1)
    if by == "control":
        control.cancel()
    elif by == "task":
        run.cancel()
    else:
        await clock.advance(0.9)
    if by == "task":
        with pytest.raises(asyncio.CancelledError):
            await run
    else:
        result = await run
        assert (result.stop_reason, result.errors) == ("timeout" if by == "deadline" else "cancelled", ())
    before = len(ticks)
    await clock.advance(1)
    assert (len(ticks), clock.sleeping, asyncio.all_tasks()) == (before, 0, {asyncio.current_task()})
    by = ""
    resumed = asyncio.create_task(graph.resume("alice"))
    await settle()
    assert (await resumed).state == {"said": ["before", "through"]}


def test_a_stop_reaches_a_plain_child_between_its_nodes() -> None:
    control = RunControl()
    child = speakers("y")
    child.add_node("x", lambda _: control.cancel() or {"said": ["x"]})
    child.add_edge(START, "x")
    child.add_edge("x", "y")
    graph = around(child.build())
    stopped = graph.run_sync(None, RunOptions(thread_id="alice", control=control))
    assert (stopped.stop_reason, stopped.state, stopped.errors) == ("cancelled", {"said": ["before"]}, ())
    assert graph.resume_sync("alice").state == {"said": ["before", "x", "y", "after"]}


async def test_a_child_that_takes_too_long_is_stopped_at_its_own_deadline() -> None:
    release, over, late = threading.Event(), threading.Event(), []

    def x(_: NodeContext) -> None:
        wait_for(release)
        over.set()

    child = speakers()
    child.add_node("x", x)
    child.add_node("y", late.append)
    child.add_edge(START, "x")
    child.add_edge("x", "y")
    result = await around(child.build(), timeout=0.5).run()
    assert [error.message for error in result.errors] == [
        "NodeTimeoutError: it took longer than its timeout of 0.5 seconds"
    ]
    release.set()
    assert await asyncio.to_thread(over.wait, PATIENCE)
    assert late == []


def test_a_child_that_was_left_behind_is_heard_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = WorkerPool(
        1
    )  # it lends the place of what is left behind to a second thread, and then ends the first
    monkeypatch.setattr("dialoom.graph.threads._Shared.nodes", pool)
    release, workers, heard = threading.Event(), list[threading.Thread](), Heard()

    def x(_: NodeContext) -> dict[str, list[str]]:
        workers.append(threading.current_thread())
        wait_for(release)
        return {"said": ["x"]}

    child = speakers()
    child.add_node("x", x)
    child.add_edge(START, "x")
    result = around(child.build(), heard=heard, timeout=0.2).run_sync()
    assert (result.stop_reason, result.orphans) == ("error", 1)
    told = heard.names()
    pool.submit(lambda: None).result(PATIENCE)
    release.set()
    workers[0].join(PATIENCE)
    assert not workers[0].is_alive()
    assert heard.names() == told
    assert told[-1] == "RunFinished"


def test_a_child_is_tried_again_from_where_it_stood() -> None:
    runs: Counter[str] = Counter()

    def node(ctx: NodeContext) -> dict[str, list[str]]:
        runs[ctx.node] += 1
        if ctx.node == "y" and runs["y"] == 1:
            raise OSError
        return {"said": [ctx.node]}

    child = speakers()
    for source, name in ((START, "x"), ("x", "y")):
        child.add_node(name, node)
        child.add_edge(source, name)
    assert around(child.build(), retry=RetryPolicy(delay=0)).run_sync().state == {
        "said": ["before", "x", "y", "after"]
    }
    assert runs == {"x": 1, "y": 2}


def test_a_thread_is_taken_back_into_the_middle_of_a_child() -> None:
    """G12: back to before y of a -> sub(x, y, z) -> b."""
    runs: list[str] = []

    def noted(name: str) -> Any:
        return lambda ctx: runs.append(name) or {"said": [name]}

    child = speakers()
    for source, name in ((START, "x"), ("x", "y"), ("y", "z")):
        child.add_node(name, noted(name))
        child.add_edge(source, name)
    builder = speakers()
    builder.add_node("a", noted("a"))
    builder.add_subgraph("sub", child.build())
    builder.add_node("b", noted("b"))
    for source, name in ((START, "a"), ("a", "sub"), ("sub", "b")):
        builder.add_edge(source, name)
    graph = builder.build(MemoryCheckpointStore())
    graph.run_sync(None, ALICE)
    assert runs == ["a", "x", "y", "z", "b"]
    runs.clear()
    before_y = [
        checkpoint
        for checkpoint in graph.history("alice")
        for note in checkpoint.frontier.notes
        if note.child and note.child.frontier.ready == ("y",)
    ]
    assert len(before_y) == 1
    result = graph.resume_sync(before_y[0])
    assert (runs, result.state) == (["y", "z", "b"], {"said": ["a", "x", "y", "z", "b"]})
    assert next(graph.history("alice")).id == result.checkpoint_id


def test_what_is_wrong_with_a_subgraph_is_named_at_build() -> None:
    builder = speakers()
    config = SubgraphConfig(inputs={"query": "question"}, outputs=["docs"], resume_node="nobody")
    builder.add_subgraph("sub", line("a"), config)
    builder.add_edge(START, "sub")
    with pytest.raises(GraphBuildError) as refused:
        builder.build()
    assert [(each.code, each.message) for each in refused.value.problems] == [
        ("unknown-channel", "there is no channel 'question' around its subgraph"),
        ("unknown-channel", "there is no channel 'docs' around its subgraph"),
        ("unknown-channel", "there is no channel 'query' in its subgraph"),
        ("unknown-channel", "there is no channel 'docs' in its subgraph"),
        ("unknown-node", "there is no node 'nobody' in its subgraph"),
    ]


def test_a_subgraph_of_a_stored_graph_uses_the_store_of_the_whole() -> None:
    own = MemoryCheckpointStore()
    child = line("x", store=own)
    result = around(child).run_sync(None, ALICE)
    assert (result.state, list(own.threads())) == ({"said": ["before", "x", "after"]}, [])
