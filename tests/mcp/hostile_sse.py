"""A server of the older remote way: a stream of answers, and an address to post to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.mcp.hostile_http import HostileHttp, Message, Request, event, head, initialized, respond, result_of


class HostileSse(HostileHttp):
    """Answers on the newest stream. `endpoint` is the address it names: none when empty, or a status."""

    def __init__(self) -> None:
        super().__init__()
        self.endpoint = "/messages?session=1"
        self.refuses_streamable = False

    async def _get(self, writer: asyncio.StreamWriter) -> None:
        if self.endpoint.isdecimal():
            respond(writer, int(self.endpoint))
            return
        writer.write(head(200, {"content-type": "text/event-stream", "connection": "close"}))
        if not self.endpoint:
            writer.close()
            return
        writer.write(f"event: endpoint\ndata: {self.endpoint}\n\n".encode())
        await writer.drain()
        self.streams.append(writer)

    def _post(self, request: Request, writer: asyncio.StreamWriter) -> None:
        message = request.message
        if self.refuses_streamable and "event-stream" in request.headers.get("accept", ""):
            respond(writer, 405)
            return
        respond(writer, 202)
        if "id" in message and "method" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": self._result(message)}
            self.streams[-1].write(b": ping\n\n" + event(answer))

    def _result(self, message: Message) -> Message:
        if message["method"] == "initialize":
            return initialized(message, self.capabilities)
        return result_of(message)


@asynccontextmanager
async def hostile_sse() -> AsyncIterator[HostileSse]:
    """A running server, gone at the end."""
    server = HostileSse()
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
