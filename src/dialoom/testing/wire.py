"""A loopback HTTP server that plays scripted responses, cut where a test wants them cut."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Literal, Self

import msgspec

_MAX_REQUEST_BYTES = 64 * 1024 * 1024


class Hold:
    """A place where the server stops writing: `await hold.reached.wait()`, act, `hold.opened.set()`."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()


class WireReply(msgspec.Struct, frozen=True, kw_only=True):
    """One response.

    `framing` says how the body is delimited: `chunked` frames each piece, so that a client reads each by
    itself; `close` ends the body by closing; `length` announces it. `end` says what follows the body:
    `keep` the connection, `cut` it before the body's proper end, or `reset` it.
    """

    status: int = 200
    headers: Mapping[str, str] = {}
    body: tuple[bytes | Hold, ...] = ()
    framing: Literal["chunked", "close", "length"] = "chunked"
    end: Literal["keep", "cut", "reset"] = "keep"


class WireRequest(msgspec.Struct, frozen=True):
    """What a client sent; header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, object]:
        return msgspec.json.decode(self.body, type=dict[str, object])


class WireServer:
    """Answers each request with the next reply, or with what a function makes of the request.

    An async context manager; `url` is its address, `requests` what it was asked. `client_left` is set as
    soon as a connection has ended.
    """

    def __init__(self, replies: Sequence[WireReply] | Callable[[WireRequest], WireReply]) -> None:
        self.url = ""
        self.requests: list[WireRequest] = []
        self.client_left = asyncio.Event()
        self._replies = replies
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    request = await _read_request(reader)
                    self.requests.append(request)
                    if not await self._answer(self._next_reply(request), reader, writer):
                        return
        except asyncio.CancelledError:
            pass  # asyncio's streams report a handler that ends cancelled as an error
        finally:
            self._connections.discard(task)
            self.client_left.set()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    def _next_reply(self, request: WireRequest) -> WireReply:
        if callable(self._replies):
            return self._replies(request)
        at = len(self.requests) - 1
        if at < len(self._replies):
            return self._replies[at]
        return WireReply(status=500, body=(b"the script has no reply for this request",))

    async def _answer(
        self, reply: WireReply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Write `reply`; return whether the connection may be used again."""
        writer.write(_head(reply))
        for piece in reply.body:
            if isinstance(piece, Hold):
                await writer.drain()
                piece.reached.set()
                if not await _opened(piece, reader):
                    return False
                continue
            if writer.is_closing():  # asyncio would log each piece that nobody can be sent
                return False
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if reply.framing == "chunked" else piece)
        await writer.drain()
        if reply.end == "reset":
            writer.transport.abort()
            return False
        if reply.end == "cut" or reply.framing == "close":
            return False
        if reply.framing == "chunked":
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


def split_bytes(body: bytes, cuts: Iterable[int]) -> tuple[bytes, ...]:
    """Return `body` in pieces, cut at the offsets in `cuts`; no piece is empty."""
    edges = sorted({0, len(body), *(cut for cut in cuts if 0 < cut < len(body))})
    return tuple(body[start:end] for start, end in pairwise(edges))


async def _read_request(reader: asyncio.StreamReader) -> WireRequest:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = min(int(headers.get("content-length", "0")), _MAX_REQUEST_BYTES)
    return WireRequest(method, path, headers, await reader.readexactly(length))


def _head(reply: WireReply) -> bytes:
    framing = {
        "chunked": "transfer-encoding: chunked",
        "close": "connection: close",
        "length": f"content-length: {sum(len(p) for p in reply.body if isinstance(p, bytes))}",
    }[reply.framing]
    lines = [f"HTTP/1.1 {reply.status} Scripted", framing, *(f"{k}: {v}" for k, v in reply.headers.items())]
    return "\r\n".join((*lines, "", "")).encode("latin-1")


async def _opened(hold: Hold, reader: asyncio.StreamReader) -> bool:
    """Wait until a test opens `hold`; return False when the client leaves first."""
    opened = asyncio.create_task(hold.opened.wait())
    left = asyncio.create_task(reader.read(1))
    try:
        await asyncio.wait((opened, left), return_when=asyncio.FIRST_COMPLETED)
        return not left.done()
    finally:
        opened.cancel()
        left.cancel()
        await asyncio.gather(opened, left, return_exceptions=True)
