"""`HttpTransport` without a client between: one callback and one wake-up for each read."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Self

from dialoom.net.address import is_loopback
from dialoom.net.direct.answer import Answer
from dialoom.net.direct.body import DirectBody, readable
from dialoom.net.direct.connection import Connection
from dialoom.net.direct.dial import dial
from dialoom.net.direct.place import Place, place_of, request_bytes
from dialoom.net.direct.pool import Pool
from dialoom.net.httpx2_transport import Httpx2Transport
from dialoom.net.piecewise import PiecewiseResponse
from dialoom.net.sendable import sendable_headers
from dialoom.net.transport import HttpRequest, HttpResponse, HttpTransport, TransportError
from dialoom.net.trouble import LATE, late, reason_of, unreachable

_Answered = tuple[Connection, Answer, DirectBody]


class DirectTransport:
    """Pooled connections over asyncio's sockets, for less than half of what httpx2 takes for each event.

    What is not plain is left to `otherwise`, an `Httpx2Transport` by default: another machine when the
    environment names a proxy, methods without an ordinary body, addresses that would have to be quoted.
    Connections belong to the event loop they were made in; `aclose` closes those of the running one.
    """

    def __init__(self, otherwise: HttpTransport | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        """Without `tls` the authorities are those that httpx2 trusts. `otherwise` is closed with this."""
        self._otherwise = otherwise or Httpx2Transport()
        self._tls = tls
        self._pools: dict[asyncio.AbstractEventLoop, Pool] = {}
        self._proxied: dict[str, bool] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def request(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        """Send `request`. Raises `TransportError`; `UsageError` when its URL or a header cannot be sent."""
        place = place_of(request)
        if place is None or self._is_proxied(place):
            return self._otherwise.request(request)
        return self._exchange(place, request)

    async def aclose(self) -> None:
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.aclose()
        await self._otherwise.aclose()

    @asynccontextmanager
    async def _exchange(self, place: Place, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        sent = request_bytes(request, place, sendable_headers(request))
        total = request.timeouts.total
        ends_at = None if total is None else asyncio.get_running_loop().time() + total
        pool = self._pool()
        connection, answer, body = await self._answered(pool, place, request, sent, ends_at=ends_at)
        try:
            async with readable(answer, body, request) as pieces:
                yield PiecewiseResponse(answer.status, answer.headers, pieces, url=request.url)
        finally:
            if connection.finish():
                pool.give(connection)
            else:
                await connection.aclose()

    async def _answered(
        self, pool: Pool, place: Place, request: HttpRequest, sent: bytes, *, ends_at: float | None
    ) -> _Answered:
        """Send on a kept connection; on a fresh one when there is none, or when its server had left it."""
        kept = pool.take(place)
        if kept is not None:
            try:
                return await _ask(kept, request, sent, ends_at)
            except TransportError:
                if not kept.was_left:
                    raise
        fresh = await self._dialed(place, request, ends_at)
        pool.add(fresh)
        return await _ask(fresh, request, sent, ends_at)

    def _pool(self) -> Pool:
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            for ended in [each for each in list(self._pools) if each.is_closed()]:
                self._pools.pop(ended, None)
            self._pools[loop] = Pool()
        return self._pools[loop]

    async def _dialed(self, place: Place, request: HttpRequest, ends_at: float | None) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(ends_at), asyncio.timeout(request.timeouts.connect):
                return await dial(place, self._tls_for(place))
        except TimeoutError as error:
            if ends_at is not None and loop.time() >= ends_at:
                raise late(request.url) from error
            raise unreachable(request.url, LATE) from error
        except OSError as error:
            raise unreachable(request.url, reason_of(error)) from error

    def _tls_for(self, place: Place) -> ssl.SSLContext | None:
        if place.tls and self._tls is None:
            import httpx2

            self._tls = httpx2.create_ssl_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls if place.tls else None

    def _is_proxied(self, place: Place) -> bool:
        """Whether the environment may want a proxy before `place`; asked once, for the system may be slow."""
        if is_loopback(place.host):
            return False
        scheme = place.scheme
        if scheme not in self._proxied:
            from urllib.request import getproxies

            named = getproxies()
            self._proxied[scheme] = bool(named.get(scheme) or named.get("all"))
        return self._proxied[scheme]


async def _ask(connection: Connection, request: HttpRequest, sent: bytes, ends_at: float | None) -> _Answered:
    """Return an answer that has begun. Raises `TransportError`, and closes the connection."""
    answer = connection.ask(sent)
    body = DirectBody(connection, answer, request, ends_at=ends_at)
    try:
        await body.head()
    except BaseException:
        await connection.aclose()
        raise
    return connection, answer, body
