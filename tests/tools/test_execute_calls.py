"""The calls of one round: together, in order, bounded, and stopped at once when that is asked."""

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Coroutine

import pytest

from dialoom.base.cancel import CancelScope
from dialoom.base.errors import UsageError
from dialoom.llm.messages import ToolCall
from dialoom.testing.clock import ManualClock, settle
from dialoom.tools import (
    StoppableTool,
    ToolContext,
    ToolExecutionPolicy,
    ToolRegistry,
    ToolRun,
    execute_calls,
    tool,
)
from tests.tools.calls import PATIENCE, becomes_true, call, facts, happened


class Interrupt(BaseException):
    """Control flow of an engine."""


class Desk:
    """Async tools that wait until they are let go, and who is at it now."""

    def __init__(self) -> None:
        self.open: dict[int, asyncio.Event] = {}
        self.started: list[int] = []
        self.running = self.most = 0
        self.registry = ToolRegistry([tool(name="work")(self.work)])

    async def work(self, n: int) -> str:
        self.started.append(n)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.open.setdefault(n, asyncio.Event()).wait()
        finally:
            self.running -= 1
        return f"work {n}"

    def calls(self, count: int) -> list[ToolCall]:
        return [call("work", n=n) for n in range(count)]

    def let_go(self, n: int) -> None:
        self.open[n].set()


class Blocked:
    """A sync tool that blocks its thread until it is freed."""

    def __init__(self) -> None:
        self.started, self.free = threading.Event(), threading.Event()
        self.registry = ToolRegistry([tool(name="block")(self.block)])

    def block(self) -> str:
        self.started.set()
        self.free.wait(PATIENCE)
        return "too late"


@pytest.mark.promise("agent-024")
async def test_the_calls_of_a_round_run_at_the_same_time_and_answer_in_their_order() -> None:
    desk = Desk()
    round_ = asyncio.create_task(execute_calls(desk.registry, desk.calls(3)))
    await settle()
    assert (desk.started, desk.running) == ([0, 1, 2], 3)
    for n in (2, 0, 1):
        desk.let_go(n)
        await settle()
    assert [result.content for result in await round_] == ["work 0", "work 1", "work 2"]


async def test_sync_tools_run_at_the_same_time_too() -> None:
    meeting = threading.Barrier(3)

    @tool
    def meet(n: int) -> int:
        meeting.wait(PATIENCE)
        return n

    results = await execute_calls(ToolRegistry([meet]), [call("meet", n=n) for n in range(3)])
    assert [result.content for result in results] == ["0", "1", "2"]


@pytest.mark.promise("agent-025")
async def test_no_more_calls_run_at_once_than_the_policy_lets() -> None:
    desk = Desk()
    policy = ToolExecutionPolicy(max_concurrency=2)
    round_ = asyncio.create_task(execute_calls(desk.registry, desk.calls(5), policy=policy))
    for n in range(5):
        await settle()
        assert desk.running == min(2, 5 - n)
        desk.let_go(n)
    assert len(await round_) == 5
    assert (desk.most, desk.started) == (2, [0, 1, 2, 3, 4])


async def test_a_policy_that_is_not_parallel_runs_one_call_after_another() -> None:
    desk = Desk()
    policy = ToolExecutionPolicy(parallel=False)
    round_ = asyncio.create_task(execute_calls(desk.registry, desk.calls(3), policy=policy))
    for n in range(3):
        await settle()
        assert desk.started == list(range(n + 1))
        desk.let_go(n)
    await round_
    assert desk.most == 1


async def test_no_calls_give_no_results() -> None:
    assert await execute_calls(ToolRegistry(), []) == ()


@pytest.mark.promise("agent-028", "agent-029", "agent-031")
async def test_a_sync_tool_that_takes_too_long_is_told_as_timed_out_while_its_thread_still_blocks() -> None:
    blocked, clock = Blocked(), ManualClock()
    policy = ToolExecutionPolicy(timeout=10)
    run = ToolRun(clock=clock)
    waiting = asyncio.create_task(execute_calls(blocked.registry, [call("block")], policy=policy, run=run))
    await happened(blocked.started)
    await clock.advance(10)
    (result,) = await waiting
    expected = {"error": "the tool took longer than 10 s", "timeout": True, "tool": "block"}
    assert (facts(result), result.structured) == (expected, expected)
    assert (result.is_error, result.timeout, result.cancelled) == (True, True, False)
    assert (blocked.free.is_set(), blocked.registry.late_results) == (False, 0)
    blocked.free.set()
    await becomes_true(lambda: blocked.registry.late_results == 1)


async def test_a_tools_own_timeout_goes_before_the_policys() -> None:
    clock = ManualClock()

    @tool(timeout=1)
    async def quick() -> None:
        await asyncio.Event().wait()

    policy = ToolExecutionPolicy(timeout=None)
    task = asyncio.create_task(
        ToolRegistry([quick]).execute(call("quick"), ToolRun(clock=clock), policy=policy)
    )
    await settle()
    await clock.advance(1)
    assert facts(await task)["error"] == "the tool took longer than 1 s"


async def test_without_a_timeout_a_tool_takes_as_long_as_it_takes() -> None:
    desk = Desk()
    policy = ToolExecutionPolicy(timeout=None)
    task = asyncio.create_task(desk.registry.execute(desk.calls(1)[0], policy=policy))
    await settle()
    desk.let_go(0)
    assert (await task).content == "work 0"


@pytest.mark.promise("agent-030", "agent-032")
async def test_a_tool_that_times_out_is_told_to_stop_in_both_ways() -> None:
    class Patient(StoppableTool):
        """Looks whether to stop, and can be woken."""

        name = "patient"

        def __init__(self) -> None:
            self.started, self.woken, self.ended = threading.Event(), threading.Event(), threading.Event()
            self.saw: list[bool] = []

        def run_with_cancel(self, args: dict[str, object], should_stop: Callable[[], bool]) -> str:
            self.saw.append(should_stop())
            self.started.set()
            self.woken.wait(PATIENCE)
            self.saw.append(should_stop())
            self.ended.set()
            return "stopped early"

        def cancel(self) -> None:
            self.woken.set()

    patient, clock = Patient(), ManualClock()
    registry = ToolRegistry([patient])
    policy = ToolExecutionPolicy(timeout=3)
    task = asyncio.create_task(registry.execute(call("patient"), ToolRun(clock=clock), policy=policy))
    await happened(patient.started)
    await clock.advance(3)
    assert (await task).timeout
    await happened(patient.ended)
    assert patient.saw == [False, True]


async def test_a_cancel_hook_that_fails_is_logged_only(caplog: pytest.LogCaptureFixture) -> None:
    told = threading.Event()

    class Stubborn(StoppableTool):
        """Fails at being cancelled."""

        name = "stubborn"

        async def run_with_cancel(self, args: dict[str, object], should_stop: Callable[[], bool]) -> None:
            await asyncio.Event().wait()

        def cancel(self) -> None:
            told.set()
            raise ValueError("cannot")

    run = ToolRun()
    with caplog.at_level(logging.ERROR):
        task = asyncio.create_task(ToolRegistry([Stubborn()]).execute(call("stubborn"), run))
        await settle()
        run.cancel.cancel()
        assert (await task).cancelled
        await happened(told)
        await becomes_true(lambda: [each.message for each in caplog.records] == ["cancelling a tool failed"])


async def test_a_coroutine_that_comes_too_late_is_closed_and_not_left_to_warn() -> None:
    """A plain function may hand out a coroutine; cancelled before it does, nobody will ever await that."""
    inside, go_on, handed_out = threading.Event(), threading.Event(), threading.Event()
    late: list[Coroutine[object, object, None]] = []

    class Slow(StoppableTool):
        """Thinks before it hands out its coroutine."""

        name = "slow"

        def run_with_cancel(self, args: dict[str, object], should_stop: Callable[[], bool]) -> object:
            inside.set()
            go_on.wait(PATIENCE)
            late.append(self._rest())
            handed_out.set()
            return late[0]

        async def _rest(self) -> None:
            await asyncio.Event().wait()

    run, registry = ToolRun(), ToolRegistry([Slow()])
    task = asyncio.create_task(registry.execute(call("slow"), run))
    await happened(inside)
    run.cancel.cancel()
    assert (await task).cancelled
    go_on.set()
    await happened(handed_out)
    await becomes_true(lambda: inspect.getcoroutinestate(late[0]) == inspect.CORO_CLOSED)
    assert registry.late_results == 1


async def test_cancelling_the_run_returns_at_once_with_an_answer_for_every_call() -> None:
    desk, blocked = Desk(), Blocked()
    desk.registry.add(tool(name="block")(blocked.block))
    scope = CancelScope()
    policy = ToolExecutionPolicy(max_concurrency=3)
    calls = [desk.calls(1)[0], call("block"), call("work", n=1), call("work", n=2)]
    before = asyncio.all_tasks()
    round_ = asyncio.create_task(
        execute_calls(desk.registry, calls, policy=policy, run=ToolRun(cancel=scope))
    )
    await happened(blocked.started)
    desk.let_go(0)
    await settle()
    threading.Thread(target=scope.cancel).start()
    done, *others = await asyncio.wait_for(round_, PATIENCE)
    assert (done.content, done.is_error) == ("work 0", False)
    assert [facts(each) for each in others] == [
        {"error": "the call was cancelled", "cancelled": True, "tool": name}
        for name in ("block", "work", "work")
    ]
    assert all(each.cancelled and each.is_error for each in others)
    assert (desk.running, asyncio.all_tasks()) == (0, before)
    blocked.free.set()
    await becomes_true(lambda: desk.registry.late_results == 1)


async def test_the_end_of_the_runs_own_time_is_not_blamed_on_the_tool() -> None:
    desk, run = Desk(), ToolRun()
    round_ = asyncio.create_task(execute_calls(desk.registry, desk.calls(1), run=run))
    await settle()
    run.cancel.cancel("timeout")
    (result,) = await round_
    assert (result.cancelled, result.timeout) == (True, False)


async def test_a_run_that_was_cancelled_before_runs_nothing() -> None:
    desk, run = Desk(), ToolRun()
    run.cancel.cancel()
    results = await execute_calls(desk.registry, desk.calls(2), run=run)
    assert [result.cancelled for result in results] == [True, True]
    assert (await desk.registry.execute(desk.calls(1)[0], run)).cancelled
    assert desk.started == []


async def test_a_tool_that_leaves_when_it_is_told_to_stop_is_cancelled_like_any_other() -> None:
    started = threading.Event()
    stop = threading.Event()
    left = threading.Event()

    @tool
    def polite(ctx: ToolContext) -> None:
        started.set()
        stop.wait(PATIENCE)
        try:
            ctx.raise_if_stopped()
        finally:
            left.set()

    run = ToolRun()
    task = asyncio.create_task(ToolRegistry([polite]).execute(call("polite"), run))
    await happened(started)
    run.cancel.cancel()
    stop.set()
    assert (await task).cancelled
    await happened(left)


async def test_an_async_tool_that_leaves_after_a_stop_counts_as_cancelled_and_not_as_late() -> None:
    @tool
    async def polite(ctx: ToolContext) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ctx.raise_if_stopped()

    run, registry = ToolRun(), ToolRegistry([polite])
    task = asyncio.create_task(registry.execute(call("polite"), run))
    await settle()
    run.cancel.cancel()
    assert (await task).cancelled
    assert registry.late_results == 0


async def test_an_async_tool_that_will_not_stop_is_left_to_itself_after_its_grace() -> None:
    clock, go = ManualClock(), asyncio.Event()
    before = asyncio.all_tasks()

    @tool
    async def stubborn(fails: bool) -> str:
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue
        if fails:
            raise Interrupt
        return "done anyway"

    registry = ToolRegistry([stubborn])
    policy = ToolExecutionPolicy(timeout=5, grace=2)
    run = ToolRun(clock=clock)
    calls = [call("stubborn", fails=False), call("stubborn", fails=True)]
    round_ = asyncio.create_task(execute_calls(registry, calls, policy=policy, run=run))
    await settle()
    await clock.advance(5)
    assert not round_.done()
    await clock.advance(2)
    assert [result.timeout for result in await round_] == [True, True]
    assert registry.late_results == 0
    go.set()
    await settle()
    assert (registry.late_results, asyncio.all_tasks()) == (2, before)


async def test_cancelling_the_task_stops_the_tools_and_leaves_no_task_behind() -> None:
    desk, blocked = Desk(), Blocked()
    desk.registry.add(tool(name="block")(blocked.block))
    before = asyncio.all_tasks()
    round_ = asyncio.create_task(execute_calls(desk.registry, [*desk.calls(2), call("block")]))
    await happened(blocked.started)
    round_.cancel()
    with pytest.raises(asyncio.CancelledError):
        await round_
    assert (desk.running, asyncio.all_tasks()) == (0, before)
    blocked.free.set()


async def test_control_flow_of_one_tool_stops_the_others_and_comes_through_as_itself() -> None:
    desk = Desk()

    @tool
    async def ask() -> None:
        raise Interrupt

    desk.registry.add(ask)
    with pytest.raises(Interrupt):
        await execute_calls(desk.registry, [*desk.calls(2), call("ask")])
    assert desk.running == 0


async def test_an_unknown_tool_can_end_the_round() -> None:
    desk = Desk()
    policy = ToolExecutionPolicy(on_unknown="raise")
    with pytest.raises(UsageError, match="there is no tool 'play'; registered are: work"):
        await execute_calls(desk.registry, [*desk.calls(1), call("play")], policy=policy)


async def test_cancelling_during_the_pause_before_a_retry_ends_it() -> None:
    clock, run_scope, tries = ManualClock(), CancelScope(), []

    @tool(idempotent=True)
    async def flaky() -> None:
        tries.append(1)
        raise OSError

    policy = ToolExecutionPolicy(retry_idempotent=5, retry_delay=60)
    run = ToolRun(clock=clock, cancel=run_scope)
    task = asyncio.create_task(ToolRegistry([flaky]).execute(call("flaky"), run, policy=policy))
    await settle()
    run_scope.cancel()
    assert (await task).cancelled
    assert tries == [1]


def test_a_tool_may_outlive_its_loop() -> None:
    blocked, shown, emitted = Blocked(), [], threading.Event()

    @tool
    def outlive(ctx: ToolContext) -> str:
        blocked.block()
        ctx.emit("anybody there?")
        emitted.set()
        return "late"

    registry, scope = ToolRegistry([outlive]), CancelScope()

    async def main() -> None:
        run = ToolRun(cancel=scope, on_progress=shown.append)
        task = asyncio.create_task(registry.execute(call("outlive"), run))
        await happened(blocked.started)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    scope.cancel()
    blocked.free.set()
    assert emitted.wait(PATIENCE)
    assert shown == []
