"""A login in a browser: the page is opened, and a small server on this machine waits for it to come back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Self, TypeAlias
from urllib.parse import parse_qs, urlsplit

import msgspec

from dialoom.mcp.errors import McpError

WAIT_SECONDS: Final = 300.0
PATH: Final = "/callback"
_LONGEST_REQUEST: Final = 16 * 1024
_PAGE: Final = b"You are logged in. You can close this page."

Visit: TypeAlias = Callable[[str], Awaitable[None]]
"""Opens a page for a person, such as in a browser, and does not wait for what becomes of it."""


class Redirected(msgspec.Struct, frozen=True, kw_only=True):
    """What the browser brought back."""

    code: str
    state: str | None = None
    issuer: str | None = None

    def __repr__(self) -> str:
        return "Redirected(…)"


class LoopbackLogin:
    """Waits for one browser to be sent back to `redirect_uri`; only this machine can reach it.

    Used as `async with`. A request without a code, such as for an icon, is answered and waited past.
    """

    def __init__(self, port: int = 0) -> None:
        """`port` 0 takes a free one."""
        self._port = port
        self._server: asyncio.Server | None = None
        self._answer: asyncio.Future[Redirected] | None = None

    @property
    def redirect_uri(self) -> str:
        return f"http://127.0.0.1:{self._port}{PATH}"

    async def __aenter__(self) -> Self:
        self._answer = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self._port, limit=_LONGEST_REQUEST
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def wait(self, seconds: float = WAIT_SECONDS) -> Redirected:
        """Return what the browser brings back. Raises `McpError` when it does not, or brings a refusal."""
        assert self._answer is not None
        try:
            async with asyncio.timeout(seconds):
                return await self._answer
        except TimeoutError as error:
            raise McpError(
                "nobody logged in in time; try again and finish the login in the browser",
                server="",
                kind="auth",
            ) from error

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                line = (await reader.readuntil(b"\r\n")).decode("latin-1")
            self._take(line.split(" ")[1] if line.count(" ") == 2 else "")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n")
            writer.write(b"content-length: %d\r\n\r\n%s" % (len(_PAGE), _PAGE))
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever knocks and says nothing of sense
        finally:
            writer.close()

    def _take(self, target: str) -> None:
        assert self._answer is not None
        place = urlsplit(target)
        fields = {name: values[0] for name, values in parse_qs(place.query).items()}
        if place.path != PATH or self._answer.done():
            return
        if "code" in fields:
            self._answer.set_result(
                Redirected(code=fields["code"], state=fields.get("state"), issuer=fields.get("iss"))
            )
        elif "error" in fields:
            self._answer.set_exception(
                McpError(
                    "the login was refused in the browser; try again and allow it", server="", kind="auth"
                )
            )
