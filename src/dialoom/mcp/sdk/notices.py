"""The stream of notices a server holds open, as one body that never ends: broken, it is opened again."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Final

import httpx2

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.mcp.backoff import Backoff
from dialoom.mcp.sdk.outlet import read_events
from dialoom.net.sse import SseEvent

_log = logging.getLogger("dialoom.mcp")

UNSUPPORTED: Final = frozenset({404, 405, 501})
LONG_LIFE: Final = 30.0
"""A stream that lived so many seconds was a good one, though it may have said nothing."""

Open = Callable[[str], AbstractAsyncContextManager[httpx2.Response]]
"""Asks for the stream anew, after the event with the id given."""


class NoticeStream(httpx2.AsyncByteStream):
    """Whole events from one connection after the other; between two it waits as its `Backoff` says.

    It says nothing more, for ever, when the server has no such stream. `on_gap` is called when events may
    have been missed, `on_lost` when a stream that once worked is not known any more.
    """

    def __init__(
        self,
        open_stream: Open,
        backoff: Backoff,
        *,
        on_gap: Callable[[], None],
        on_lost: Callable[[], None],
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._open = open_stream
        self._backoff = backoff
        self._on_gap = on_gap
        self._on_lost = on_lost
        self._clock = clock
        self._last_id = ""
        self._opened = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            began = self._clock.monotonic()
            try:
                async with self._open(self._last_id) as response, aclosing(self._events(response)) as events:
                    if response.status_code in UNSUPPORTED:
                        break
                    async for event in events:
                        yield _written(event)
            except Exception as error:  # noqa: BLE001 - seam: a stream that breaks, however, is what this is for
                _log.debug("the stream of notices broke", extra={"error": type(error).__name__})
            if self._clock.monotonic() - began >= LONG_LIFE:
                self._backoff.reset()
            await self._clock.sleep(self._backoff.next())
        if self._opened:
            self._on_lost()
        await asyncio.Event().wait()

    async def _events(self, response: httpx2.Response) -> AsyncGenerator[SseEvent]:
        response.raise_for_status()
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "text/event-stream":
            return
        self._opened += 1
        if self._opened > 1:
            self._on_gap()
        async with aclosing(read_events(response)) as events:
            async for event in events:
                self._last_id = event.id
                if event.data:
                    self._backoff.reset()
                if event.retry is not None:
                    self._backoff.at_least(event.retry / 1000)
                yield event


def _written(event: SseEvent) -> bytes:
    lines = [f"id: {event.id}"] if event.id else []
    lines += [f"event: {event.event}", *(f"data: {line}" for line in event.data.split("\n"))]
    return ("\n".join(lines) + "\n\n").encode()
