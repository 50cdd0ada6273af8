"""A page from anywhere, fetched so that no URL, name, redirect or body can lead where it should not."""

import asyncio
import re
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urljoin

import msgspec

from dialoom.net.address import safe_url
from dialoom.net.fetch_pinned import PinnedFetcher, UrlFetcher, UrlReply
from dialoom.net.guard import UrlPolicy, UrlRefusedError, UrlTarget, check_characters, check_url
from dialoom.net.resolve import Resolver, SystemResolver, UrlResolution, resolve_target
from dialoom.net.resolve_addresses import parse_address, plain
from dialoom.net.transport import TransportError

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PIECE = 65_536
_MOST_TRIED = 4
_PINNED = PinnedFetcher()
_GZIP = 31  # zlib's word for gzip and nothing else
_CHARSET = re.compile(r""";\s{0,8}charset\s{0,8}=\s{0,8}["']?([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)


class FetchedPage(msgspec.Struct, frozen=True, kw_only=True):
    """What came back. `url` is where the last redirect led, without a fragment.

    `content_type` has no parameters and is in lower case; `charset` is what its parameter says. `body` is
    unpacked; that of an error whose type may not be read is empty.
    """

    url: str
    status: int
    content_type: str
    charset: str | None
    body: bytes


async def fetch_url(
    url: str,
    policy: UrlPolicy | None = None,
    *,
    fetcher: UrlFetcher | None = None,
    resolver: Resolver | None = None,
) -> FetchedPage:
    """GET `url`, following redirects hop by hop; every hop passes all checks of the policy again.

    Raises `UrlRefusedError` with the rule that was broken, `TransportError` when the exchange itself failed.
    An answer such as 404 is an answer: look at `status`.
    """
    policy = policy or UrlPolicy()
    fetch = _Fetch(policy, fetcher or _PINNED, resolver or SystemResolver())
    try:
        async with asyncio.timeout(policy.timeouts.total):
            return await fetch.run(url)
    except TimeoutError as error:
        raise TransportError("timeout", f"{safe_url(url)} did not answer in time") from error


class _Fetch:
    """One fetch and the names it has looked up: a name means the same for all its hops."""

    def __init__(self, policy: UrlPolicy, fetcher: UrlFetcher, resolver: Resolver) -> None:
        self._policy = policy
        self._fetcher = fetcher
        self._resolver = resolver
        self._known: dict[str, list[str]] = {}

    async def run(self, url: str) -> FetchedPage:
        target = check_url(url, self._policy)
        for _ in range(self._policy.max_redirects + 1):
            async with self._open(target) as reply:
                if reply.status not in _REDIRECTS:
                    return await self._read(target, reply)
                location = reply.headers.get("location", "")
            target = self._next(target, location)
        raise UrlRefusedError(
            "redirects", f"{safe_url(url)!r} was redirected more than {self._policy.max_redirects} times"
        )

    def _next(self, target: UrlTarget, location: str) -> UrlTarget:
        if not location:
            raise UrlRefusedError("protocol", f"{target.shown()!r} redirects to nowhere")
        check_characters(location)  # before joining, which would drop some of those that have to be refused
        moved = check_url(_join(target.url, location), self._policy)
        if target.scheme == "https" and moved.scheme == "http" and not self._policy.allow_downgrade:
            raise UrlRefusedError("downgrade", f"{target.shown()!r} redirects from https to http")
        return moved

    @asynccontextmanager
    async def _open(self, target: UrlTarget) -> AsyncGenerator[UrlReply]:
        async with AsyncExitStack() as stack:
            yield await self._first_reply(target, stack)

    async def _first_reply(self, target: UrlTarget, stack: AsyncExitStack) -> UrlReply:
        """The reply of the first address that can be reached."""
        trouble: TransportError | None = None
        for resolution in (await self._resolve(target))[:_MOST_TRIED]:
            try:
                reply = await stack.enter_async_context(self._fetcher.get(resolution, self._policy.timeouts))
            except TransportError as error:
                if error.kind != "connect":
                    raise
                trouble = error
                continue
            _check_peer(reply, resolution)
            return reply
        assert trouble is not None
        raise trouble

    async def _resolve(self, target: UrlTarget) -> list[UrlResolution]:
        if target.host in self._known:
            return [UrlResolution(target=target, address=each) for each in self._known[target.host]]
        found = await resolve_target(target, self._policy, self._resolver)
        self._known[target.host] = [each.address for each in found]
        return found

    async def _read(self, target: UrlTarget, reply: UrlReply) -> FetchedPage:
        header = reply.headers.get("content-type", "")
        kind = header.partition(";")[0].strip().lower()
        charset = _CHARSET.search(header[:1_000])
        readable = bool({kind, f"{kind.partition('/')[0]}/*"} & self._policy.content_types)
        if not readable and reply.status < 400:
            raise UrlRefusedError(
                "content_type", f"{target.shown()!r} is {kind[:60]!r}, which is not read as a document"
            )
        body = await self._body(target, reply) if readable else b""
        return FetchedPage(
            url=target.url,
            status=reply.status,
            content_type=kind,
            charset=charset[1] if charset else None,
            body=body,
        )

    async def _body(self, target: UrlTarget, reply: UrlReply) -> bytes:
        """The unpacked body. What was announced is believed only when it is too much."""
        most = self._policy.max_bytes
        announced = reply.headers.get("content-length", "")
        if announced.isdecimal() and (len(announced) > 18 or int(announced) > most):
            raise _too_large(target, most)
        pieces: list[bytes] = []
        size = 0
        async for piece in _unpacked(target, reply, most):
            size += len(piece)
            if size > most:
                raise _too_large(target, most)
            pieces.append(piece)
        return b"".join(pieces)


def _join(base: str, location: str) -> str:
    try:
        return urljoin(base, location)
    except ValueError:  # broken brackets: the check says so in its own words
        return location


def _check_peer(reply: UrlReply, resolution: UrlResolution) -> None:
    peer, wanted = parse_address(reply.peer), parse_address(resolution.address)
    if not reply.dns_pinned or peer is None or wanted is None or plain(peer) != plain(wanted):
        raise UrlRefusedError(
            "peer", f"{resolution.target.shown()!r} was answered by an address that was not checked; not read"
        )


def _too_large(target: UrlTarget, most: int) -> UrlRefusedError:
    return UrlRefusedError(
        "size", f"{target.shown()!r} has more than {most} bytes; raise max_bytes of the policy to read it"
    )


async def _unpacked(target: UrlTarget, reply: UrlReply, most: int) -> AsyncIterator[bytes]:
    """The body in small pieces, however much a few of its bytes unpack to."""
    encoding = reply.headers.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip"}:
        raise UrlRefusedError(
            "protocol", f"{target.shown()!r} is packed as {encoding[:40]!r}, which was not asked for"
        )
    unpack = None if encoding in {"", "identity"} else _Inflater()
    sent = 0
    try:
        async for raw in reply.aiter_raw():
            sent += len(raw)
            if sent > most:  # packed bytes that unpack to nothing are bytes too
                raise _too_large(target, most)
            if unpack is None:
                yield raw
                continue
            for piece in unpack.feed(raw):
                yield piece
    except zlib.error as error:
        raise UrlRefusedError(
            "protocol", f"{target.shown()!r} is packed in a way that cannot be read"
        ) from error
    if unpack is not None and sent and not unpack.complete:
        raise UrlRefusedError("protocol", f"{target.shown()!r} ended before its packed body did")


class _Inflater:
    """Unpacks gzip in pieces of bounded size. Raises `zlib.error`."""

    def __init__(self) -> None:
        self._packed = zlib.decompressobj(_GZIP)

    @property
    def complete(self) -> bool:
        return self._packed.eof

    def feed(self, raw: bytes) -> Iterator[bytes]:
        more = True
        while raw or more:
            if self._packed.eof:
                if not raw:
                    return
                self._packed = zlib.decompressobj(_GZIP)  # a file may have several members
            piece = self._packed.decompress(raw, _PIECE)
            more = len(piece) == _PIECE  # some of it may still be inside
            raw = self._packed.unused_data if self._packed.eof else self._packed.unconsumed_tail
            yield piece
