"""One GET over a connection whose address was chosen beforehand; follows nothing, keeps nothing."""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Protocol, cast

from dialoom.net.httpx2_transport import translated
from dialoom.net.resolve import UrlResolution
from dialoom.net.transport import HttpTimeouts

if TYPE_CHECKING:
    import httpx2

_HEADERS = {
    "user-agent": "dialoom",
    "accept": "text/html, text/*;q=0.9, application/pdf;q=0.9, */*;q=0.5",
    "accept-encoding": "gzip",
    "connection": "close",
}


class UrlReply(Protocol):
    """The head of an answer whose body is still on its way; header names are lower case.

    `peer` is the address at the other end of the connection. `dns_pinned` says that the connection went to
    the address it was told and that nothing was looked up again; without it the answer is not read.
    """

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def peer(self) -> str: ...

    @property
    def dns_pinned(self) -> bool: ...

    def aiter_raw(self) -> AsyncIterator[bytes]:
        """Give the body once, in pieces as they came, still packed. Raises `TransportError`."""
        ...


class UrlFetcher(Protocol):
    """Sends one GET. Your own fetcher is trusted code: it must connect to the address it is given."""

    def get(self, resolution: UrlResolution, timeouts: HttpTimeouts) -> AbstractAsyncContextManager[UrlReply]:
        """Send it; leaving the context closes the connection. Raises `TransportError`."""
        ...


class PinnedFetcher:
    """Connects to the checked address itself; `Host` and the name in TLS stay those of the URL.

    Proxies of the environment are not used: through one, nobody could say where the request went.
    """

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls

    @asynccontextmanager
    async def get(self, resolution: UrlResolution, timeouts: HttpTimeouts) -> AsyncGenerator[UrlReply]:
        import httpx2

        url = resolution.target.url
        try:
            async with httpx2.AsyncHTTPTransport(
                verify=self._context(resolution.target.scheme), trust_env=False
            ) as transport:
                response = await transport.handle_async_request(_request(resolution, timeouts))
                try:
                    yield _Reply(response, url)
                finally:
                    await response.aclose()
        except httpx2.TransportError as error:
            raise translated(error, url) from error

    def _context(self, scheme: str) -> ssl.SSLContext:
        import httpx2

        if scheme == "http":  # which never asks it, and reading the system's authorities takes long
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls = self._tls or httpx2.create_ssl_context()
        return self._tls


class _Reply:
    """`UrlReply` over a response of httpx2."""

    def __init__(self, response: "httpx2.Response", url: str) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}
        self.dns_pinned = True
        self.peer = _peer(response.extensions.get("network_stream"))
        self._response = response
        self._url = url

    async def aiter_raw(self) -> AsyncIterator[bytes]:
        import httpx2

        try:
            async for piece in self._response.aiter_raw():
                yield piece
        except httpx2.TransportError as error:
            raise translated(error, self._url) from error


class _Stream(Protocol):
    def get_extra_info(self, info: str) -> object: ...


def _peer(stream: _Stream | None) -> str:
    address = stream.get_extra_info("server_addr") if stream is not None else None
    return str(cast("tuple[object, ...]", address)[0]) if isinstance(address, tuple) else ""


def _request(resolution: UrlResolution, timeouts: HttpTimeouts) -> "httpx2.Request":
    import httpx2

    target = resolution.target
    host = f"[{resolution.address}]" if ":" in resolution.address else resolution.address
    limits = httpx2.Timeout(timeouts.read, connect=timeouts.connect, pool=timeouts.connect)
    return httpx2.Request(
        "GET",
        f"{target.scheme}://{host}:{target.port}{target.path}",
        headers={"host": target.authority, **_HEADERS},
        extensions={"timeout": limits.as_dict(), "sni_hostname": target.host},
    )
