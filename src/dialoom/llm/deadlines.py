"""Ends an answer that takes too long."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Self, TypeVar

from dialoom.base.clock import Clock
from dialoom.llm.options import Timeouts
from dialoom.llm.switch import StopSwitch

_T = TypeVar("_T")


def seconds(bound: float) -> str:
    """Return a bound as people read it: what is left of a longer wait is rarely a round number."""
    return f"{round(bound, 1):g} s" if bound >= 1 else f"{bound:.1g} s"


class Deadlines:
    """Trips `switch` when an answer is late by one of the `timeouts`. An async context manager.

    Only time spent in `wait` counts as the server's silence: a slow reader of the events is not its fault.
    """

    def __init__(
        self, timeouts: Timeouts, switch: StopSwitch, *, clock: Clock, late: Callable[[str], BaseException]
    ) -> None:
        """`late` makes the error from words like `sent nothing for 30 s`."""
        self._timeouts = timeouts
        self._switch = switch
        self._clock = clock
        self._late = late
        self._start = clock.monotonic()
        self._silent_since = self._start
        self._idle = timeouts.idle
        self._began = False
        self._watchers: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._watch_anew()
        return self

    async def __aexit__(self, *_: object) -> None:
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.wait(self._watchers)

    def began(self) -> None:
        """The answer has begun: from now on `idle` counts instead of `first_event`."""
        if not self._began:
            self._began = True
            self._watch_anew()

    def shorten(self, idle: float) -> None:
        """Wait at most `idle` seconds at a time for what may still come."""
        if idle < self._idle:
            self._idle = idle
            self._watch_anew()

    def wait(self, step: Callable[[], Awaitable[_T]]) -> Coroutine[object, object, _T]:
        """Wait for what `step()` gives, unless the switch is tripped first."""
        self._silent_since = self._clock.monotonic()
        return self._switch.wait(step)

    def _watch_anew(self) -> None:
        # a watcher sleeps until the earliest moment it knew of, so an earlier one needs another
        if self._watchers:
            self._watchers[-1].cancel()
        self._watchers.append(asyncio.create_task(self._watch()))

    async def _watch(self) -> None:
        while (left := self._left()) > 0:
            await self._clock.sleep(left)
        self._switch.trip(self._late(self._why()))

    def _left(self) -> float:
        """Return the seconds until the answer may be late."""
        now = self._clock.monotonic()
        total = self._start + self._timeouts.total - now
        if not self._began:
            return min(total, self._start + self._timeouts.first_event - now)
        if not self._switch.is_waiting:
            return min(total, self._idle)
        return min(total, self._silent_since + self._idle - now)

    def _why(self) -> str:
        if self._clock.monotonic() - self._start >= self._timeouts.total:
            return f"did not finish within {seconds(self._timeouts.total)}"
        if not self._began:
            return f"did not begin to answer within {seconds(self._timeouts.first_event)}"
        return f"sent nothing for {seconds(self._idle)}"
