"""Progress of a tool reaches whoever listens: in order, on the loop's thread, never at the tool's cost."""

import asyncio
import logging
import threading

import pytest

from dialoom.base.cancel import Cancelled
from dialoom.testing.clock import settle
from dialoom.tools import Progress, ToolContext, ToolRegistry, ToolRun, tool
from tests.tools.calls import PATIENCE, call


async def test_progress_from_a_thread_is_shown_on_the_loops_thread_and_in_order() -> None:
    shown: list[tuple[object, bool]] = []

    def listen(progress: Progress) -> None:
        shown.append((progress.value, threading.current_thread() is threading.main_thread()))

    @tool
    def count(ctx: ToolContext) -> str:
        for n in range(3):
            ctx.emit(n)
        return "counted"

    assert (
        await ToolRegistry([count]).execute(call("count"), ToolRun(on_progress=listen))
    ).content == "counted"
    assert shown == [(0, True), (1, True), (2, True)]


async def test_progress_that_nobody_takes_is_dropped_past_a_bound() -> None:
    shown: list[Progress] = []

    @tool
    def chatter(ctx: ToolContext) -> None:
        for n in range(5000):
            ctx.emit(n)

    context = ToolContext(ToolRun(on_progress=shown.append), call_id="c", tool_name="chatter")
    thread = threading.Thread(target=lambda: chatter(context))
    thread.start()
    thread.join(PATIENCE)  # the loop cannot look meanwhile
    await settle()
    assert [each.value for each in shown] == list(range(1000))


async def test_progress_after_the_stop_is_not_shown() -> None:
    shown: list[Progress] = []
    run = ToolRun(on_progress=shown.append)
    context = ToolContext(run, call_id="c", tool_name="t")
    thread = threading.Thread(target=lambda: context.emit("before the stop, shown too late"))
    thread.start()
    thread.join(PATIENCE)
    run.cancel.cancel()
    await settle()
    assert shown == []


def test_a_context_whose_loop_is_closed_shows_nothing() -> None:
    shown: list[Progress] = []

    async def make() -> ToolContext:
        return ToolContext(ToolRun(on_progress=shown.append), call_id="c", tool_name="t")

    context = asyncio.run(make())
    thread = threading.Thread(target=lambda: context.emit(1))
    thread.start()
    thread.join(PATIENCE)
    assert shown == []


async def test_progress_is_shown_while_the_tool_runs() -> None:
    shown: list[Progress] = []

    @tool
    async def count(ctx: ToolContext) -> str:
        ctx.emit(1)
        ctx.emit({"done": 0.5})
        return "counted"

    run = ToolRun(on_progress=shown.append)
    assert (await ToolRegistry([count]).execute(call("count"), run)).content == "counted"
    assert shown == [Progress("call_count", "count", 1), Progress("call_count", "count", {"done": 0.5})]


async def test_a_failing_listener_does_not_disturb_the_tool_nor_flood_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shown: list[object] = []

    def behind(progress: Progress) -> None:
        if progress.value in {1, 2}:
            raise ValueError("too far behind")
        shown.append(progress.value)

    @tool
    async def count(ctx: ToolContext) -> str:
        for number in range(4):
            ctx.emit(number)
        return "counted"

    with caplog.at_level(logging.ERROR):
        result = await ToolRegistry([count]).execute(call("count"), ToolRun(on_progress=behind))
    assert (result.content, shown) == ("counted", [0, 3])
    assert [record.message for record in caplog.records] == ["progress listener failed"]


def test_a_context_works_without_an_event_loop() -> None:
    shown: list[Progress] = []
    run = ToolRun(on_progress=shown.append)
    context = ToolContext(run, call_id="c1", tool_name="count")
    context.emit(1)
    context.raise_if_stopped()
    run.cancel.cancel()
    context.emit(2)
    assert shown == [Progress("c1", "count", 1)]
    with pytest.raises(Cancelled):
        context.raise_if_stopped()
    context.close()
