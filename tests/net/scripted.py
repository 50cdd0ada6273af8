"""A fetcher that answers from a script, for the tests of fetching."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec

from dialoom.net.resolve import UrlResolution
from dialoom.net.transport import HttpTimeouts, TransportError

HTML = {"content-type": "text/html"}


class Hop(msgspec.Struct, frozen=True, kw_only=True):
    """One answer; an empty `peer` is the address that was asked."""

    status: int = 200
    headers: Mapping[str, str] = msgspec.field(default_factory=lambda: HTML)
    body: tuple[bytes, ...] = (b"hello",)
    peer: str = ""
    dns_pinned: bool = True
    unreachable: bool = False


class ScriptedReply:
    def __init__(self, hop: Hop, address: str) -> None:
        self.status = hop.status
        self.headers = hop.headers
        self.peer = hop.peer or address
        self.dns_pinned = hop.dns_pinned
        self.pieces_read = 0
        self._body = hop.body

    async def aiter_raw(self) -> AsyncIterator[bytes]:
        for piece in self._body:
            self.pieces_read += 1
            yield piece


class ScriptedFetcher:
    """Answers with each hop in turn, the last one for ever, and keeps what it was asked for."""

    def __init__(self, *hops: Hop) -> None:
        self._hops: Sequence[Hop] = hops or (Hop(),)
        self.asked: list[tuple[str, str]] = []
        self.replies: list[ScriptedReply] = []

    @asynccontextmanager
    async def get(self, resolution: UrlResolution, timeouts: HttpTimeouts) -> AsyncGenerator[ScriptedReply]:
        hop = self._hops[min(len(self.asked), len(self._hops) - 1)]
        self.asked.append((resolution.target.url, resolution.address))
        if hop.unreachable:
            raise TransportError("connect", "connection refused")
        self.replies.append(ScriptedReply(hop, resolution.address))
        yield self.replies[-1]
