"""The system clock measures, the manual clock obeys."""

import asyncio

from dialoom.base.clock import SYSTEM_CLOCK
from dialoom.testing import ManualClock
from dialoom.testing.clock import settle


async def test_the_system_clock_stamps_measures_and_waits() -> None:
    began = SYSTEM_CLOCK.monotonic()
    await SYSTEM_CLOCK.sleep(0)
    assert SYSTEM_CLOCK.monotonic() >= began
    assert SYSTEM_CLOCK.now() > 1_700_000_000


async def test_sleepers_wake_in_order_of_their_deadline_at_their_own_moment() -> None:
    clock, woken = ManualClock(start=0.0), []

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((seconds, clock.now()))

    async with asyncio.TaskGroup() as tasks:
        for seconds in (3.0, 1.0, 2.0, 0.0):
            tasks.create_task(sleeper(seconds))
        await settle()
        assert (woken, clock.sleeping) == ([(0.0, 0.0)], 3)
        await clock.advance(2.5)
        assert woken[1:] == [(1.0, 1.0), (2.0, 2.0)]
        await clock.advance(0.5)
    assert (woken[-1], clock.monotonic()) == ((3.0, 3.0), 3.0)


async def test_a_cancelled_sleeper_is_passed_over() -> None:
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(1))
    await settle()
    task.cancel()
    await settle()
    await clock.advance(2)
    assert task.cancelled()
