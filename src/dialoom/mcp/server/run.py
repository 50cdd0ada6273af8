"""Our server on standard streams and over HTTP."""

import hmac
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import msgspec

from dialoom.base.errors import MissingExtraError, UsageError
from dialoom.mcp.server.beside import alone
from dialoom.mcp.server.served import Served

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "127.0.0.1:*", "localhost", "localhost:*", "[::1]", "[::1]:*")
_ORIGINS = tuple(f"{scheme}://{host}" for scheme in ("http", "https") for host in LOOPBACK)
_TOKEN = re.compile(r"[\x21-\x7e]+")


class HttpAccess(msgspec.Struct, frozen=True, kw_only=True):
    """Who may use the server over HTTP. The default is this machine; others need a token.

    `hosts` are the `Host` headers that are served and `origins` the web pages that may ask; `:*` stands for
    any port. Both keep a page that a person visits from talking to this machine.
    """

    token: str | None = None
    """Each request has to carry it as `Authorization: Bearer`."""
    hosts: tuple[str, ...] = LOOPBACK
    origins: tuple[str, ...] = _ORIGINS
    state_key: bytes | None = None
    """What clients keep for us is sealed with it; the same for all processes that serve one address."""

    def __post_init__(self) -> None:
        if self.token is None and not set(self.hosts) <= set(LOOPBACK):
            raise UsageError("an mcp server that others can reach needs a token; give one")
        if self.token is not None and not _TOKEN.fullmatch(self.token):
            raise UsageError("the token of an mcp server cannot be sent in a header; use letters and digits")
        if self.state_key is not None and len(self.state_key) < 32:
            raise UsageError("the state key of an mcp server is shorter than 32 bytes; make a longer one")

    def __repr__(self) -> str:
        return f"HttpAccess(hosts={self.hosts!r}, origins={self.origins!r})"


async def serve_stdio(served: Served) -> None:
    """Answer requests on standard input until it ends. Whatever else is printed meanwhile goes to stderr.

    Raises `MissingExtraError` without the official package, and `BrokenPipeError` when nobody reads any more.
    """
    try:
        from mcp.server.stdio import stdio_server

        from dialoom.mcp.server.sdk_face import sdk_server
        from dialoom.mcp.server.sdk_lines import AnsweredLines
    except ImportError as error:
        raise MissingExtraError("mcp", "mcp") from error
    server = sdk_server(served)
    try:
        async with stdio_server() as (read, write):
            lines = AnsweredLines(read, write)
            await server.run(lines, write, server.create_initialization_options())
    except BaseExceptionGroup as failures:
        raise alone(failures) from None


@asynccontextmanager
async def http_endpoint(served: Served, access: HttpAccess | None = None) -> AsyncGenerator[AsgiApp]:
    """Open an ASGI app for one path, such as `/mcp`, of whatever server runs it; it works until the end.

    Raises `MissingExtraError` without the official package.
    """
    access = access or HttpAccess()
    try:
        from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        from dialoom.mcp.server.sdk_face import sdk_server
    except ImportError as error:
        raise MissingExtraError("mcp", "mcp") from error
    manager = StreamableHTTPSessionManager(
        app=sdk_server(served, state_key=access.state_key),
        security_settings=TransportSecuritySettings(
            allowed_hosts=list(access.hosts), allowed_origins=list(access.origins)
        ),
    )
    async with manager.run():
        app = StreamableHTTPASGIApp(manager)
        yield app if access.token is None else _Guard(app, access.token)


class _Guard:
    """Lets requests with the token through. An object, because routers take a function for something else."""

    def __init__(self, app: AsgiApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope["headers"]).get(b"authorization", b"")
        if hmac.compare_digest(given, self._expected):
            await self._app(scope, receive, send)
            return
        headers = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
