"""One connection: carries an exchange at a time, and wakes its reader once for each read."""

import asyncio
import selectors
from typing import cast

from dialoom.net.direct.answer import Answer, BrokenAnswerError
from dialoom.net.direct.place import Place

READ_BYTES = 32 * 1024
MAX_UNREAD_BYTES = 256 * 1024
CLOSE_SECONDS = 1.0
LEFT_SECONDS = 1.0
"""Whoever ends a connection so soon has not begun to work on what was asked."""


class Connection(asyncio.BufferedProtocol):
    """An asyncio protocol with a read buffer of its own: a fresh one costs more than what is read.

    `answer` is the response under way; `failure` says why there will be no more of it. It `was_left` when
    that came at once and without a byte: its server was leaving as it was asked. `closed` is done when the
    socket is.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.answer: Answer | None = None
        self.failure: BrokenAnswerError | OSError | None = None
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._reader: asyncio.Future[None] | None = None
        self._unread = 0
        self._paused = False
        self._asked_at = 0.0
        self._aborted = False
        self.was_left = False

    def ask(self, request: bytes) -> Answer:
        """Send a request, whose answer is read from now on."""
        self.answer = Answer()
        self._asked_at = self._loop.time()
        if self.closed.done():
            self._end(None)
        else:
            self._wire().write(request)
        return self.answer

    def arrival(self) -> "asyncio.Future[None]":
        """Return what is done when something has come, or when nothing will come any more."""
        self._unread = 0
        if self._paused:
            self._go_on()
        self._reader = self._loop.create_future()
        return self._reader

    @property
    def unsent(self) -> int:
        """The bytes of the request that the socket has not taken yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def finish(self) -> bool:
        """Let go of the answer; return whether another request may follow on this connection."""
        answer, self.answer = self.answer, None
        if self._paused:
            self._go_on()
        whole = answer is not None and answer.complete and answer.reusable and not answer.pieces
        return whole and not self.unsent and not self._wire().is_closing()

    def is_stale(self) -> bool:
        """Whether it is being closed, or something has come that the loop has not seen yet: the end."""
        if self._wire().is_closing():
            return True
        socket = self._wire().get_extra_info("socket")
        with selectors.DefaultSelector() as selector:
            selector.register(socket.fileno(), selectors.EVENT_READ)
            return bool(selector.select(0))

    def abort(self) -> None:
        """Close the socket at once."""
        self._aborted = True
        if self._transport is not None:
            self._transport.abort()

    async def aclose(self) -> None:
        """Close the socket at once, and wait until it is."""
        self.abort()
        await asyncio.wait([self.closed], timeout=CLOSE_SECONDS)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        answer = self.answer
        if answer is None or answer.complete:  # nobody has asked for this
            self.abort()
            return
        try:
            answer.feed(self._buffer[:nbytes])
        except BrokenAnswerError as error:
            self._fail(error)
            self.abort()
            return
        self._unread += nbytes
        if self._unread > MAX_UNREAD_BYTES and not self._paused:
            self._paused = True
            self._wire().pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc)
        if not self.closed.done():
            self.closed.set_result(None)

    def _go_on(self) -> None:
        """All that has come is read: let the socket be read on."""
        self._paused = False
        self._wire().resume_reading()

    def _end(self, error: Exception | None) -> None:
        if isinstance(error, OSError):
            self._fail(error)
        elif self.answer is not None:
            try:
                self.answer.end()
            except BrokenAnswerError as broken:
                self._fail(broken)
        self._wake()

    def _fail(self, error: BrokenAnswerError | OSError) -> None:
        if self.failure is None:
            self.failure = error
            soon = self._loop.time() - self._asked_at < LEFT_SECONDS
            self.was_left = soon and not self._aborted and self.answer is not None and self.answer.silent
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _wire(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport
