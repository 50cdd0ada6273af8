"""An MCP server over HTTP/1.1 by hand, so that it can cut, refuse and forget, in the loop of the test."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

Message = Mapping[str, Any]
SCHEMA = {"type": "object"}


class Request(NamedTuple):
    """One request as it came; header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        return json.loads(self.body) if self.body.startswith(b"{") else {}


class Refusal(NamedTuple):
    """How the next request is refused: `body` None closes the connection, a status below 0 says nothing."""

    status: int
    headers: Mapping[str, str] = {}
    body: bytes | None = b""


class HostileHttp:
    """A legacy Streamable HTTP server. A test reads `requests`, and sets how the next ones go."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.refusals: deque[Refusal] = deque()
        self.sessions: set[str] = set()
        self.capabilities: Mapping[str, Any] = {"tools": {"listChanged": True}}
        self.gets: deque[str] = deque()
        """How the next GETs go: a status, `eof` to end at once, `wrong-type`; `open` when it is empty."""
        self.answers_by_stream = False
        self.chunked = False
        self.held: deque[asyncio.Event] = deque()
        """The next calls of tools are answered when theirs is set."""
        self.forgets = False
        """Every call finds its session forgotten."""
        self.streams: list[asyncio.StreamWriter] = []
        self.news = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._port = 0
        self._count = 0
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/mcp"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port and every connection; `start` opens the same port again."""
        assert self._server is not None
        self._server.close()
        for writer in tuple(self._writers):
            writer.close()
        self.streams.clear()
        await self._server.wait_closed()

    def of(self, method: str) -> list[Request]:
        """The requests so far with an HTTP method, or with a JSON-RPC one."""
        return [each for each in self.requests if method in {each.method, each.message.get("method")}]

    async def until(self, method: str, count: int) -> None:
        """Wait until so many of them came."""
        async with asyncio.timeout(60), self.news:
            await self.news.wait_for(lambda: len(self.of(method)) >= count)

    async def until_streams(self, count: int) -> None:
        async with asyncio.timeout(60), self.news:
            await self.news.wait_for(lambda: len(self.streams) >= count)

    async def push(self, message: Message, event_id: str = "") -> None:
        """Send a message on the newest stream of notices."""
        writer = self.streams[-1]
        writer.write(event(message, event_id))
        await writer.drain()

    def cut(self) -> None:
        """Close the newest stream of notices."""
        self.streams.pop().close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while not writer.is_closing():
                request = await read_request(reader)
                self.requests.append(request)
                async with self.news:
                    self.news.notify_all()
                await self._answer(request, writer)
        self._writers.discard(writer)
        writer.close()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        match request.method:
            case "GET":
                await self._get(writer)
            case "DELETE":
                self.sessions.discard(request.headers.get("mcp-session-id", ""))
                respond(writer, 200)
            case _ if self.refusals and "id" in request.message:
                refusal = self.refusals.popleft()
                if refusal.body is None:
                    writer.close()
                elif refusal.status < 0:
                    return
                elif "transfer-encoding" in refusal.headers:
                    writer.write(head(refusal.status, refusal.headers) + refusal.body)
                else:
                    respond(writer, refusal.status, headers=refusal.headers, body=refusal.body)
            case _:
                if self.held and request.message.get("method") == "tools/call":
                    await self.held.popleft().wait()
                self._post(request, writer)
        await writer.drain()

    async def _get(self, writer: asyncio.StreamWriter) -> None:
        how = self.gets.popleft() if self.gets else "open"
        if how.isdigit():
            respond(writer, int(how))
            return
        kind = "text/html" if how == "wrong-type" else "text/event-stream"
        writer.write(head(200, {"content-type": kind, "connection": "close"}))
        if how in {"eof", "wrong-type"}:
            writer.close()
            return
        await writer.drain()
        self.streams.append(writer)
        async with self.news:
            self.news.notify_all()

    def _post(self, request: Request, writer: asyncio.StreamWriter) -> None:
        message = request.message
        session = request.headers.get("mcp-session-id")
        if message.get("method") == "initialize":
            self._count += 1
            session = f"session-{self._count}-secret"
            self.sessions.add(session)
            self._reply(writer, message, initialized(message, self.capabilities), session=session)
        elif message.get("method") == "server/discover":
            problem = {"code": -32601, "message": "Method not found"}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": problem}).encode()
            respond(writer, 404, headers={"content-type": "application/json"}, body=body)
        elif session not in self.sessions or (self.forgets and message["method"] == "tools/call"):
            respond(writer, 404)
        elif "id" not in message or "method" not in message:
            respond(writer, 202)
        else:
            self._reply(writer, message, result_of(message))

    def _reply(
        self, writer: asyncio.StreamWriter, message: Message, result: Message, *, session: str | None = None
    ) -> None:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        named = {"mcp-session-id": session} if session else {}
        if self.answers_by_stream:
            headers = {"content-type": "text/event-stream", "connection": "close", **named}
            writer.write(head(200, headers) + event(answer))
            writer.close()
            return
        body = json.dumps(answer).encode()
        headers = {"content-type": "application/json", **named}
        if self.chunked:
            writer.write(head(200, {**headers, "transfer-encoding": "chunked"}))
            writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        else:
            respond(writer, 200, headers=headers, body=body)


@asynccontextmanager
async def hostile_http() -> AsyncIterator[HostileHttp]:
    """A running server, gone at the end."""
    server = HostileHttp()
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def initialized(message: Message, capabilities: Message) -> Message:
    return {
        "protocolVersion": message["params"]["protocolVersion"],
        "capabilities": capabilities,
        "serverInfo": {"name": "hostile", "version": "1"},
    }


def result_of(message: Message) -> Message:
    params = message.get("params", {})
    match message["method"]:
        case "tools/list":
            return {"tools": [{"name": "echo", "inputSchema": SCHEMA}]}
        case "tools/call" if params["name"] == "big":
            words = "x" * params["arguments"]["bytes"]
        case "tools/call":
            words = json.dumps(params.get("arguments", {}))
        case _:
            return {}
    return {"content": [{"type": "text", "text": words}]}


def event(message: Message, event_id: str = "") -> bytes:
    named = f"id: {event_id}\n" if event_id else ""
    return f"{named}event: message\ndata: {json.dumps(message)}\n\n".encode()


def respond(
    writer: asyncio.StreamWriter, status: int, *, headers: Mapping[str, str] | None = None, body: bytes = b""
) -> None:
    writer.write(head(status, {**(headers or {}), "content-length": str(len(body))}) + body)


def head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def read_request(reader: asyncio.StreamReader) -> Request:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = lines[0].split()
    return Request(method, path, headers, body)
