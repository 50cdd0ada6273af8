"""The HTTP client a connection sends through, with what its config adds to each request."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import httpx2

from dialoom.mcp.transport import MAX_MESSAGE_BYTES
from dialoom.net.sse import SseEvent, SseParser


class Outlet:
    """Sends through `client`, with `headers` and the login `auth` on top of its own; follows no redirect."""

    def __init__(
        self, client: httpx2.AsyncClient, *, headers: Mapping[str, str], auth: httpx2.Auth | None
    ) -> None:
        self._client = client
        self._headers = dict(headers)
        self._auth = auth

    def build(
        self, method: str, url: httpx2.URL | str, *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> httpx2.Request:
        """Return a request; what `headers` name wins over the config's."""
        merged = httpx2.Headers(self._headers)
        merged.update(headers or {})
        return self._client.build_request(method, url, headers=merged, **more)

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response with its body unread; whoever asked closes it. Raises what HTTP raises."""
        if self._auth is None:
            return await self._client.send(request, stream=True, follow_redirects=False)
        return await self._client.send(request, stream=True, follow_redirects=False, auth=self._auth)


async def read_bounded(response: httpx2.Response, limit: int) -> bytes | None:
    """Return the body, None when it has more than `limit` bytes; closes the response."""
    try:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > limit:
                return None
        return bytes(body)
    finally:
        await response.aclose()


async def read_events(response: httpx2.Response) -> AsyncGenerator[SseEvent]:
    """Give the events of a stream as they come, each of at most `MAX_MESSAGE_BYTES`."""
    parser = SseParser(max_line_bytes=MAX_MESSAGE_BYTES, max_event_bytes=MAX_MESSAGE_BYTES)
    async for piece in response.aiter_bytes():
        for event in parser.feed(piece):
            yield event
