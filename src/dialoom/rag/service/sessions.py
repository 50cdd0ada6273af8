"""Conversations of a service: each remembers its newest messages, the longest resting one is forgotten."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dialoom.llm import Message

SessionKey = tuple[str, tuple[str, ...] | None]
"""A session's id and who asks in it: what one was told, another does not hear."""


class Session:
    """What was said so far. One question at a time: a second one waits for the first one's answer."""

    def __init__(self) -> None:
        self.history: list[Message] = []
        self.lock = asyncio.Lock()


class Sessions:
    """Sessions by key, at most `most` of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sessions: OrderedDict[SessionKey, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    @asynccontextmanager
    async def turn(self, key: SessionKey | None) -> AsyncGenerator[Session]:
        """The session for one question; a fresh one that is not kept when there is no key."""
        session = Session() if key is None else self._get(key)
        async with session.lock:
            yield session

    def _get(self, key: SessionKey) -> Session:
        session = self._sessions.setdefault(key, Session())
        self._sessions.move_to_end(key)
        while len(self._sessions) > self._most:
            self._sessions.popitem(last=False)
        return session
