"""`HttpTransport` over httpx2, which is imported when the first request is made."""

import asyncio
import errno
import re
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Self, cast
from weakref import WeakKeyDictionary

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.net.address import is_loopback, safe_url, split_url
from dialoom.net.transport import HttpRequest, HttpResponse, TransportError

if TYPE_CHECKING:
    import httpx2

_Clients = dict[tuple[bool, bool], "httpx2.AsyncClient"]
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


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
            yield _Response(response, _Body(pieces, request, ends_at))

    async def aclose(self) -> None:
        clients = self._clients.pop(asyncio.get_running_loop(), {})
        for client in clients.values():
            await client.aclose()

    def _client_for(self, url: str) -> "httpx2.AsyncClient":
        parts = split_url(url)
        local, plain = is_loopback(parts.hostname or ""), parts.scheme == "http"
        clients = self._clients.setdefault(asyncio.get_running_loop(), {})
        if (local, plain) not in clients:
            clients[local, plain] = _new_client(local=local, plain=plain)
        return clients[local, plain]


class _Response:
    """`HttpResponse` over one of httpx2."""

    def __init__(self, response: "httpx2.Response", body: "_Body") -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}
        self._body = body

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        return self._body

    async def aread(self, limit: int) -> bytes:
        whole = bytearray()
        async for piece in self._body:
            whole += piece
            if len(whole) > limit:
                raise self._body.too_large(limit)
        return bytes(whole)


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
            raise self.too_large(self._max_bytes)
        return piece

    def too_large(self, limit: int) -> TransportError:
        return TransportError(
            "too_large", f"{safe_url(self._url)} sent more than {limit} bytes; the rest was not read"
        )


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
            headers=_sendable(request),
            content=request.body or None,
            timeout=httpx2.Timeout(limits.read, connect=limits.connect, pool=limits.connect),
        )
    except httpx2.InvalidURL as error:
        place = safe_url(request.url)[:80]
        raise UsageError(f"the address {place} cannot be sent; check its length and letters") from error


def _sendable(request: HttpRequest) -> dict[str, str]:
    headers = {"accept-encoding": "identity"}
    for name, value in request.headers.items():
        if not (_HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(str(value))):
            # the value may be a key, so it is not shown
            raise UsageError(
                f"header {one_line(name, 40)!r} holds characters that cannot be sent; remove them"
            )
        headers[name.lower()] = str(value)  # a number is a slip that does no harm
    return headers


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

    place = safe_url(url)
    match error:
        case httpx2.ConnectTimeout():
            return TransportError("connect", f"cannot reach {place}: it did not answer in time")
        case httpx2.TimeoutException() | TimeoutError():
            return TransportError("timeout", f"{place} did not answer in time")
        case httpx2.ConnectError() | httpx2.ProxyError():
            return TransportError("connect", f"cannot reach {place}: {_reason(error)}")
        case httpx2.NetworkError() | httpx2.RemoteProtocolError():
            return TransportError("closed", f"{place} closed the connection: {_reason(error)}")
        case _:
            return TransportError("protocol", f"{place} sent what cannot be read: {_reason(error)}")


def _reason(error: BaseException) -> str:
    """Return the innermost cause in a few words; libraries wrap it several times."""
    for cause in _causes(error):
        match cause:
            case ssl.SSLCertVerificationError() if cause.verify_message:
                return f"TLS failed ({one_line(cause.verify_message, 120)})"
            case ssl.SSLError():
                return f"TLS failed ({one_line(cause.reason or str(cause), 80)})"
            case socket.gaierror():
                return "its host name is not known"
            case OSError(errno=errno.ECONNREFUSED):
                return "connection refused"
            case OSError() if cause.strerror:
                return one_line(cause.strerror, 80)
            case _:
                continue
    return one_line(str(error), 80) or type(error).__name__


def _causes(error: BaseException) -> Generator[BaseException]:
    yield error
    match error:
        case BaseExceptionGroup(exceptions=(first, *_)):  # one for each address of a host
            inner = cast("BaseException", first)
        case _:
            inner = error.__cause__ or error.__context__
    if inner is not None:
        yield from _causes(inner)
