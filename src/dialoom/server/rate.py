"""Token buckets: how often somebody may call."""

from collections import OrderedDict

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.server.settings import RateLimit

MAX_CALLERS = 10_000


class Buckets:
    """One bucket for each caller; the one that called longest ago is forgotten beyond 10,000."""

    def __init__(self, limit: RateLimit, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._limit = limit
        self._clock = clock
        self._filled: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> float:
        """Take one call; return 0, or the seconds after which one would be had, and take none."""
        now = self._clock.monotonic()
        level, since = self._filled.pop(caller, (float(self._limit.burst), now))
        level = min(self._limit.burst, level + (now - since) * self._limit.per_second)
        wait = 0.0 if level >= 1 else (1 - level) / self._limit.per_second
        self._filled[caller] = (level if wait else level - 1, now)
        if len(self._filled) > MAX_CALLERS:
            self._filled.popitem(last=False)
        return wait
