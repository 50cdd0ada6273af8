"""The body of a direct exchange: its pieces as they come, counted and timed."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Self

from dialoom.net.direct.answer import Answer
from dialoom.net.direct.connection import Connection
from dialoom.net.transport import HttpRequest
from dialoom.net.trouble import cut_off, late, reason_of, too_large, unreadable


class DirectBody:
    """Reads one answer of a connection. Raises `TransportError` for whatever ends it too early."""

    def __init__(
        self, connection: Connection, answer: Answer, request: HttpRequest, *, ends_at: float | None
    ) -> None:
        self._connection = connection
        self._answer = answer
        self._pieces = answer.pieces
        self._url = request.url
        self._max_bytes = request.max_bytes
        self._left = request.max_bytes
        self._seconds = request.timeouts.read
        self._ends_at = ends_at
        self._is_bounded = ends_at is not None or self._seconds is not None

    async def head(self) -> None:
        """Wait until the answer has begun."""
        while not self._answer.began:
            await self._more()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while not self._pieces:
            if self._answer.complete:
                raise StopAsyncIteration
            if self._is_bounded or self._connection.failure is not None:
                await self._more()
            else:
                await self._connection.arrival()  # the caller bounds the wait
        piece = self._pieces.popleft()
        self._left -= len(piece)
        if self._left < 0:
            raise too_large(self._url, self._max_bytes)
        return piece

    async def _more(self) -> None:
        """Wait for the next read."""
        failure = self._connection.failure
        if failure is not None:
            raise cut_off(self._url, reason_of(failure)) from failure
        unsent = self._connection.unsent
        try:
            async with asyncio.timeout_at(self._ends_at), asyncio.timeout(self._seconds):
                await self._connection.arrival()
        except TimeoutError as error:
            if self._is_over() or self._connection.unsent >= unsent:
                raise late(self._url) from error
            # the request is still being taken, piece by piece: that is no silence

    def _is_over(self) -> bool:
        return self._ends_at is not None and asyncio.get_running_loop().time() >= self._ends_at


@asynccontextmanager
async def readable(
    answer: Answer, body: DirectBody, request: HttpRequest
) -> AsyncGenerator[AsyncIterator[bytes]]:
    """Give the pieces of `body` as they were before they were packed."""
    if "content-encoding" not in answer.headers:
        yield body
        return
    async with aclosing(_unpacked(answer, body, request)) as pieces:
        yield pieces


async def _unpacked(answer: Answer, packed: DirectBody, request: HttpRequest) -> AsyncGenerator[bytes, None]:
    """Unpack a body; its bound counts there as well."""
    import httpx2

    left = request.max_bytes
    encoding = {"content-encoding": answer.headers["content-encoding"]}
    response = httpx2.Response(answer.status, headers=encoding, content=_pieces_of(packed))
    async with aclosing(response.aiter_bytes()) as pieces:
        try:
            async for piece in pieces:
                left -= len(piece)
                if left < 0:
                    raise too_large(request.url, request.max_bytes)
                yield piece
        except httpx2.DecodingError as error:
            raise unreadable(request.url, reason_of(error)) from error


async def _pieces_of(packed: DirectBody) -> AsyncIterator[bytes]:
    async for piece in packed:
        yield piece
