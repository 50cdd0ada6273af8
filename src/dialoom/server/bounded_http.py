"""Bounds on the head of a request, which comes before anybody is known: its bytes, and its time."""

import asyncio
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD: Final = 64 * 1024
"""Bytes of a head that is not complete yet; one read more may be taken."""
HEAD_SECONDS = 30.0
_END: Final = b"connection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _END
_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\n" + _END


class BoundedHttp(HttpToolsProtocol):
    """uvicorn's protocol, which waits for a head for ever and keeps all of it; this ends the connection."""

    _overdue: asyncio.TimerHandle | None = None
    """Runs while a head is waited for."""
    _head = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
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
