"""Runs are stopped: by a control, by their deadline, by their caller's cancellation, by Ctrl-C."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dialoom.base.cancel import Cancelled
from dialoom.graph import (
    START,
    Checkpoint,
    Frontier,
    GraphBuilder,
    Interrupted,
    MemoryCheckpointStore,
    NodeContext,
    NodeError,
    NodeStatus,
    RunControl,
    RunFinished,
    RunOptions,
)
from dialoom.graph.mailbox import Mailbox
from dialoom.graph.on_loop import carry_on_loop
from dialoom.graph.position import Start
from dialoom.graph.run import Run
from dialoom.testing import ManualClock
from dialoom.testing.clock import settle
from tests.graph.graphs import PATIENCE, Heard, counter, line, saying, speakers, wait_for


@pytest.fixture(autouse=True)
async def nothing_is_left_running() -> Any:
    yield
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.promise("graph-038", "graph-044")
def test_a_control_stops_a_run_between_supersteps() -> None:
    control = RunControl()
    builder = speakers("b")
    builder.add_node("a", lambda _: control.cancel() or {"said": ["a"]})
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    graph = builder.build(MemoryCheckpointStore())
    result = graph.run_sync(None, RunOptions(control=control))
    assert (result.stop_reason, result.state, result.errors) == ("cancelled", {"said": ["a"]}, ())
    assert graph.resume_sync(result.thread_id).state == {"said": ["a", "b"]}


def test_a_stop_that_comes_with_the_last_node_changes_nothing() -> None:
    control = RunControl()
    builder = speakers()
    builder.add_node("a", lambda _: control.cancel())
    builder.add_edge(START, "a")
    assert builder.build().run_sync(None, RunOptions(control=control)).stop_reason == "finished"


def test_a_run_under_a_cancelled_control_commits_its_input_and_stops() -> None:
    control = RunControl()
    control.cancel()
    graph = line("a", store=MemoryCheckpointStore())
    result = graph.run_sync({"said": ["hi"]}, RunOptions(control=control))
    assert (result.stop_reason, result.steps, result.state) == ("cancelled", 0, {"said": ["hi"]})
    assert graph.resume_sync(result.thread_id).state == {"said": ["hi", "a"]}


@pytest.mark.promise("graph-041", "graph-042", "graph-043", "graph-049")
def test_a_node_sees_the_stop_and_leaves_and_is_no_error() -> None:
    control, started = RunControl(), threading.Event()
    seen: list[bool] = []

    def scan(ctx: NodeContext) -> None:
        seen.append(ctx.stop_requested)
        ctx.raise_if_stopped()
        started.set()
        while not ctx.stop_requested:
            threading.Event().wait(0.001)
        seen.append(ctx.stop_requested)
        ctx.raise_if_stopped()

    builder = GraphBuilder("scan")
    builder.add_node("scan", scan)
    builder.add_edge(START, "scan")
    stopper = threading.Thread(target=lambda: (wait_for(started), control.cancel()))
    stopper.start()
    result = builder.build().run_sync(None, RunOptions(control=control))
    stopper.join(PATIENCE)
    assert seen == [False, True]
    assert (result.stop_reason, result.errors, result.steps) == ("cancelled", (), 0)


@pytest.mark.promise("graph-048", "graph-050")
async def test_a_stop_commits_those_that_finished_and_the_others_run_on_resume() -> None:
    control, runs = RunControl(), {"quick": 0, "slow": 0, "after": 0}
    release = asyncio.Event()
    builder = speakers()

    async def quick(_: NodeContext) -> dict[str, list[str]]:
        runs["quick"] += 1
        return {"said": ["quick"]}

    async def slow(_: NodeContext) -> dict[str, list[str]]:
        runs["slow"] += 1
        if runs["slow"] == 1:
            asyncio.get_running_loop().call_soon(control.cancel)
            await release.wait()
        return {"said": ["slow"]}

    def after(ctx: NodeContext) -> dict[str, list[str]]:
        runs["after"] += 1
        return {"said": [f"after {list(ctx.state['said'])}"]}

    builder.add_node("slow", slow)
    builder.add_node("quick", quick)
    builder.add_node("after", after, blocking=False)
    for name in ("slow", "quick"):
        builder.add_edge(START, name)
        builder.add_edge(name, "after")
    graph = builder.build(MemoryCheckpointStore())
    result = await graph.run(None, RunOptions(control=control))
    assert (result.stop_reason, result.state, result.errors) == ("cancelled", {"said": ["quick"]}, ())
    resumed = await graph.resume(result.thread_id)
    assert resumed.state["said"] == ["quick", "slow", "after ['quick', 'slow']"]
    assert runs == {"quick": 1, "slow": 2, "after": 1}


@pytest.mark.promise("graph-039", "graph-040")
async def test_a_deadline_stops_an_async_node() -> None:
    clock = ManualClock()

    async def forever(_: NodeContext) -> None:
        await asyncio.Event().wait()

    builder = GraphBuilder("slow")
    builder.add_node("slow", forever)
    builder.add_edge(START, "slow")
    graph = builder.build(clock=clock)
    run = asyncio.create_task(graph.run(None, RunOptions(timeout=30)))
    await settle()
    await clock.advance(29)
    assert not run.done()
    await clock.advance(1)
    result = await run
    assert (result.stop_reason, result.errors) == ("timeout", ())
    assert clock.sleeping == 0


async def test_a_run_that_ends_before_its_deadline_leaves_no_timer() -> None:
    clock = ManualClock()
    builder = speakers("a")
    builder.add_edge(START, "a")
    assert (await builder.build(clock=clock).run(None, RunOptions(timeout=30))).stop_reason == "finished"
    assert clock.sleeping == 0


class SlowToWake(ManualClock):
    """A clock whose sleepers take until `awake` to hear that they are cancelled."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.awake = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        try:
            await super().sleep(seconds)
        finally:
            await self.awake.wait()


async def test_a_run_cancelled_while_its_timer_ends_is_told_to_be_over_and_leaves_its_thread() -> None:
    clock, store, heard = SlowToWake(), MemoryCheckpointStore(), Heard()

    async def a(_: NodeContext) -> None:
        await asyncio.sleep(0)  # the timer begins

    builder = GraphBuilder("one")
    builder.add_node("a", a)
    builder.add_edge(START, "a")
    graph = builder.build(store, [heard], clock=clock)
    run = asyncio.create_task(graph.run(None, RunOptions(thread_id="t", timeout=9.0)))
    await settle()
    run.cancel()
    await settle()
    clock.awake.set()
    with pytest.raises(asyncio.CancelledError):
        await run
    last = heard.events[-1]
    assert isinstance(last, RunFinished)
    assert last.stop_reason == "finished"
    assert (await graph.run(None, RunOptions(thread_id="t"))).stop_reason == "finished"


def test_a_deadline_ends_a_sync_run_between_nodes() -> None:
    clock = ManualClock()

    def late(ctx: NodeContext) -> dict[str, list[str]]:
        clock._now += 31
        assert ctx.stop_requested
        return {"said": ["late"]}

    builder = speakers("next")
    builder.add_node("late", late)
    builder.add_edge(START, "late")
    builder.add_edge("late", "next")
    result = builder.build(clock=clock).run_sync(None, RunOptions(timeout=30))
    assert (result.stop_reason, result.state) == ("timeout", {"said": ["late"]})


def test_a_deadline_of_zero_commits_the_input_only() -> None:
    result = counter().run_sync({"n": 1}, RunOptions(timeout=0))
    assert (result.stop_reason, result.state, result.steps) == ("timeout", {"n": 1}, 0)


@pytest.mark.promise("graph-047")
def test_control_returns_at_the_deadline_though_a_sync_node_still_blocks() -> None:
    release, left = threading.Event(), threading.Event()

    def stuck(_: NodeContext) -> dict[str, list[str]]:
        wait_for(release)
        left.set()
        return {"said": ["too late"]}

    builder = speakers("quick")
    builder.add_node("stuck", stuck)
    builder.add_edge(START, "stuck")
    builder.add_edge(START, "quick")
    heard = Heard()
    graph = builder.build(MemoryCheckpointStore(), [heard])
    result = graph.run_sync(None, RunOptions(timeout=1.0))
    assert (result.stop_reason, result.state) == ("timeout", {"said": ["quick"]})
    release.set()
    wait_for(left)
    assert next(graph.history(result.thread_id)).state == {"said": ["quick"]}
    assert heard.names()[-2:] == ["StepCommitted", "RunFinished"]
    assert _ends(heard) == {"quick": "ok", "stuck": "cancelled"}


async def test_a_stop_leaves_a_blocking_node_behind_on_its_worker() -> None:
    control, started, release = RunControl(), threading.Event(), threading.Event()
    seen: list[bool] = []
    left = threading.Event()

    def stuck(ctx: NodeContext) -> None:
        started.set()
        wait_for(release)
        seen.append(ctx.stop_requested)
        ctx.emit("nobody hears this")
        left.set()

    heard = Heard()
    builder = GraphBuilder("stuck")
    builder.add_node("stuck", stuck)
    builder.add_edge(START, "stuck")
    run = asyncio.create_task(builder.build(observers=[heard]).run(None, RunOptions(control=control)))
    assert await asyncio.to_thread(started.wait, PATIENCE)
    control.cancel()
    assert (await run).stop_reason == "cancelled"
    release.set()
    assert await asyncio.to_thread(left.wait, PATIENCE)
    assert seen == [True]
    assert heard.names() == ["RunBegin", "NodeBegin", "NodeEnd", "RunFinished"]


@pytest.mark.promise("graph-045")
async def test_nodes_that_had_not_begun_when_the_stop_came_do_not_begin() -> None:
    control, begun = RunControl(), []

    async def first(ctx: NodeContext) -> None:
        begun.append(ctx.node)
        control.cancel()

    builder = GraphBuilder("wide")
    for name in ("a", "b", "c"):
        builder.add_node(name, first)
        builder.add_edge(START, name)
    result = await builder.build().run(None, RunOptions(control=control, max_concurrency=1))
    assert (begun, result.stop_reason) == (["a"], "cancelled")


@pytest.mark.parametrize("blocking", [True, False])
def test_the_same_holds_without_a_loop(blocking: bool) -> None:
    control, begun = RunControl(), []

    def first(ctx: NodeContext) -> None:
        begun.append(ctx.node)
        control.cancel()

    builder = GraphBuilder("wide")
    for name in ("a", "b", "c"):
        builder.add_node(name, first, blocking=blocking)
        builder.add_edge(START, name)
    result = builder.build().run_sync(None, RunOptions(control=control, max_concurrency=1))
    assert (begun, result.stop_reason) == (["a"], "cancelled")


@pytest.mark.parametrize("wide", [False, True])
async def test_cancelling_the_task_checkpoints_first_and_raises_then(wide: bool) -> None:
    started, cleaned = asyncio.Event(), []

    async def slow(_: NodeContext) -> None:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    builder = speakers("before", "beside")
    builder.add_node("slow", slow)
    builder.add_edge(START, "before")
    builder.add_edge("before", "slow")
    if wide:
        builder.add_edge("before", "beside")
    else:
        builder.add_edge("slow", "beside")
    heard, store = Heard(), MemoryCheckpointStore()
    graph = builder.build(store, [heard])
    run = asyncio.create_task(graph.run(None, RunOptions(thread_id="alice")))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert cleaned == [True]
    said = ["before", "beside"] if wide else ["before"]
    head = store.load("alice")
    assert head is not None
    assert (head.state["said"], head.frontier.ready) == (said, ("slow",))
    assert isinstance(heard.events[-1], RunFinished)
    assert heard.events[-1].stop_reason == "cancelled"


class Gated:
    """A store whose saves wait for a gate."""

    blocking = True

    def __init__(self) -> None:
        self.kept = MemoryCheckpointStore()
        self.saving, self.gate = threading.Event(), threading.Event()

    def save(self, checkpoint: Checkpoint) -> None:
        if checkpoint.step == 1:
            self.saving.set()
            wait_for(self.gate)
        self.kept.save(checkpoint)

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Checkpoint | None:
        return self.kept.load(thread_id, checkpoint_id)

    def history(self, thread_id: str) -> Iterator[Checkpoint]:
        return self.kept.history(thread_id)

    def threads(self) -> Iterator[str]:
        return self.kept.threads()

    def erase_thread(self, thread_id: str) -> None:
        self.kept.erase_thread(thread_id)


async def test_a_save_that_has_begun_is_waited_for_however_often_the_task_is_cancelled() -> None:
    store = Gated()
    run = asyncio.create_task(line("a", "b", store=store).run(None, RunOptions(thread_id="alice")))
    assert await asyncio.to_thread(store.saving.wait, PATIENCE)
    for _ in range(3):
        run.cancel()
        await settle()
    assert not run.done()
    store.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await run
    head = store.load("alice")
    assert head is not None
    assert (head.state, head.frontier) == ({"said": ["a"]}, Frontier(("b",)))


async def test_a_run_that_waits_for_its_reader_can_be_cancelled() -> None:
    mailbox = Mailbox(1, loop_thread=threading.get_ident())
    setup = line("a", "b")._setup
    run = Run(setup, Start(None), RunOptions(), mailbox)
    task = asyncio.create_task(carry_on_loop(lambda: run))
    await settle()
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    mailbox.close()
    events = [mailbox.take() for _ in range(6)]
    assert isinstance(events[-2], RunFinished)
    assert events[-2].stop_reason == "cancelled"
    assert events[-1] is None


async def test_a_timeout_of_the_caller_is_a_timeout_of_the_caller() -> None:
    async def slow(_: NodeContext) -> None:
        await asyncio.Event().wait()

    builder = GraphBuilder("slow")
    builder.add_node("slow", slow)
    builder.add_edge(START, "slow")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await builder.build().run()


async def test_both_cancellations_at_once_end_in_the_callers() -> None:
    control, started = RunControl(), asyncio.Event()

    async def slow(_: NodeContext) -> None:
        started.set()
        await asyncio.Event().wait()

    builder = GraphBuilder("slow")
    builder.add_node("slow", slow)
    builder.add_edge(START, "slow")
    run = asyncio.create_task(builder.build().run(None, RunOptions(control=control)))
    await started.wait()
    control.cancel()
    await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def test_a_stop_request_does_not_count_as_a_cancellation_of_the_task() -> None:
    control = RunControl()

    async def slow(_: NodeContext) -> None:
        asyncio.get_running_loop().call_soon(control.cancel)
        await asyncio.Event().wait()

    builder = GraphBuilder("slow")
    builder.add_node("slow", slow)
    builder.add_edge(START, "slow")
    assert (await builder.build().run(None, RunOptions(control=control))).stop_reason == "cancelled"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_a_node_that_swallows_the_stop_finishes_and_the_run_ends_all_the_same() -> None:
    control = RunControl()

    async def stubborn(_: NodeContext) -> dict[str, list[str]]:
        asyncio.get_running_loop().call_soon(control.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return {"said": ["stubborn"]}

    builder = speakers("next")
    builder.add_node("stubborn", stubborn)
    builder.add_edge(START, "stubborn")
    builder.add_edge("stubborn", "next")
    result = await builder.build().run(None, RunOptions(control=control))
    assert (result.stop_reason, result.state) == ("cancelled", {"said": ["stubborn"]})
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@pytest.mark.parametrize("wide", [False, True])
async def test_a_node_that_is_cancelled_from_inside_failed(wide: bool) -> None:
    async def odd(_: NodeContext) -> None:
        raise asyncio.CancelledError("from inside")

    builder = speakers("beside")
    builder.add_node("odd", odd)
    builder.add_edge(START, "odd")
    builder.add_edge(START if wide else "odd", "beside")
    result = await builder.build().run()
    message = "nobody cancelled the run, but the node raised CancelledError: from inside"
    assert (result.stop_reason, result.errors[0].message) == ("error", message)


def test_what_fails_while_the_run_is_stopped_is_told_but_not_the_reason_it_ended() -> None:
    control = RunControl()

    def broken(_: NodeContext) -> None:
        control.cancel()
        raise OSError("connection closed")

    builder = GraphBuilder("broken")
    builder.add_node("broken", broken)
    builder.add_edge(START, "broken")
    result = builder.build().run_sync(None, RunOptions(control=control))
    assert (result.stop_reason, result.errors[0].message) == ("cancelled", "OSError: connection closed")


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_an_exit_asked_for_in_a_node_is_an_exit(asynchronous: bool, wide: bool) -> None:
    def leave(_: NodeContext) -> None:
        raise SystemExit(3)

    async def leave_async(ctx: NodeContext) -> None:
        leave(ctx)

    heard, store = Heard(), MemoryCheckpointStore()
    builder = speakers("first")
    builder.add_node("leave", leave_async if asynchronous else leave)
    builder.add_node("beside", saying("beside"))
    builder.add_edge(START, "first")
    builder.add_edge("first", "leave")
    builder.add_edge("first" if wide else "leave", "beside")
    graph = builder.build(store, [heard])
    with pytest.raises(SystemExit):
        graph.run_sync(None, RunOptions(thread_id="alice"))
    head = store.load("alice")
    assert head is not None
    assert head.state == {"said": ["first"]}
    assert heard.names()[-1] == "RunFinished"
    after = counter().run_sync()
    assert after.state == {"n": 5}


def test_the_background_loop_outlives_an_exit_asked_for_on_it() -> None:
    async def leave(_: NodeContext) -> None:
        raise KeyboardInterrupt

    async def fine(_: NodeContext) -> dict[str, list[str]]:
        return {"said": ["fine"]}

    for node, raises in ((leave, True), (fine, False)):
        builder = speakers()
        builder.add_node("node", node)
        builder.add_edge(START, "node")
        graph = builder.build()
        if raises:
            with pytest.raises(KeyboardInterrupt):
                graph.run_sync()
        else:
            assert graph.run_sync().state == {"said": ["fine"]}


@pytest.mark.parametrize("raised", [Interrupted, Cancelled])
def test_a_node_that_raises_control_flow_by_hand_fails_and_is_not_tried_for_ever(
    raised: type[BaseException],
) -> None:
    def by_hand(_: NodeContext) -> None:
        raise raised

    builder = GraphBuilder("by hand")
    builder.add_node("odd", by_hand)
    builder.add_edge(START, "odd")
    result = builder.build().run_sync()
    assert (result.stop_reason, result.errors) == (
        "error",
        (
            NodeError(
                node="odd",
                message="it raised Cancelled or Interrupted by hand; fail with an error,"
                " or call ctx.interrupt(payload)",
            ),
        ),
    )


def test_a_control_outlives_its_runs_and_keeps_none_of_them() -> None:
    control = RunControl()
    for _ in range(3):
        counter().run_sync(None, RunOptions(control=control))
    assert control._callbacks == {}


def _ends(heard: Heard) -> dict[str, NodeStatus]:
    return {event.node: event.status for event in heard.events if hasattr(event, "status")}


def test_ctrl_c_while_workers_are_busy_leaves_them_told_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    started, stopped = threading.Event(), threading.Event()

    def busy(ctx: NodeContext) -> None:
        started.set()
        while not ctx.stop_requested:
            threading.Event().wait(0.001)
        stopped.set()

    class Interrupting(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            wait_for(started)
            raise KeyboardInterrupt

    builder = GraphBuilder("busy")
    for name in ("a", "b"):
        builder.add_node(name, busy)
        builder.add_edge(START, name)
    monkeypatch.setattr("dialoom.graph.sync_lane.Flag", Interrupting)
    with pytest.raises(KeyboardInterrupt):
        builder.build().run_sync()
    wait_for(stopped)
