"""An `HttpTransport` without a network: plays replies piece by piece, fast enough for every cut."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from dialoom.net import HttpRequest, TransportError
from dialoom.testing.wire import WireReply, WireRequest


class ScriptedTransport:
    """Answers each request with the next reply; `requests` is what it was asked."""

    def __init__(self, replies: Sequence[WireReply]) -> None:
        self.requests: list[WireRequest] = []
        self._replies = list(replies)

    @asynccontextmanager
    async def request(self, request: HttpRequest) -> AsyncGenerator["ScriptedResponse"]:
        path = request.url.partition("://")[2].partition("/")[2]
        self.requests.append(WireRequest(request.method, f"/{path}", request.headers, request.body))
        yield ScriptedResponse(self._replies[len(self.requests) - 1])

    async def aclose(self) -> None:
        """Nothing is open."""


class ScriptedResponse:
    """`HttpResponse` over a reply."""

    def __init__(self, reply: WireReply) -> None:
        self.status = reply.status
        self.headers: Mapping[str, str] = reply.headers
        self._reply = reply

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        for piece in self._reply.body:
            assert isinstance(piece, bytes)
            yield piece
        if self._reply.end != "keep":
            raise TransportError("closed", "the peer closed the connection")

    async def aread(self, limit: int) -> bytes:
        whole = b"".join([piece async for piece in self.aiter_bytes()])
        if len(whole) > limit:
            raise TransportError("too_large", f"more than {limit} bytes")
        return whole
