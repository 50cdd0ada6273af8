"""Events on their way to one reader, who may be slow: bounded, and never in the way of the run."""

import asyncio
from collections import deque

import msgspec

from dialoom.dialog.events import (
    DialogEvent,
    Noticed,
    RunFailed,
    RunFinished,
    StreamDelta,
    StreamReasoning,
    ToolProgressed,
)

MAX_WAITING = 1000
MAX_JOINED = 4096
"""Characters of joined pieces, so that joining costs the same at any length."""
_PASSING = (StreamDelta, StreamReasoning, ToolProgressed, Noticed)


class Feed:
    """Events of one run, for one reader: an async iterator that ends behind the last event of the run.

    Pieces of text that the reader has not taken yet are joined, under the number of the newest. When 1,000
    events wait all the same, pieces and progress are dropped: what was said is in the log.
    """

    def __init__(self) -> None:
        self._events: deque[DialogEvent] = deque()
        self._news = asyncio.Event()
        self._is_over = False

    def put(self, event: DialogEvent) -> None:
        """Add `event`; called on the loop of the reader."""
        last = self._events[-1] if self._events else None
        match last, event:
            case (StreamDelta(text=text), StreamDelta()) | (
                StreamReasoning(text=text),
                StreamReasoning(),
            ) if len(text) < MAX_JOINED:
                self._events[-1] = msgspec.structs.replace(event, text=text + event.text)
            case _:
                self._add(event)
        self._is_over = isinstance(event, RunFinished | RunFailed)
        self._news.set()

    def __aiter__(self) -> "Feed":
        return self

    async def __anext__(self) -> DialogEvent:
        while not self._events:
            if self._is_over:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._events.popleft()

    def _add(self, event: DialogEvent) -> None:
        if len(self._events) < MAX_WAITING or not isinstance(event, _PASSING):
            self._events.append(event)
