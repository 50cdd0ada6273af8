"""The switch that ends waits, and the deadlines that trip it; time belongs to the test."""

import asyncio

import pytest

from dialoom.llm.deadlines import Deadlines
from dialoom.llm.options import Timeouts
from dialoom.llm.switch import StopSwitch
from dialoom.testing import ManualClock

TIMEOUTS = Timeouts(first_event=30, idle=10, total=100)


class LateError(Exception):
    """What the deadlines of these tests raise."""


async def forever() -> None:
    await asyncio.Event().wait()


async def test_tripping_ends_the_wait_under_way_and_refuses_the_next() -> None:
    with StopSwitch() as switch:
        task = asyncio.create_task(switch.wait(forever))
        await asyncio.sleep(0)
        switch.trip(LateError("first"))
        switch.trip(LateError("second"))
        with pytest.raises(LateError, match="first"):
            await task
        with pytest.raises(LateError, match="first"):
            await switch.wait(forever)


async def test_a_wait_that_nobody_disturbs_gives_its_value_or_its_error() -> None:
    async def give() -> int:
        await asyncio.sleep(0)
        return 7

    async def fail() -> int:
        raise KeyError("own")

    with StopSwitch() as switch:
        assert await switch.wait(give) == 7
        with pytest.raises(KeyError, match="own"):
            await switch.wait(fail)


async def test_an_error_that_answers_the_interruption_comes_first() -> None:
    async def breaks_when_disturbed() -> None:
        try:
            await forever()
        except asyncio.CancelledError:
            raise ConnectionError("broke") from None

    with StopSwitch() as switch:
        task = asyncio.create_task(switch.wait(breaks_when_disturbed))
        await asyncio.sleep(0)
        switch.trip(LateError("tripped"))
        with pytest.raises(ConnectionError, match="broke"):
            await task
        assert task.cancelling() == 0
        with pytest.raises(LateError, match="tripped"):
            switch.check()


async def late_after(
    clock: ManualClock, seconds: float, *, began: bool = False, tail: float | None = None
) -> str:
    """Wait under the deadlines while `seconds` pass; return what the error says, empty when there is none."""
    with StopSwitch() as switch:
        async with Deadlines(TIMEOUTS, switch, clock=clock, late=LateError) as deadlines:
            await asyncio.sleep(0)
            if began:
                deadlines.began()
                deadlines.began()
            if tail is not None:
                deadlines.shorten(tail)
                deadlines.shorten(tail + 1)
            task = asyncio.create_task(deadlines.wait(forever))
            await asyncio.sleep(0)
            await clock.advance(seconds)
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
                return ""
            return str(task.exception())


async def test_an_answer_that_does_not_begin_is_late() -> None:
    assert await late_after(ManualClock(), 29.9) == ""
    assert await late_after(ManualClock(), 30) == "did not begin to answer within 30 s"


async def test_an_answer_that_falls_silent_is_late() -> None:
    assert await late_after(ManualClock(), 9.9, began=True) == ""
    assert await late_after(ManualClock(), 10, began=True) == "sent nothing for 10 s"
    assert await late_after(ManualClock(), 2, began=True, tail=2) == "sent nothing for 2 s"


async def test_an_answer_that_takes_too_long_is_late_even_when_it_talks_on() -> None:
    clock = ManualClock()
    with StopSwitch() as switch:
        async with Deadlines(TIMEOUTS, switch, clock=clock, late=LateError) as deadlines:
            deadlines.began()
            with pytest.raises(LateError, match="did not finish within 100 s"):
                for _ in range(40):
                    piece = asyncio.create_task(deadlines.wait(lambda: asyncio.sleep(0)))
                    await clock.advance(5)
                    await piece


async def test_a_slow_reader_is_not_the_servers_fault() -> None:
    clock = ManualClock()
    with StopSwitch() as switch:
        async with Deadlines(TIMEOUTS, switch, clock=clock, late=LateError) as deadlines:
            deadlines.began()
            for _ in range(4):
                await deadlines.wait(lambda: asyncio.sleep(0))
                await clock.advance(20)
            switch.check()
