"""Bounds on what comes before anybody is known: connections, and bytes and time of what is sent and read."""

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


REST_SECONDS = 10.0
"""How long a request may go on that was answered before it was whole."""
STALLED_SECONDS = 60.0
"""How long somebody may read nothing of what is written; who comes back goes on where it was."""
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
    _rest: asyncio.TimerHandle | None = None
    """Runs while what is left of a request comes, whose answer was given already."""
    _stalled: asyncio.TimerHandle | None = None
    """Runs while nobody reads what was written."""
    _is_whole = False
    _unused = 0
    """Bytes that came since a head, a piece of a body or a request was complete."""

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
        for timer in (self._overdue, self._rest, self._stalled):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_extra:
            # only now: who is told before it asked may find the connection broken, and not read the answer
            self.transport.write(_FULL)
            self.transport.close()
            return
        self._unused += len(data)
        super().data_received(data)
        # of a head, of the headers behind a body, or of a chunk that never begins
        if self._unused > MAX_HEAD:
            self._refuse(_TOO_LARGE)
        elif self._overdue is None and self._is_whole and self.cycle.response_complete:
            # what began no request, as an empty line, ended uvicorn's wait for one all the same
            self._await_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_whole = False
        self._has_head()
        self._await_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._overdue is not None:  # headers behind a body would be taken for those before it
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unused = 0
        self._has_head()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unused = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unused = 0
        self._is_whole = True
        if self._rest is not None:
            self._rest.cancel()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and not self._is_whole:
            # uvicorn waits for ever for more of it, once a single byte has come
            self._rest = self.loop.call_later(REST_SECONDS, self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self.loop.call_later(STALLED_SECONDS, self.transport.abort)  # the end is waited for, too

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(STALLED_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
        super().resume_writing()

    def _await_head(self) -> None:
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
