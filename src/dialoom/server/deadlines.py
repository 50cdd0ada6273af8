"""Moments at which something is to be done about a conversation, and the one task that waits for them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from dialoom.base.clock import Clock

MAX_DEADLINES: Final = 10_000
"""So many are waited for; what is beyond comes due when somebody next looks at it."""
LONGEST_SLEEP: Final = 3600.0
"""Seconds after which the clock is looked at again: a machine that slept did not wait meanwhile."""

_log = logging.getLogger("dialoom.server")


class Deadlines:
    """The next moment of each conversation, in seconds since the Unix epoch. For one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moments: dict[str, float] = {}
        self._changed = asyncio.Event()

    def put(self, conversation_id: str, moment: float | None) -> None:
        """Wait for `moment` in place of what was waited for; None is for nothing."""
        if moment is None:
            self._moments.pop(conversation_id, None)
        elif conversation_id in self._moments or len(self._moments) < MAX_DEADLINES:
            self._moments[conversation_id] = moment
            self._changed.set()

    async def watch(self, come: Callable[[str], Awaitable[object]]) -> None:
        """Call `come` with each conversation whose moment has come, once; goes on until it is cancelled."""
        while True:
            self._changed.clear()
            now = self._clock.now()
            due = [name for name, moment in self._moments.items() if moment <= now]
            for name in due:
                self._moments.pop(name, None)
                try:
                    await come(name)
                except Exception:  # noqa: BLE001 - seam: one conversation's failure must not end the others
                    _log.exception("an overdue question could not be closed", extra={"conversation": name})
            if not due:
                await self._sleep(min(self._moments.values(), default=now + LONGEST_SLEEP) - now)

    async def _sleep(self, seconds: float) -> None:
        """Wait so long, or until there is another moment to wait for."""
        waits = {
            asyncio.ensure_future(self._clock.sleep(min(seconds, LONGEST_SLEEP))),
            asyncio.ensure_future(self._changed.wait()),
        }
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
