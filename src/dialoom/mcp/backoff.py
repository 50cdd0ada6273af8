"""How long to wait before the next attempt: longer each time, never in step with others, and not for ever."""

import random
from collections import deque
from typing import Final

FACTOR: Final = 3.0
JITTER: Final = 0.2


class Backoff:
    """Waits in seconds from `first` to `most`, each up to a fifth longer than its turn says."""

    def __init__(self, first: float, most: float, *, rng: random.Random | None = None) -> None:
        self._first = min(first, most)
        self._most = most
        self._next = self._first
        self._rng = rng or random.Random()  # noqa: S311 - for spreading attempts, not for secrets

    def next(self) -> float:
        """Return the wait that comes now."""
        wait = self._next
        self._next = min(wait * FACTOR, self._most)
        return wait * (1 + JITTER * self._rng.random())

    def at_least(self, seconds: float) -> None:
        """Let the next wait be as long as somebody asked for, within the bounds."""
        self._next = min(max(self._next, seconds), self._most)

    def reset(self) -> None:
        """Begin anew: something worked."""
        self._next = self._first


class Budget:
    """At most `count` starts within `seconds`; a program that ends at once is not started for ever."""

    def __init__(self, count: int, seconds: float) -> None:
        self._seconds = seconds
        self._starts: deque[float] = deque(maxlen=count)

    def spend(self, now: float) -> None:
        """Note a start at `now`."""
        self._starts.append(now)

    def wait(self, now: float) -> float:
        """Return for how long from `now` there must be no start; 0 when there may be one."""
        if len(self._starts) < (self._starts.maxlen or 0):
            return 0.0
        return max(0.0, self._starts[0] + self._seconds - now)
