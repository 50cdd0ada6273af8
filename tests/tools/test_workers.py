"""Blocking tools run on worker threads: few of them, used again, and never a reason to wait."""

import asyncio
import contextvars
import threading

import pytest

from dialoom.tools import Tool, ToolContext, ToolRegistry, ToolRun, execute_calls, tool
from dialoom.tools.workers import Workers
from tests.tools.calls import PATIENCE, call, happened


async def test_a_tool_is_told_to_stop_even_when_every_thread_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Stuck(Tool):
        """Waits until it is cancelled."""

        name = "stuck"

        def __init__(self) -> None:
            self.started, self.woken = threading.Event(), threading.Event()

        def run(self, args: dict[str, object], ctx: ToolContext) -> None:
            self.started.set()
            self.woken.wait(PATIENCE)

        def cancel(self) -> None:
            self.woken.set()

    stuck, run, single = Stuck(), ToolRun(), Workers(size=1)
    monkeypatch.setattr("dialoom.tools.attempt.tool_workers", lambda: single)
    calls = [call("stuck"), call("stuck")]
    round_ = asyncio.create_task(execute_calls(ToolRegistry([stuck]), calls, run=run))
    await happened(stuck.started)
    run.cancel.cancel()
    assert [result.cancelled for result in await round_] == [True, True]
    await happened(stuck.woken)


async def test_context_variables_reach_sync_and_async_tools() -> None:
    user = contextvars.ContextVar("user", default="nobody")
    user.set("Ada")

    @tool
    def here() -> str:
        return f"{user.get()} {threading.current_thread() is threading.main_thread()}"

    @tool
    async def there() -> str:
        return f"{user.get()} {threading.current_thread() is threading.main_thread()}"

    results = await execute_calls(ToolRegistry([here, there]), [call("here"), call("there")])
    assert [result.content for result in results] == ["Ada False", "Ada True"]


async def test_a_plain_function_that_returns_an_awaitable_is_awaited() -> None:
    async def later(n: int) -> int:
        return n + 1

    @tool
    def wrapped(n: int) -> object:
        return later(n)

    assert (await ToolRegistry([wrapped]).execute(call("wrapped", n=1))).content == "2"


def test_workers_stay_within_their_number_and_are_used_again() -> None:
    workers = Workers(size=2)
    gate, names = threading.Event(), set[str]()

    def job() -> None:
        gate.wait(PATIENCE)
        names.add(threading.current_thread().name)

    jobs = [workers.submit(job) for _ in range(6)]
    gate.set()
    for each in jobs:
        each.result(PATIENCE)
    assert len(names) <= 2


def test_a_job_that_was_cancelled_before_its_turn_never_starts() -> None:
    workers = Workers(size=1)
    gate, ran = threading.Event(), []
    first = workers.submit(lambda: gate.wait(PATIENCE))
    second = workers.submit(lambda: ran.append(1))
    assert second.cancel()
    gate.set()
    assert first.result(PATIENCE)
    assert workers.submit(lambda: "third").result(PATIENCE) == "third"
    assert ran == []
