"""The pair of streams the SDK talks through, over a `LineTransport` or over a transport of the SDK's own."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from types import TracebackType
from typing import Final

import anyio
from mcp.client import Transport
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, RequestId

from dialoom.base.text import one_line
from dialoom.mcp.sdk.ends import Source, StreamEnd
from dialoom.mcp.sdk.parse import Parsed, find_id, parse_line
from dialoom.mcp.sdk.repair import FrameRepair
from dialoom.mcp.transport import LineTransport, Oversize

NOISE_LINES: Final = 50
LONGEST_NOISE: Final = 500
TOO_LARGE: Final = "dialoom.too_large"
"""Key in the data of an error that stands for an answer that passed the bound."""

Item = SessionMessage | Exception


class Link:
    """One connection as it is watched: what was mended and set aside, and whether it is over.

    `ended` is set when the other side is gone, `lost` when it has forgotten the session.
    """

    def __init__(self) -> None:
        self.repair = FrameRepair()
        self.noise: deque[str] = deque(maxlen=NOISE_LINES)
        self.ended = asyncio.Event()
        self.lost = asyncio.Event()
        self.hurry = False


class Reader(Source[Item]):
    """What the SDK reads from: `take` gives the next item with its context, None at the end."""

    def __init__(self, take: Callable[[], Awaitable[Item | None]], link: Link) -> None:
        self._take = take
        self._link = link
        self.last_context: Context | None = None

    async def receive(self) -> Item:
        item = await self._take()
        if item is None:
            self._link.ended.set()
            raise anyio.EndOfStream
        if isinstance(item, SessionMessage):
            item.message = self._link.repair.received(item.message)
        return item


class Writer(StreamEnd):
    """What the SDK writes to; `give` takes one message and raises when the way is gone."""

    def __init__(self, give: Callable[[SessionMessage], Awaitable[None]], link: Link) -> None:
        self._give = give
        self._link = link

    async def send(self, item: SessionMessage, /) -> None:
        self._link.repair.sent(item.message)
        await self._give(item)


class LineStreams(AbstractAsyncContextManager[tuple[Reader, Writer]]):
    """A `LineTransport` as the SDK wants one: opened and closed with it, its lines read and mended."""

    def __init__(self, transport: LineTransport, link: Link) -> None:
        self._transport = transport
        self._link = link
        self._waiting: deque[Item] = deque()

    async def __aenter__(self) -> tuple[Reader, Writer]:
        try:
            await self._transport.open()
        except BaseException:
            await self._transport.aclose(hurry=True)
            raise
        return Reader(self._take, self._link), Writer(self._give, self._link)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # a server that is given up while it starts is owed no wait
        given_up = isinstance(error, asyncio.CancelledError)
        await self._transport.aclose(hurry=self._link.hurry or given_up)

    async def _take(self) -> Item | None:
        while not self._waiting:
            try:
                line = await self._transport.receive()
            except OSError:
                return None
            if line is None:
                return None
            parsed = self._too_large(line) if isinstance(line, Oversize) else parse_line(line)
            if parsed.noise:
                self._link.noise.append(one_line(parsed.noise, LONGEST_NOISE))
            self._waiting.extend(SessionMessage(message) for message in parsed.messages)
        return self._waiting.popleft()

    async def _give(self, item: SessionMessage) -> None:
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        try:
            await self._transport.send(line)
        except OSError as error:
            raise anyio.BrokenResourceError from error

    def _too_large(self, line: Oversize) -> Parsed:
        request_id: RequestId | None = find_id(line)
        if request_id is None:
            request_id = self._link.repair.only_pending
        if request_id is None:
            return Parsed((), f"a message of {line.size} bytes, which is too large")
        problem = ErrorData(
            code=INTERNAL_ERROR,
            message=f"the answer has {line.size} bytes, which is too large",
            data={TOO_LARGE: line.size},
        )
        return Parsed((JSONRPCError(jsonrpc="2.0", id=request_id, error=problem),))


class SdkStreams(AbstractAsyncContextManager[tuple[Reader, Writer]]):
    """A transport of the SDK's own with its messages mended."""

    def __init__(self, transport: Transport, link: Link) -> None:
        self._transport = transport
        self._link = link

    async def __aenter__(self) -> tuple[Reader, Writer]:
        source, sink = await self._transport.__aenter__()

        async def take() -> Item | None:
            try:
                item = await source.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                return None
            # the sender's context: it tells which request a question of the server belongs to
            reader.last_context = getattr(source, "last_context", None)
            return item

        reader = Reader(take, self._link)
        return reader, Writer(sink.send, self._link)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._transport.__aexit__(kind, error, trace)
