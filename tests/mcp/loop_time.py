"""The time of the running event loop, moved by hand: for code whose waits are the loop's own timers."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dialoom.testing.clock import settle


class LoopTime:
    """Stands still until `advance`."""

    def __init__(self, start: float) -> None:
        self._now = start

    def __call__(self) -> float:
        return self._now

    async def advance(self, seconds: float) -> None:
        """Move time on, and let what is due run."""
        self._now += seconds
        await settle()


@contextmanager
def loop_time() -> Iterator[LoopTime]:
    """Take the clock of the running loop away from it while inside."""
    loop = asyncio.get_running_loop()
    time = LoopTime(loop.time())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "time", time)
        yield time
