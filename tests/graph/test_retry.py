"""Nodes that fail are tried again, nodes that take too long are left behind, failures have a way out."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from dialoom.base.errors import UsageError
from dialoom.graph import (
    START,
    Graph,
    GraphBuildError,
    MemoryCheckpointStore,
    NodeContext,
    NodeError,
    NodeFailedError,
    NodeResult,
    ResumeCommand,
    Retry,
    RetryPolicy,
    RunControl,
    RunFailedError,
    RunOptions,
    RunResult,
)
from dialoom.testing import ManualClock
from dialoom.testing.clock import settle
from tests.graph.graphs import PATIENCE, Heard, saying, speakers, wait_for

AT_ONCE = RetryPolicy(attempts=3, delay=0)


class BusyError(Exception):
    """A server that says when to come back."""

    def __init__(self, retry_after: Any = None) -> None:
        super().__init__("busy")
        self.retry_after = retry_after


def failing(times: int, error: Callable[[], Exception] = lambda: OSError("no line")) -> Any:
    """A node that fails so often, then says at which attempt it got through."""

    def node(ctx: NodeContext) -> dict[str, list[str]]:
        if ctx.attempt <= times:
            raise error()
        return {"said": [f"attempt {ctx.attempt}"]}

    return node


def one_node(node: Any, heard: Heard | None = None, clock: Any = None, **choices: Any) -> Graph:
    builder = speakers()
    builder.add_node("node", node, **choices)
    builder.add_edge(START, "node")
    extra = {} if clock is None else {"clock": clock}
    return builder.build(observers=[heard] if heard else [], chance=lambda: 1.0, **extra)


async def until(true: Callable[[], bool]) -> None:
    """Let other tasks and threads run until `true`."""
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110 - nothing tells us
            await asyncio.sleep(0)


async def waited(policy: RetryPolicy, error: Callable[[], Exception], times: int) -> tuple[list[float], str]:
    """The waits between attempts, and how the run ended."""
    clock, heard = ManualClock(), Heard()

    async def node(ctx: NodeContext) -> dict[str, list[str]]:
        return failing(times, error)(ctx)

    run = asyncio.create_task(one_node(node, heard, clock, retry=policy).run())
    await settle()
    while not run.done():
        await clock.advance(1_000)
    return [event.delay for event in heard.events if isinstance(event, Retry)], (await run).stop_reason


@pytest.mark.promise("graph-027", "graph-029", "graph-107")
@pytest.mark.parametrize(
    "how", [Graph.run_sync, lambda graph: asyncio.run(graph.run())], ids=["sync", "async"]
)
@pytest.mark.parametrize("blocking", [True, False])
def test_a_node_that_gets_through_leaves_no_error(how: Callable[[Graph], RunResult], blocking: bool) -> None:
    heard = Heard()
    result = how(one_node(failing(2), heard, retry=AT_ONCE, blocking=blocking))
    assert (result.stop_reason, result.state, result.errors) == ("finished", {"said": ["attempt 3"]}, ())
    assert heard.names() == [
        "RunBegin", "NodeBegin", "Retry", "Retry", "NodeEnd", "StepCommitted", "RunFinished",
    ]  # fmt: skip


@pytest.mark.promise("graph-030")
def test_a_node_that_uses_up_its_attempts_ends_the_run_with_an_error() -> None:
    result = one_node(failing(9), retry=AT_ONCE).run_sync()
    assert (result.stop_reason, result.state) == ("error", {"said": []})
    (error,) = result.errors
    assert (error.node, error.message, error.attempts) == ("node", "OSError: no line", 3)


@pytest.mark.promise("graph-031")
def test_only_for_who_asked_for_it_used_up_attempts_raise() -> None:
    graph = one_node(failing(9), retry=AT_ONCE)
    assert graph.run_sync().stop_reason == "error"
    with pytest.raises(RunFailedError, match="node 'node': OSError: no line"):
        graph.run_sync(None, RunOptions(raise_on_error=True))


@pytest.mark.promise("graph-092")
def test_a_run_without_a_thread_id_is_a_thread_of_its_own_named_by_its_run() -> None:
    seen: list[str] = []
    result = one_node(lambda ctx: seen.append(ctx.thread_id)).run_sync()
    assert (result.thread_id, seen) == (result.run_id, [result.run_id])


@pytest.mark.promise("graph-028")
async def test_waits_grow_linearly_or_double_up_to_a_limit() -> None:
    linear = RetryPolicy(attempts=5, delay=2, backoff="linear", max_delay=7)
    double = RetryPolicy(attempts=6, delay=1, max_delay=7)
    assert await waited(linear, OSError, 4) == ([2, 4, 6, 7], "finished")
    assert await waited(double, OSError, 9) == ([1, 2, 4, 7, 7], "error")


async def test_a_share_of_each_wait_is_left_to_chance() -> None:
    assert await waited(RetryPolicy(delay=10, jitter=0.25), OSError, 9) == ([7.5, 15], "error")


def test_without_a_given_chance_it_is_that_of_the_machine() -> None:
    builder = speakers()
    builder.add_node("node", failing(2), retry=RetryPolicy(delay=0, jitter=1))
    builder.add_edge(START, "node")
    assert builder.build().run_sync().state == {"said": ["attempt 3"]}


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (20, ([20, 20], "finished")),
        (0.5, ([1, 2], "finished")),
        (31, ([], "error")),
        (float("nan"), ([], "error")),
        ("soon", ([1, 2], "finished")),
    ],
)
async def test_an_error_says_when_to_come_back(wish: Any, expected: tuple[list[float], str]) -> None:
    assert await waited(RetryPolicy(delay=1, max_delay=30), lambda: BusyError(wish), 2) == expected


def test_a_predicate_decides_what_is_worth_another_try() -> None:
    policy = RetryPolicy(delay=0, retry_on=lambda error: not isinstance(error, ValueError))
    assert one_node(failing(2), retry=policy).run_sync().stop_reason == "finished"
    (error,) = one_node(failing(2, ValueError), retry=policy).run_sync().errors
    assert (error.message, error.attempts) == ("ValueError", 1)


def test_a_failure_given_back_is_tried_again_too() -> None:
    asked: list[Exception] = []

    def node(ctx: NodeContext) -> NodeResult:
        return NodeResult.fail("not yet") if ctx.attempt < 3 else NodeResult.ok({"said": ["now"]})

    policy = RetryPolicy(delay=0, retry_on=lambda error: asked.append(error) is None)
    assert one_node(node, retry=policy).run_sync().state == {"said": ["now"]}
    assert [(type(error), str(error)) for error in asked] == [(NodeFailedError, "not yet")] * 2


def test_a_predicate_that_fails_ends_the_attempts_and_both_are_told() -> None:
    def predicate(_: Exception) -> bool:
        raise KeyError("oops")

    (error,) = one_node(failing(1), retry=RetryPolicy(delay=0, retry_on=predicate)).run_sync().errors
    assert error.message == "retry_on, asked about 'OSError: no line', raised KeyError: 'oops'"


@pytest.mark.promise("graph-046")
async def test_a_stop_ends_the_wait_before_another_try() -> None:
    control, clock = RunControl(), ManualClock()
    for blocking in (True, False):
        heard, control = Heard(), RunControl()
        graph = one_node(
            failing(9), heard, clock, retry=RetryPolicy(delay=60, max_delay=60), blocking=blocking
        )
        run = asyncio.create_task(graph.run(None, RunOptions(control=control)))
        await until(lambda: clock.sleeping == 1)
        control.cancel()
        result = await run
        assert (result.stop_reason, result.errors, clock.sleeping) == ("cancelled", (), 0)
        assert heard.names() == ["RunBegin", "NodeBegin", "Retry", "NodeEnd", "RunFinished"]


def test_a_stop_ends_the_wait_of_a_sync_run_too() -> None:
    control, begun = RunControl(), threading.Event()

    def node(_: NodeContext) -> None:
        begun.set()
        raise OSError

    stopper = threading.Thread(target=lambda: (wait_for(begun), control.cancel()))
    stopper.start()
    graph = one_node(node, retry=RetryPolicy(delay=60, max_delay=60))
    assert graph.run_sync(None, RunOptions(control=control)).stop_reason == "cancelled"
    stopper.join(PATIENCE)
    assert graph.run_sync(None, RunOptions(timeout=0.02)).stop_reason == "timeout"


def test_a_node_that_was_stopped_is_not_tried_again() -> None:
    control, tries = RunControl(), []

    def node(ctx: NodeContext) -> None:
        tries.append(ctx.attempt)
        control.cancel()
        ctx.raise_if_stopped()

    result = one_node(node, retry=AT_ONCE).run_sync(None, RunOptions(control=control))
    assert (tries, result.stop_reason, result.errors) == ([1], "cancelled", ())


def test_a_node_that_fails_because_it_was_stopped_is_not_tried_again() -> None:
    control, tries = RunControl(), []

    def node(ctx: NodeContext) -> None:
        tries.append(ctx.attempt)
        control.cancel()
        raise OSError

    result = one_node(node, retry=AT_ONCE).run_sync(None, RunOptions(control=control))
    assert (tries, result.stop_reason, result.errors) == ([1], "cancelled", ())


async def test_an_async_node_is_cancelled_at_its_deadline_and_tried_again() -> None:
    clock, cleaned = ManualClock(), []

    async def node(ctx: NodeContext) -> dict[str, list[str]]:
        try:
            if ctx.attempt == 1:
                await asyncio.Event().wait()
        finally:
            cleaned.append(ctx.stop_requested)
        return {"said": [f"attempt {ctx.attempt}"]}

    run = asyncio.create_task(one_node(node, clock=clock, retry=AT_ONCE, timeout=5).run())
    await settle()
    await clock.advance(4)
    assert cleaned == []
    await clock.advance(1)
    assert (await run).state == {"said": ["attempt 2"]}
    assert (cleaned, clock.sleeping) == ([True, False], 0)


async def test_a_timed_node_is_stopped_with_its_run() -> None:
    control, begun = RunControl(), asyncio.Event()

    async def node(_: NodeContext) -> None:
        begun.set()
        await asyncio.Event().wait()

    graph = one_node(node, clock=ManualClock(), timeout=5)
    run = asyncio.create_task(graph.run(None, RunOptions(control=control)))
    await begun.wait()
    control.cancel()
    assert (await run).stop_reason == "cancelled"


TOO_LONG = NodeError(node="node", message="NodeTimeoutError: it took longer than its timeout of 0.5 seconds")


class Stuck:
    """A plain node that is over only when the test says so."""

    def __init__(self) -> None:
        self.begun, self.release, self.left = threading.Event(), threading.Event(), threading.Event()
        self.seen: list[object] = []

    def __call__(self, ctx: NodeContext) -> dict[str, list[str]]:
        self.begun.set()
        wait_for(self.release)
        ctx.emit("nobody hears this")
        self.seen.append(ctx.stop_requested)
        try:
            ctx.raise_if_stopped()
        finally:
            self.left.set()
        return {"said": ["too late"]}

    async def end(self) -> None:
        self.release.set()
        assert await asyncio.to_thread(self.left.wait, PATIENCE)


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_control_returns_at_the_deadline_of_a_plain_node_and_what_it_says_later_is_dropped(
    how: str,
) -> None:
    """G15."""
    stuck, heard = Stuck(), Heard()
    graph = one_node(stuck, heard, timeout=0.5)
    result = await asyncio.to_thread(graph.run_sync) if how == "sync" else await graph.run()
    assert (result.stop_reason, result.errors, result.orphans) == ("error", (TOO_LONG,), 1)
    await stuck.end()
    assert (stuck.seen, result.state) == ([True], {"said": []})
    assert heard.names() == ["RunBegin", "NodeBegin", "NodeEnd", "ErrorEvent", "RunFinished"]


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_a_timed_plain_node_is_left_behind_when_its_run_is_stopped(how: str) -> None:
    stuck, control = Stuck(), RunControl()
    graph, options = one_node(stuck, timeout=60), RunOptions(control=control)
    run = asyncio.create_task(
        asyncio.to_thread(graph.run_sync, None, options) if how == "sync" else graph.run(None, options)
    )
    assert await asyncio.to_thread(stuck.begun.wait, PATIENCE)
    control.cancel()
    result = await run
    assert (result.stop_reason, result.errors) == ("cancelled", ())
    await stuck.end()


@pytest.mark.parametrize(
    "how", [Graph.run_sync, lambda graph: asyncio.run(graph.run())], ids=["sync", "async"]
)
def test_a_timed_plain_node_in_time_is_like_any_other(how: Callable[[Graph], RunResult]) -> None:
    def node(ctx: NodeContext) -> dict[str, list[str]]:
        ctx.emit("heard")
        ctx.raise_if_stopped()
        return {"said": [f"{ctx.node} {ctx.run_id == ctx.thread_id} {ctx.deps}"]}

    heard = Heard()
    assert how(one_node(node, heard, timeout=60)).state == {"said": ["node True None"]}
    assert "Chunk" in heard.names()


async def test_a_timed_async_node_may_emit() -> None:
    async def node(ctx: NodeContext) -> None:
        await ctx.aemit("heard")
        try:
            await asyncio.Event().wait()
        finally:
            await ctx.aemit("nobody hears this")

    heard, clock = Heard(), ManualClock()
    run = asyncio.create_task(one_node(node, heard, clock, timeout=5).run())
    await settle()
    await clock.advance(5)
    assert (await run).stop_reason == "error"
    assert heard.names() == ["RunBegin", "NodeBegin", "Chunk", "NodeEnd", "ErrorEvent", "RunFinished"]


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_a_node_that_was_left_behind_is_not_heard_when_it_fails_at_last(how: str) -> None:
    stuck, control, heard = Stuck(), RunControl(), Heard()

    def fails(ctx: NodeContext) -> None:
        stuck.begun.set()
        wait_for(stuck.release)
        stuck.left.set()
        raise OSError

    builder = speakers("calm")
    builder.add_node("stuck", fails, retry=RetryPolicy(delay=60))
    builder.add_edge(START, "calm")
    builder.add_edge(START, "stuck")
    graph, options = builder.build(observers=[heard]), RunOptions(control=control)
    run = asyncio.create_task(
        asyncio.to_thread(graph.run_sync, None, options) if how == "sync" else graph.run(None, options)
    )
    assert await asyncio.to_thread(stuck.begun.wait, PATIENCE)
    control.cancel()
    assert (await run).stop_reason == "cancelled"
    told = heard.names()
    await stuck.end()
    assert (heard.names(), told[-1]) == (told, "RunFinished")


def test_a_timed_node_remembers_and_asks_like_any_other() -> None:
    def node(ctx: NodeContext) -> dict[str, list[str]]:
        return {"said": [ctx.once("effect", lambda: "once"), ctx.interrupt("sure?")]}

    builder = speakers()
    builder.add_node("node", node, timeout=60)
    builder.add_edge(START, "node")
    graph = builder.build(MemoryCheckpointStore())
    assert graph.run_sync(None, RunOptions(thread_id="alice")).stop_reason == "interrupted"
    assert graph.resume_sync("alice", ResumeCommand.for_node("node", "yes")).state == {
        "said": ["once", "yes"]
    }


def test_parallel_nodes_are_tried_each_by_its_own_policy() -> None:
    builder = speakers("calm")
    builder.add_node("twice", failing(1), retry=AT_ONCE)
    builder.add_node("thrice", failing(2), retry=AT_ONCE, blocking=False)
    for name in ("thrice", "twice", "calm"):
        builder.add_edge(START, name)
    assert builder.build().run_sync().state == {"said": ["calm", "attempt 2", "attempt 3"]}


def test_a_failure_has_a_way_out_that_is_told_what_failed() -> None:
    builder = speakers("next")
    builder.add_node("risky", failing(9), retry=AT_ONCE, on_error="rescue")
    builder.add_node("rescue", lambda ctx: {"said": [f"{ctx.input['node']}: {ctx.input['message']}"]})
    builder.add_edge(START, "risky")
    builder.add_edge("risky", "next")
    result = builder.build().run_sync()
    assert (result.stop_reason, result.errors) == ("finished", ())
    assert result.state == {"said": ["risky: OSError: no line"]}


def test_what_cannot_be_a_policy_is_refused_at_once() -> None:
    for choices in (
        {"attempts": 0},
        {"attempts": 1_001},
        {"delay": -1},
        {"max_delay": float("nan")},
        {"jitter": 2},
    ):
        with pytest.raises(UsageError):
            RetryPolicy(**choices)


def test_what_cannot_be_a_timeout_or_a_way_out_is_named_at_build() -> None:
    builder = speakers()
    builder.add_node("a", saying("a"), timeout=0)
    builder.add_node("b", saying("b"), timeout=1, blocking=False)
    builder.add_node("c", saying("c"), on_error="c")
    with pytest.raises(GraphBuildError) as refused:
        builder.build()
    assert [(problem.code, problem.where) for problem in refused.value.problems] == [
        ("bad-timeout", "node 'a'"),
        ("bad-timeout", "node 'b'"),
        ("unknown-node", "node 'c'"),
    ]
