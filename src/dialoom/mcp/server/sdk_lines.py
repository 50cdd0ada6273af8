"""Lines of input that are no messages: JSON-RPC has them answered, the official package drops them."""

import contextvars
from contextlib import suppress
from typing import Protocol

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

from dialoom.mcp.sdk.ends import Source


class Inbox(Protocol):
    """Where messages come from, and the errors of reading others."""

    last_context: contextvars.Context | None

    async def receive(self) -> SessionMessage | Exception: ...
    async def aclose(self) -> None: ...


class Outbox(Protocol):
    """Where messages go."""

    async def send(self, item: SessionMessage, /) -> None: ...


class AnsweredLines(Source[SessionMessage]):
    """The messages of `inbox`. A line that is none is answered at `outbox` with id null, unless it is blank.

    It is read by one task, as the package's own streams are.
    """

    def __init__(self, inbox: Inbox, outbox: Outbox) -> None:
        self._inbox = inbox
        self._outbox = outbox

    @property
    def last_context(self) -> contextvars.Context | None:
        """What the package runs the handler of the last message in."""
        return self._inbox.last_context

    async def receive(self) -> SessionMessage:
        while isinstance(item := await self._inbox.receive(), Exception):
            if (answer := _answer(item)) is not None:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody reads any more
                    await self._outbox.send(SessionMessage(answer))
        return item

    async def aclose(self) -> None:
        await self._inbox.aclose()


def _answer(error: Exception) -> JSONRPCError | None:
    """Return what a line is answered that could not be read because of `error`; None for a blank one."""
    code, told = INVALID_REQUEST, "the line is no JSON-RPC message"
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        if first["type"] == "json_invalid":
            code, told = PARSE_ERROR, "the line is no JSON"
            if not str(first["input"]).strip():
                return None
    return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=told))
