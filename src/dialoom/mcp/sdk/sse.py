"""The older remote way, HTTP with server-sent events: one stream of answers, and a POST for each message."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpx2
import msgspec
from mcp_types import INTERNAL_ERROR

from dialoom.mcp.errors import McpError
from dialoom.mcp.sdk.outlet import Outlet, read_bounded, read_events
from dialoom.mcp.transport import Line
from dialoom.net.sse import SseEvent

MOST_UNREAD: Final = 1024
_UNREAD_ANSWER: Final = 64 * 1024


class SseTransport:
    """`LineTransport` over the event stream at `url`; the server names the address to post to.

    A post that fails is answered on the stream's behalf with a JSON-RPC error, so that it costs the one
    request it was for; `explain` gives the error's words and data.
    """

    def __init__(
        self,
        url: str,
        outlet: Outlet,
        *,
        explain: Callable[[Exception | httpx2.Response], tuple[str, object]],
    ) -> None:
        self._url = url
        self._outlet = outlet
        self._explain = explain
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_UNREAD)
        self._endpoint: asyncio.Future[str] | None = None
        self._reading: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the stream and wait until the server has said where to post. Raises what HTTP raises."""
        self._endpoint = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read())
        await asyncio.wait({self._endpoint, self._reading}, return_when=asyncio.FIRST_COMPLETED)
        if self._reading.done():
            await self._reading
            raise ConnectionResetError("the event stream ended before it named an address")

    async def send(self, line: bytes) -> None:
        assert self._endpoint is not None
        headers = {"content-type": "application/json"}
        try:
            posted = self._outlet.build("POST", self._endpoint.result(), content=line, headers=headers)
            response = await self._outlet.send(posted)
            await read_bounded(response, _UNREAD_ANSWER)
        except Exception as error:  # noqa: BLE001 - seam: whatever HTTP or a login raises
            await self._answer(line, error)
            return
        if response.is_error or response.is_redirect:
            await self._answer(line, response)

    async def receive(self) -> Line | None:
        return await self._lines.get()

    async def aclose(self, *, hurry: bool = False) -> None:  # noqa: ARG002 - of the protocol
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._reading

    async def _read(self) -> None:
        """Take in the stream until it ends, and let the reader know."""
        try:
            await self._take_in()
        except Exception:
            await self._lines.put(None)
            raise
        await self._lines.put(None)

    async def _take_in(self) -> None:
        headers = {"accept": "text/event-stream", "cache-control": "no-store"}
        response = await self._outlet.send(self._outlet.build("GET", self._url, headers=headers))
        async with aclosing(response), aclosing(read_events(response)) as events:
            response.raise_for_status()
            async for event in events:
                await self._take(event)

    async def _take(self, event: SseEvent) -> None:
        assert self._endpoint is not None
        if event.event == "endpoint" and not self._endpoint.done():
            self._endpoint.set_result(self._within_origin(event.data))
        elif event.event == "message" and event.data:
            await self._lines.put(event.data.encode())

    def _within_origin(self, endpoint: str) -> str:
        """Return the address to post to. Everything sent was meant for this server, so it must be on it."""
        address = urljoin(self._url, endpoint)
        here, there = urlsplit(self._url), urlsplit(address)
        if (here.scheme, here.netloc) != (there.scheme, there.netloc):
            raise McpError(
                "the server wants messages sent to another host; use that host's own address",
                server="",
                kind="config",
            )
        return address

    async def _answer(self, line: bytes, failure: Exception | httpx2.Response) -> None:
        asked = msgspec.json.decode(line, type=dict[str, object])
        if "method" not in asked or "id" not in asked:
            return
        message, data = self._explain(failure)
        error = {"code": INTERNAL_ERROR, "message": message, "data": data}
        await self._lines.put(msgspec.json.encode({"jsonrpc": "2.0", "id": asked["id"], "error": error}))
