"""What observers hear."""

import asyncio
import threading
from typing import Any

import msgspec
import pytest

from dialoom.base.events import Event
from dialoom.graph import (
    START,
    Checkpoint,
    Chunk,
    ErrorEvent,
    Graph,
    GraphBuilder,
    GraphEvent,
    MemoryCheckpointStore,
    NodeBegin,
    NodeContext,
    NodeEnd,
    NodeResult,
    RunBegin,
    RunControl,
    RunFinished,
    RunOptions,
    StepCommitted,
)
from dialoom.testing import ManualClock
from tests.graph.graphs import PATIENCE, Heard, line, speakers, wait_for


class Ticking(ManualClock):
    """A clock on which every look costs a second."""

    def monotonic(self) -> float:
        self._now += 1
        return self._now


@pytest.mark.promise(
    "graph-083", "graph-097", "graph-099", "graph-103", "graph-104", "graph-105", "graph-106", "graph-108"
)
def test_a_run_tells_its_whole_story_in_order() -> None:
    heard = Heard()
    builder = speakers()
    builder.add_node("a", lambda ctx: ctx.emit({"token": "hi"}) or {"said": ["a"]})
    builder.add_edge(START, "a")
    graph = builder.build(MemoryCheckpointStore(), [heard], clock=Ticking())
    result = graph.run_sync(None, RunOptions(thread_id="alice"))
    head: dict[str, Any] = {"run_id": result.run_id, "thread_id": "alice", "ns": ()}
    checkpoint_id = f"{result.run_id}:1"
    assert heard.events == [
        RunBegin(**head, seq=1, graph="speakers"),
        NodeBegin(**head, seq=2, step=1, node="a"),
        Chunk(**head, seq=3, step=1, node="a", value={"token": "hi"}),
        NodeEnd(**head, seq=4, step=1, node="a", status="ok", elapsed=1.0),
        StepCommitted(**head, seq=5, step=1, nodes=("a",), channels=("said",), checkpoint_id=checkpoint_id),
        RunFinished(**head, seq=6, steps=1, stop_reason="finished", checkpoint_id=checkpoint_id),
    ]


def test_a_failure_is_told_with_its_node_before_the_step_of_its_siblings() -> None:
    heard = Heard()
    builder = speakers("good")
    builder.add_node("bad", lambda _: NodeResult.fail("no luck"), blocking=False)
    builder.add_edge(START, "good")
    builder.add_edge(START, "bad")
    builder.build(observers=[heard]).run_sync()
    assert heard.names() == [
        "RunBegin",
        "NodeBegin",
        "NodeEnd",
        "NodeBegin",
        "NodeEnd",
        "ErrorEvent",
        "StepCommitted",
        "RunFinished",
    ]
    error = heard.events[5]
    assert isinstance(error, ErrorEvent)
    assert (error.step, error.node, error.message) == (1, "bad", "no luck")
    assert [event.status for event in heard.events if isinstance(event, NodeEnd)] == ["ok", "error"]


def test_a_refused_input_is_told_too() -> None:
    heard = Heard()
    assert line("a", observers=(heard,)).run_sync({"typo": 1}).stop_reason == "error"
    assert heard.names() == ["RunBegin", "ErrorEvent", "RunFinished"]


@pytest.mark.promise("graph-109")
def test_all_observers_hear_everything_and_one_that_fails_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken:
        def on_event(self, event: Event) -> None:
            raise RuntimeError("broken observer")

    one, other = Heard(), Heard()
    builder = speakers("a")
    builder.add_edge(START, "a")
    result = builder.build(observers=[one, Broken(), other]).run_sync()
    assert result.stop_reason == "finished"
    assert one.events == other.events
    assert len(one.events) == 5
    assert len(caplog.records) == 5


def test_a_lone_observer_that_fails_at_a_value_hears_the_next(caplog: pytest.LogCaptureFixture) -> None:
    class Picky(Heard):
        def on_event(self, event: Event) -> None:
            super().on_event(event)
            if isinstance(event, Chunk) and event.value == 1:
                raise RuntimeError("not this one")

    def talk(ctx: NodeContext) -> None:
        for value in (1, 2):
            ctx.emit(value)

    picky = Picky()
    builder = GraphBuilder("talk")
    builder.add_node("talk", talk)
    builder.add_edge(START, "talk")
    assert builder.build(observers=[picky]).run_sync().stop_reason == "finished"
    assert [(event.seq, event.value) for event in picky.events if isinstance(event, Chunk)] == [
        (3, 1),
        (4, 2),
    ]
    assert [(record.message, record.__dict__["observer"]) for record in caplog.records] == [
        ("observer failed", "Picky")
    ]


@pytest.mark.promise("graph-100", "graph-110")
def test_events_of_parallel_nodes_come_one_at_a_time_and_numbered_without_gaps() -> None:
    together = threading.Barrier(8, timeout=PATIENCE)

    class Careful(Heard):
        busy = False

        def on_event(self, event: Event) -> None:
            assert not self.busy
            self.busy = True
            super().on_event(event)
            self.busy = False

    def chatter(ctx: NodeContext) -> None:
        together.wait()
        for at in range(50):
            ctx.emit(at)

    heard = Careful()
    builder = GraphBuilder("chatter")
    for at in range(8):
        builder.add_node(f"n{at}", chatter)
        builder.add_edge(START, f"n{at}")
    builder.build(observers=[heard]).run_sync()
    assert [event.seq for event in heard.events] == list(range(1, 8 * 52 + 4))
    for at in range(8):
        values = [e.value for e in heard.events if isinstance(e, Chunk) and e.node == f"n{at}"]
        assert values == list(range(50))


def test_an_observer_may_emit_through_a_context_it_was_shown() -> None:
    contexts: list[NodeContext] = []

    class Echo(Heard):
        def on_event(self, event: Event) -> None:
            super().on_event(event)
            if isinstance(event, Chunk) and event.value == "once":
                contexts[0].emit("echo")

    heard = Echo()
    builder = GraphBuilder("echo")
    builder.add_node("a", lambda ctx: contexts.append(ctx) or ctx.emit("once"))
    builder.add_edge(START, "a")
    builder.build(observers=[heard]).run_sync()
    assert [event.value for event in heard.events if isinstance(event, Chunk)] == ["once", "echo"]


class Answering(Heard):
    """Emits once, when it hears an event of the kind `to`."""

    def __init__(self, to: type[GraphEvent], contexts: list[NodeContext]) -> None:
        super().__init__()
        self.to, self.contexts = to, contexts

    def on_event(self, event: Event) -> None:
        super().on_event(event)
        if type(event) is self.to and self.contexts:
            self.contexts.pop().emit("echo")


@pytest.mark.parametrize("to", [Chunk, NodeEnd, StepCommitted, RunFinished])
@pytest.mark.parametrize("listeners", ["one", "two", "stream"])
async def test_what_observers_emit_comes_in_order_and_never_after_the_last_word(
    to: type[GraphEvent], listeners: str
) -> None:
    contexts: list[NodeContext] = []
    heard = [Answering(to, contexts), Heard()][: 1 if listeners == "one" else 2]

    def first(ctx: NodeContext) -> None:
        contexts.append(ctx)
        ctx.emit("once")

    builder = speakers("b")
    builder.add_node("a", first)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    graph = builder.build(observers=heard)
    streamed = [event async for event in graph.stream()] if listeners == "stream" else []
    if listeners != "stream":
        graph.run_sync()
    for events in [each.events for each in heard] + [streamed] * bool(streamed):
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert isinstance(events[-1], RunFinished)
        said = [event.value for event in events if isinstance(event, Chunk)]
        assert said == (["once", "echo"] if to is Chunk else ["once"])


@pytest.mark.parametrize("listeners", [1, 2])
async def test_a_node_that_was_left_behind_is_heard_no_more(listeners: int) -> None:
    heard = [Heard() for _ in range(listeners)]
    begun, release, left = threading.Event(), threading.Event(), threading.Event()
    control = RunControl()

    def stubborn(ctx: NodeContext) -> None:
        ctx.emit("in time")
        begun.set()
        wait_for(release)
        ctx.emit("too late")
        left.set()

    class Holding(MemoryCheckpointStore):
        """Lets the node go on while the run is not over yet."""

        def save(self, checkpoint: Checkpoint) -> None:
            super().save(checkpoint)
            if checkpoint.step == 1:
                release.set()
                wait_for(left)

    builder = speakers("beside")
    builder.add_node("stubborn", stubborn)
    builder.add_edge(START, "beside")
    builder.add_edge(START, "stubborn")
    graph = builder.build(Holding(), observers=heard)
    run = asyncio.create_task(graph.run(None, RunOptions(control=control)))
    assert await asyncio.to_thread(begun.wait, PATIENCE)
    control.cancel()
    await run
    assert left.is_set()
    for each in heard:
        assert [event.value for event in each.events if isinstance(event, Chunk)] == ["in time"]
        assert [event.seq for event in each.events] == list(range(1, len(each.events) + 1))


def test_what_a_node_says_after_its_run_is_not_heard() -> None:
    contexts: list[NodeContext] = []
    heard = Heard()
    builder = GraphBuilder("late")
    builder.add_node("a", contexts.append)
    builder.add_edge(START, "a")
    builder.build(observers=[heard]).run_sync()
    contexts[0].emit("too late")
    contexts[0]._run.publisher.node_begin(2, "ghost")  # type: ignore[attr-defined]
    contexts[0]._run.publisher.node_end(2, "ghost", "ok")  # type: ignore[attr-defined]
    assert heard.names()[-1] == "RunFinished"


@pytest.mark.promise("graph-101")
async def test_without_a_listener_emitting_does_nothing() -> None:
    async def chatter(ctx: NodeContext) -> None:
        ctx.emit("x")
        await ctx.aemit("y")

    builder = GraphBuilder("quiet")
    builder.add_node("a", chatter)
    builder.add_edge(START, "a")
    assert (await builder.build().run()).stop_reason == "finished"


async def test_observers_hear_what_is_emitted_async_too() -> None:
    async def chatter(ctx: NodeContext) -> None:
        await ctx.aemit("y")

    heard = Heard()
    builder = GraphBuilder("chatter")
    builder.add_node("a", chatter)
    builder.add_edge(START, "a")
    await builder.build(observers=[heard]).run()
    assert [event.value for event in heard.events if isinstance(event, Chunk)] == ["y"]


def test_events_are_json_with_a_dotted_type_and_come_back_the_same() -> None:
    heard = Heard()
    builder = speakers()
    builder.add_node("a", lambda ctx: ctx.emit("hi") or NodeResult.fail("no"))
    builder.add_node("b", lambda _: None)
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.build(observers=[heard]).run_sync()
    lines = [msgspec.json.encode(event) for event in heard.events]
    assert {msgspec.json.decode(text)["type"] for text in lines} == {
        "run.begin",
        "node.begin",
        "node.chunk",
        "node.end",
        "run.error",
        "step.committed",
        "run.finished",
    }
    assert [msgspec.json.decode(text, type=GraphEvent) for text in lines] == heard.events


def test_a_graph_without_listeners_makes_no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    graph: Graph = line("a")
    monkeypatch.setattr("dialoom.graph.run.Publisher", lambda *_, **__: made.append("publisher"))
    graph.run_sync()
    assert made == []
