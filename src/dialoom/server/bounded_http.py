"""Bounds on what comes before anybody is known: how many connections, and bytes and time of a head."""

import asyncio
import sys
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dialoom.server.hub import too_many

MAX_HEAD: Final = 64 * 1024
"""Bytes of a head that is not complete yet; one read more may be taken."""
HEAD_SECONDS = 30.0
_PROBLEM: Final = bytes(too_many().response("/").body)
_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-type: application/problem+json\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%s"
) % (len(_PROBLEM), _PROBLEM)
_END: Final = b"connection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _END
_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\n" + _END


MAX_REFUSED: Final = 200
"""So many connections beyond the bound are told so; what is beyond these is cut off without a word."""
REFUSED_SECONDS = 2.0
"""How long a connection beyond the bound has to say what it wants, and to read why it is refused."""


class BoundedHttp(HttpToolsProtocol):
    """uvicorn's protocol, which waits for a head for ever and keeps all of it; this ends the connection.

    Of uvicorn's `limit_concurrency`, which it looks at when a head is complete, connections are counted here
    from their beginning: one that is silent takes the place of another, too.
    """

    _is_extra = False
    _overdue: asyncio.TimerHandle | None = None
    """Runs while a head is waited for."""
    _head = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        extra = len(self.connections) - (self.limit_concurrency or sys.maxsize)
        self.limit_concurrency = None  # uvicorn would count those that are being refused against the others
        if extra < 0:
            self._await_head()
            return
        self._is_extra = True
        if extra >= MAX_REFUSED:
            transport.abort()
        else:
            self._overdue = self.loop.call_later(REFUSED_SECONDS, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_extra:
            # only now: who is told before it asked may find the connection broken, and not read the answer
            self.transport.write(_FULL)
            self.transport.close()
            return
        super().data_received(data)
        if self._overdue is not None:
            self._head += len(data)
            if self._head > MAX_HEAD:
                self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._has_head()
        self._await_head()

    def on_headers_complete(self) -> None:
        self._has_head()
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._head = 0
        self._overdue = self.loop.call_later(HEAD_SECONDS, self._refuse, _TOO_SLOW)

    def _has_head(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None

    def _refuse(self, answer: bytes) -> None:
        """End the connection; an answer that is under way on it is not mixed with another."""
        self._has_head()
        first = self.cycle is None  # pyright: ignore[reportUnnecessaryComparison] - it is, before the first request
        if first or self.cycle.response_complete:
            self.transport.write(answer)
        self.transport.close()
