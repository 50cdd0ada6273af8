"""One HTTP exchange as dialoom sees it: a request, a response read piece by piece, one error type."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

import msgspec

from dialoom.base.errors import DialoomError

MAX_BODY_BYTES = 64 * 1024 * 1024

TransportErrorKind = Literal["connect", "timeout", "protocol", "closed", "too_large"]


class TransportError(DialoomError):
    """An exchange did not come to its end.

    `connect`: no connection was made, so nothing was sent. `timeout`: the peer was too slow. `protocol`:
    it does not speak HTTP as we know it. `closed`: the connection was lost on the way. `too_large`: the
    body passed the bound of its request.
    """

    code = "transport"

    def __init__(self, kind: TransportErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: TransportErrorKind = kind


class HttpTimeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds in seconds; None means that the caller bounds the wait itself."""

    connect: float = 10.0
    read: float | None = 60.0
    """Between two reads, and from the end of the request to the head of the response."""
    total: float | None = None
    """From the start to the last byte."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to send. `max_bytes` bounds the decoded body of the response."""

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    timeouts: HttpTimeouts = HttpTimeouts()
    max_bytes: int = MAX_BODY_BYTES

    def __repr__(self) -> str:
        # headers carry keys, bodies carry conversations
        return f"HttpRequest({self.method} {self.url}, {len(self.body)} bytes)"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("method", self.method), ("url", self.url), ("bytes", len(self.body))]


class HttpResponse(Protocol):
    """The head of a response whose body is still on its way; header names are lower case."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        """Give the body once, in pieces as they arrive. Raises `TransportError`."""
        ...

    async def aread(self, limit: int) -> bytes:
        """Return the whole body. Raises `TransportError`, `too_large` when it has more than `limit` bytes."""
        ...


class HttpTransport(Protocol):
    """Does exchanges. It follows no redirect, keeps no cookie and never repeats a request."""

    def request(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        """Send `request`; leaving the context before the body's end closes the connection."""
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...


async def read_head(response: HttpResponse, limit: int) -> bytes:
    """Return at most the first `limit` bytes of the body, for looking at what may be of any size."""
    head = bytearray()
    async for piece in response.aiter_bytes():
        head += piece
        if len(head) >= limit:
            break
    return bytes(head[:limit])
