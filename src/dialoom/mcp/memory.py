"""Two ends of a connection inside one process: what is sent into one comes out of the other."""

import asyncio
from collections import deque
from typing import Final, Self

from dialoom.mcp.transport import Line

MOST_WAITING: Final = 1024
"""Lines that may wait for the other side; then the sender waits."""


class MemoryTransport:
    """`LineTransport` without a process or a network: the twin of the others, for tests and examples.

    Closing one end ends both; what was sent before is still received.
    """

    def __init__(self, incoming: "_Lane", outgoing: "_Lane") -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    @classmethod
    def pair(cls) -> tuple[Self, Self]:
        """Return two ends that belong together."""
        there, back = _Lane(), _Lane()
        return cls(there, back), cls(back, there)

    async def open(self) -> None:
        """There is nothing to open."""

    async def send(self, line: bytes) -> None:
        await self._outgoing.put(line)

    async def receive(self) -> Line | None:
        return await self._incoming.get()

    async def aclose(self, *, hurry: bool = False) -> None:  # noqa: ARG002 - of the protocol
        self._incoming.close()
        self._outgoing.close()


class _Lane:
    """Lines on their way in one direction."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._closed = False
        self._news = asyncio.Event()
        self._room = asyncio.Event()

    async def put(self, line: bytes) -> None:
        while len(self._lines) >= MOST_WAITING and not self._closed:
            self._room.clear()
            await self._room.wait()
        if self._closed:
            raise BrokenPipeError("the other end is closed")
        self._lines.append(line)
        self._news.set()

    async def get(self) -> bytes | None:
        while not self._lines:
            if self._closed:
                return None
            self._news.clear()
            await self._news.wait()
        self._room.set()
        return self._lines.popleft()

    def close(self) -> None:
        self._closed = True
        self._news.set()
        self._room.set()
