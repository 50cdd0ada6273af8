"""A real web server on this machine for the tests of fetching: over HTTP and TLS, at two addresses."""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

import msgspec

from dialoom.net.fetch_pinned import PinnedFetcher, UrlReply
from dialoom.net.guard import UrlPolicy
from dialoom.net.resolve import UrlResolution
from dialoom.net.resolve_addresses import is_permitted, parse_address
from dialoom.net.transport import HttpTimeouts
from tests.net.scripted import Hop

INSIDE = "127.0.0.1"
OUTSIDE = "127.0.0.2"
"""Stands for every public address: the policy of these tests lets this one through, and no other here."""
KEY = Path(__file__).parent / "pages.test.pem"
_ORIGIN = re.compile(r"(https?)://([^/?#]*?)(?::(?:80|443|8080|8443))?(?=[/?#]|$)", re.IGNORECASE)


class Seen(msgspec.Struct, frozen=True):
    """A request: the address it came to, its first line, and the host it was meant for."""

    address: str
    line: str
    host: str


class PageServer:
    """Answers each request with the next hop, the last one for ever, and keeps what it was asked.

    An async context manager. It listens at `INSIDE` and `OUTSIDE` on one port for HTTP and one for TLS.
    `pause` is between two pieces of a body. A body is sent in chunks, so an announced length may lie.
    """

    def __init__(self, *hops: Hop, pause: float = 0.0) -> None:
        self.asked: list[Seen] = []
        self._hops = hops or (Hop(),)
        self._pause = pause
        self._ports: dict[str, int] = {}
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(KEY)
        for scheme, context in (("http", None), ("https", tls)):
            for listener in _listeners():
                self._ports[scheme] = listener.getsockname()[1]
                self._servers.append(await asyncio.start_server(self._serve, sock=listener, ssl=context))
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def here(self, url: str) -> str:
        """The same URL with the port this server has for its scheme, if it asks for a usual one."""
        return _ORIGIN.sub(self._moved, url, count=1)

    def policy(self, **fields: object) -> UrlPolicy:
        """The default policy, but `OUTSIDE` counts as public, and the ports are usual ones."""
        ports = UrlPolicy().ports or frozenset[int]()
        reach = UrlPolicy(allow_networks=(f"{OUTSIDE}/32",), ports=ports.union(self._ports.values()))
        return msgspec.structs.replace(reach, **fields)

    def _moved(self, found: re.Match[str]) -> str:
        scheme, host = found[1].lower(), found[2]
        return f"{found[1]}://{stand_in(host)}:{self._ports[scheme]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._answer(reader, writer)
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, *fields = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        host = next(field[6:] for field in fields if field.lower().startswith("host: "))
        hop = self._hops[min(len(self.asked), len(self._hops) - 1)]
        self.asked.append(Seen(writer.get_extra_info("sockname")[0], line, host))
        head = [f"HTTP/1.1 {hop.status} Scripted", "transfer-encoding: chunked", "connection: close"]
        head += [
            f"{name}: {self.here(value) if name == 'location' else value}"
            for name, value in hop.headers.items()
        ]
        writer.write("\r\n".join((*head, "", "")).encode("latin-1"))
        for piece in hop.body:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(self._pause)
        writer.write(b"0\r\n\r\n")
        await writer.drain()


def stand_in(address: str) -> str:
    """`OUTSIDE` in the place of a public address; anything else as it is."""
    parsed = parse_address(address.strip("[]"))
    return OUTSIDE if parsed is not None and is_permitted(parsed) else address


def local_fetcher() -> PinnedFetcher:
    """The fetcher of the product; it takes the certificate that `PageServer` has for whatever name."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    return PinnedFetcher(tls=tls)


class StrayingFetcher:
    """Connects to another address than it is told, as a fetcher behind a proxy or a second look-up would."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._fetcher = local_fetcher()

    @asynccontextmanager
    async def get(self, resolution: UrlResolution, timeouts: HttpTimeouts) -> AsyncGenerator[UrlReply]:
        elsewhere = msgspec.structs.replace(resolution, address=self._address)
        async with self._fetcher.get(elsewhere, timeouts) as reply:
            yield reply


def _listeners() -> list[socket.socket]:
    """Sockets at both addresses with one port."""
    for _ in range(20):
        inside = socket.create_server((INSIDE, 0))
        try:
            return [inside, socket.create_server((OUTSIDE, inside.getsockname()[1]))]
        except OSError:  # another program has that port at the other address
            inside.close()
    raise AssertionError(f"no port is free at both {INSIDE} and {OUTSIDE}")
