"""Time as an argument: code that waits or stamps asks a clock, so that tests can own it."""

import time
from typing import Protocol


class Clock(Protocol):
    """What dialoom asks of time. `dialoom.testing.ManualClock` is the twin for tests."""

    def now(self) -> float:
        """Seconds since the Unix epoch, for stamps people see."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary point that never jump, for measuring and deadlines."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; the task may be cancelled meanwhile."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        import asyncio  # heavy, and a program that never waits does not need it

        await asyncio.sleep(seconds)


SYSTEM_CLOCK = SystemClock()
