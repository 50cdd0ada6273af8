"""Two runs on one thread, forks of a thread, and writes to one from outside."""

import asyncio
import threading
from typing import Any

import pytest

from dialoom.base.errors import ConflictError, UsageError
from dialoom.graph import (
    END,
    START,
    Graph,
    GraphBuilder,
    MemoryCheckpointStore,
    NodeContext,
    NodeError,
    ResumeCommand,
    RunControl,
    RunOptions,
)
from dialoom.testing.clock import settle
from tests.graph.graphs import PATIENCE, Heard, line, speakers, wait_for

ALICE = RunOptions(thread_id="alice")
BUSY = NodeError(
    node="",
    message="thread 'alice' is running already; "
    "wait for it, or run with on_conflict='queue' or 'cancel_previous'",
)


class Slow:
    """A graph whose async node says what it was given, once its gate is open."""

    def __init__(self, *observers: Any) -> None:
        self.gate = asyncio.Event()
        self.begun: list[str] = []
        builder = speakers()
        builder.add_channel("word")
        builder.add_node("say", self.say)
        builder.add_edge(START, "say")
        self.graph = builder.build(MemoryCheckpointStore(), observers)

    async def say(self, ctx: NodeContext) -> dict[str, list[str]]:
        self.begun.append(ctx.state["word"])
        await self.gate.wait()
        return {"said": [ctx.state["word"]]}

    def run(self, word: str, on_conflict: Any, **choices: Any) -> "asyncio.Task[Any]":
        options = RunOptions(thread_id="alice", on_conflict=on_conflict, **choices)
        return asyncio.create_task(self.graph.run({"word": word}, options))


async def test_of_two_runs_on_one_thread_the_second_is_rejected_and_harms_nobody() -> None:
    """G28."""
    heard = Heard()
    slow = Slow(heard)
    first, second = slow.run("x", "reject"), slow.run("y", "reject")
    rejected = await second
    assert (rejected.stop_reason, rejected.errors, rejected.state) == ("conflict", (BUSY,), {})
    told = [event for event in heard.events if event.run_id == rejected.run_id]
    assert [type(event).__name__ for event in told] == ["RunBegin", "ErrorEvent", "RunFinished"]
    slow.gate.set()
    assert (await first).state["said"] == ["x"]
    assert (await slow.run("z", "reject")).state["said"] == ["x", "z"]


async def test_queued_runs_follow_each_other_in_order_and_none_is_lost() -> None:
    """G28: six inputs, no loss."""
    slow = Slow()
    runs = [slow.run(word, "queue") for word in "uvwxyz"]
    await settle()
    assert slow.begun == ["u"]
    slow.gate.set()
    assert [(await run).stop_reason for run in runs] == ["finished"] * 6
    assert (await runs[-1]).state["said"] == list("uvwxyz")


async def test_the_previous_run_is_cancelled_and_the_new_one_goes_on_with_its_thread() -> None:
    slow = Slow()
    first = slow.run("x", "reject")
    await settle()
    waiting = slow.run("y", "queue")
    await settle()
    last = slow.run("z", "cancel_previous")
    await settle()
    slow.gate.set()
    assert [(await run).stop_reason for run in (first, waiting, last)] == [
        "cancelled",
        "cancelled",
        "finished",
    ]
    assert (await last).state["said"][-1] == "z"


@pytest.mark.parametrize("by", ["control", "task"])
async def test_a_run_that_waits_for_its_turn_can_be_stopped(by: str) -> None:
    slow, control = Slow(), RunControl()
    first, second, third = (
        slow.run("x", "reject"),
        slow.run("y", "queue", control=control),
        slow.run("z", "queue"),
    )
    await settle()
    if by == "control":
        control.cancel()
        assert (await second).stop_reason == "cancelled"
    else:
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
    slow.gate.set()
    assert (await first).state["said"] == ["x"]
    assert (await third).state["said"] == ["x", "z"]


def test_the_same_holds_for_runs_on_threads() -> None:
    begun, release = threading.Event(), threading.Event()

    def say(ctx: NodeContext) -> dict[str, list[str]]:
        begun.set()
        wait_for(release)
        return {"said": [ctx.state["word"]]}

    builder = speakers()
    builder.add_channel("word")
    builder.add_node("say", say)
    builder.add_edge(START, "say")
    graph = builder.build(MemoryCheckpointStore())
    results: list[Any] = []

    def run(word: str) -> None:
        options = RunOptions(thread_id="alice", on_conflict="queue")
        results.append(graph.run_sync({"word": word}, options))

    threads = [threading.Thread(target=run, args=(word,)) for word in "xy"]
    threads[0].start()
    wait_for(begun)
    threads[1].start()
    assert graph.run_sync({"word": "z"}, ALICE).errors == (BUSY,)
    timed = RunOptions(thread_id="alice", on_conflict="queue", timeout=0.02)
    assert graph.run_sync({"word": "z"}, timed).stop_reason == "timeout"
    release.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert [result.state["said"] for result in results] == [["x"], ["x", "y"]]


def test_a_policy_that_is_none_is_refused() -> None:
    wrong: Any = "wait"
    with pytest.raises(UsageError, match="on_conflict is 'wait'; it may be: reject, queue, cancel_previous"):
        RunOptions(on_conflict=wrong)


BOTH = pytest.mark.parametrize("how", ["sync", "async", "async, blocking"])


class Waits(MemoryCheckpointStore):
    """A store that says it may wait."""

    blocking = True


def edited(graph: Graph, how: str, *args: Any, **choices: Any) -> Any:
    if how == "sync":
        return graph.update_state_sync(*args, **choices)
    return asyncio.run(graph.update_state(*args, **choices))


def forked(graph: Graph, how: str, *args: Any) -> Any:
    return graph.fork_sync(*args) if how == "sync" else asyncio.run(graph.fork(*args))


def store(how: str) -> MemoryCheckpointStore:
    return Waits() if how.endswith("blocking") else MemoryCheckpointStore()


@BOTH
def test_a_fork_goes_its_own_way_and_the_old_thread_is_left_alone(how: str) -> None:
    kept = store(how)
    graph = line("a", "b", "c", store=kept)
    graph.run_sync({"said": ["hi"]}, ALICE)
    before = list(graph.history("alice"))
    after_a = before[2]
    first = forked(graph, how, after_a, "bob")
    assert (first.thread_id, first.version, first.state, first.frontier.ready) == (
        "bob",
        1,
        {"said": ["hi", "a"]},
        ("b",),
    )
    assert graph.resume_sync("bob").state == {"said": ["hi", "a", "b", "c"]}
    assert (list(graph.history("alice")), kept.load("bob", first.id)) == (before, first)
    with pytest.raises(ConflictError):
        forked(graph, how, after_a, "bob")
    assert len(set(kept.threads())) == 2
    assert forked(graph, how, after_a).thread_id not in {"alice", "bob"}


def test_a_fork_of_a_paused_thread_is_answered_by_itself() -> None:
    builder = speakers()
    builder.add_channel("n", default=1)
    builder.add_node("ask", lambda ctx: {"said": [ctx.interrupt("?")]})
    builder.add_edge(START, "ask")
    graph = builder.build(MemoryCheckpointStore())
    graph.run_sync(None, ALICE)
    graph.fork_sync(next(graph.history("alice")), "bob")
    assert graph.resume_sync("bob", ResumeCommand.for_node("ask", "from bob")).state["said"] == ["from bob"]
    assert graph.resume_sync("alice", ResumeCommand.for_node("ask", "from alice")).state["said"] == [
        "from alice"
    ]


@BOTH
def test_a_thread_is_written_to_from_outside_as_one_of_its_nodes(how: str) -> None:
    graph = line("a", "b", "c", store=store(how))
    graph.run_sync(None, RunOptions(thread_id="alice", max_steps=1))
    plain = edited(graph, how, "alice", {"said": ["note"]})
    assert (plain.state, plain.frontier.ready) == ({"said": ["a", "note"]}, ("b",))
    skipped = edited(graph, how, "alice", {"said": ["instead of b"]}, as_node="b")
    assert skipped.frontier.ready == ("c",)
    assert graph.resume_sync("alice").state == {"said": ["a", "note", "instead of b", "c"]}


def test_what_does_not_fit_a_thread_is_refused_and_nothing_is_written() -> None:
    builder = speakers("a")
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", lambda _: "nowhere", {"on": END})
    graph = builder.build(MemoryCheckpointStore())
    graph.run_sync(None, RunOptions(thread_id="alice", timeout=0))
    before = list(graph.history("alice"))
    no_way = "the conditional edge answered 'nowhere'; it may answer: on, __end__"
    for writes, as_node, reason in (
        ({}, "nobody", "there is no node 'nobody' to write as; the graph has: a"),
        ({"typo": 1}, None, "write to channel 'typo' refused: there is no such channel; the graph has: said"),
        ({}, "a", f"writing as 'a' leads nowhere: {no_way}"),
    ):
        with pytest.raises(UsageError) as refused:
            graph.update_state_sync("alice", writes, as_node=as_node)
        assert str(refused.value) == reason
    assert list(graph.history("alice")) == before
    with pytest.raises(UsageError, match="there is no thread 'nobody' to resume"):
        graph.update_state_sync("nobody", {})
    free = GraphBuilder("free")
    free.add_node("a", lambda _: None)
    free.add_edge(START, "a")
    with pytest.raises(UsageError, match="keeps no checkpoints"):
        free.build().update_state_sync("alice", {})
