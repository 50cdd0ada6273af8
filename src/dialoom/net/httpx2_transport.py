"""`HttpTransport` over httpx2, which is imported when the first request is made."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Self
from weakref import WeakKeyDictionary

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.net.address import is_loopback, safe_url, split_url
from dialoom.net.piecewise import PiecewiseResponse
from dialoom.net.sendable import sendable_headers
from dialoom.net.transport import HttpRequest, HttpResponse, TransportError
from dialoom.net.trouble import LATE, cut_off, late, reason_of, too_large, unreachable, unreadable

if TYPE_CHECKING:
    import httpx2

_Clients = dict[tuple[bool, bool], "httpx2.AsyncClient"]


class Httpx2Transport:
    """Pooled connections over httpx2.

    Proxies of the environment are honoured, except for loopback hosts: a local server is reached directly.
    Connections belong to the event loop they were made in; `aclose` closes those of the running one.
    """

    def __init__(self) -> None:
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, _Clients] = WeakKeyDictionary()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @asynccontextmanager
    async def request(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        """Send `request`. Raises `TransportError`; `UsageError` when its URL or a header cannot be sent."""
        client = self._client_for(request.url)
        ends_at = None
        if request.timeouts.total is not None:
            ends_at = asyncio.get_running_loop().time() + request.timeouts.total
        with _foreign_errors(request.url):
            async with asyncio.timeout_at(ends_at):
                response = await client.send(_build(client, request), stream=True)
        pieces = response.aiter_bytes() if "content-encoding" in response.headers else response.aiter_raw()
        async with aclosing(response), aclosing(pieces):
            headers = {name.lower(): value for name, value in response.headers.items()}
            body = _Body(pieces, request, ends_at)
            yield PiecewiseResponse(response.status_code, headers, body, url=request.url)

    async def aclose(self) -> None:
        clients = self._clients.pop(asyncio.get_running_loop(), {})
        for client in clients.values():
            await client.aclose()

    def _client_for(self, url: str) -> "httpx2.AsyncClient":
        parts = split_url(url)
        local, plain = is_loopback(parts.hostname or ""), parts.scheme == "http"
        clients = self._clients.setdefault(asyncio.get_running_loop(), {})
        if (local, plain) not in clients:
            clients[local, plain] = _checked_client(local=local, plain=plain)
        return clients[local, plain]


class _Body:
    """The pieces of one body, counted, timed and with their errors translated."""

    def __init__(
        self, pieces: AsyncGenerator[bytes, None], request: HttpRequest, ends_at: float | None
    ) -> None:
        self._pieces = pieces
        self._url = request.url
        self._max_bytes = request.max_bytes
        self._left = request.max_bytes
        self._ends_at = ends_at

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            if self._ends_at is None:
                piece = await anext(self._pieces)
            else:
                async with asyncio.timeout_at(self._ends_at):
                    piece = await anext(self._pieces)
        except StopAsyncIteration:
            raise
        except Exception as error:
            raise translated(error, self._url) from error
        self._left -= len(piece)
        if self._left < 0:
            raise too_large(self._url, self._max_bytes)
        return piece


def _checked_client(*, local: bool, plain: bool) -> "httpx2.AsyncClient":
    try:
        return _new_client(local=local, plain=plain)
    except Exception as error:  # seam: of what a client is made of, only the environment can be wrong
        raise UsageError(
            f"the environment names a proxy that cannot be used ({one_line(str(error), 120)});"
            " correct HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, or unset it"
        ) from error


def _new_client(*, local: bool, plain: bool) -> "httpx2.AsyncClient":
    import httpx2

    # Reading the system's authorities costs more than a whole local exchange, and plain HTTP never asks them.
    verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if local and plain else True
    return httpx2.AsyncClient(
        verify=verify,
        trust_env=not local,
        follow_redirects=False,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
    )


def _build(client: "httpx2.AsyncClient", request: HttpRequest) -> "httpx2.Request":
    import httpx2

    limits = request.timeouts
    try:
        return client.build_request(
            request.method,
            request.url,
            headers=sendable_headers(request),
            content=request.body or None,
            timeout=httpx2.Timeout(limits.read, connect=limits.connect, pool=limits.connect),
        )
    except httpx2.InvalidURL as error:
        place = safe_url(request.url)[:80]
        raise UsageError(f"the address {place} cannot be sent; check its length and letters") from error


@contextmanager
def _foreign_errors(url: str) -> Generator[None]:
    try:
        yield
    except UsageError:
        raise
    except Exception as error:  # seam: whatever httpx2 raises becomes ours
        raise translated(error, url) from error


def translated(error: Exception, url: str) -> TransportError:
    """Return what an error of httpx2 means, in words that hold no secret of `url`."""
    import httpx2

    match error:
        case httpx2.ConnectTimeout():
            return unreachable(url, LATE)
        case httpx2.TimeoutException() | TimeoutError():
            return late(url)
        case httpx2.ConnectError() | httpx2.ProxyError():
            return unreachable(url, f"{reason_of(error)}{_by_proxy(url)}")
        case httpx2.NetworkError() | httpx2.RemoteProtocolError():
            return cut_off(url, reason_of(error))
        case _:
            return unreadable(url, reason_of(error))


def _by_proxy(url: str) -> str:
    """Return what to add to the trouble of a request that the environment sends through a proxy."""
    from urllib.request import getproxies, proxy_bypass

    parts, named = split_url(url), getproxies()
    host, proxy = parts.hostname or "", named.get(parts.scheme) or named.get("all")
    if not proxy or is_loopback(host) or proxy_bypass(host):
        return ""
    return f" (through the proxy {safe_url(proxy)} that the environment names)"
