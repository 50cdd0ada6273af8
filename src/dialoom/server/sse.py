"""Server-sent events: a response that follows a subscription until somebody leaves."""

import asyncio

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from dialoom.server.hub import EventHub, Subscription

MEDIA_TYPE = "text/event-stream"
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
_BEGIN = b"retry: 1000\n\n"
PING = b": ping\n\n"


class EventStream(Response):
    """Sends what a subscription has, all that is ready in one piece, and a comment when it is quiet.

    The reader's leaving ends it at once, and so does the hub's closing; the subscription is closed then.
    """

    media_type = MEDIA_TYPE

    def __init__(self, hub: EventHub, subscription: Subscription) -> None:
        super().__init__()
        self._hub = hub
        self._subscription = subscription

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
            if scope["method"] == "HEAD":
                await send(_body(b"", more=False))
                return
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(self._send_all(send))
                await _left(receive)
                sending.cancel()
        finally:
            self._subscription.close()

    async def _send_all(self, send: Send) -> None:
        await send(_body(_BEGIN))
        while not self._hub.closed:
            frames = await self._subscription.wait()
            await send(_body(b"".join(frames) or PING))
        await send(_body(b"".join(self._subscription.frames()), more=False))


async def _left(receive: Receive) -> None:
    """Wait until the reader is gone; a server says so as well when the response is complete."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _body(content: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}
