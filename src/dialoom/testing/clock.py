"""A clock that moves only when a test says so."""

import asyncio
import heapq
from itertools import count


class ManualClock:
    """Stands still until `advance`; sleepers wake in order of their deadline."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), wake))
        await wake

    @property
    def sleeping(self) -> int:
        """How many tasks wait on this clock."""
        return sum(not wake.done() for _, _, wake in self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Move time on, waking each sleeper at its own moment and letting it run before the next."""
        target = self._now + seconds
        while self._sleepers and self._sleepers[0][0] <= target:
            self._now, _, wake = heapq.heappop(self._sleepers)
            if not wake.done():
                wake.set_result(None)
                await settle()
        self._now = target
        await settle()


async def settle(rounds: int = 20) -> None:
    """Let every task that can run do so, without waiting for time."""
    for _ in range(rounds):
        await asyncio.sleep(0)
