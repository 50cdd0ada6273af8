"""What tests of dialogs share: a center around a scripted model, a few tools, and readers of logs."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from dialoom.conversation import CardEntry, Entry, TextEntry
from dialoom.dialog import Center, Dialog, DialogEvent, RunHandle, Stores
from dialoom.dialog.result import DialogResult
from dialoom.llm import (
    ChatOptions,
    Message,
    MockProvider,
    ResponseStream,
    StreamEvent,
    ToolCall,
    ToolCallReady,
    ToolCallStarted,
)
from dialoom.llm.options import DEFAULT_OPTIONS
from dialoom.tools import Tool, tool

T = TypeVar("T")
SOON = 60.0


@tool(idempotent=True)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(requires_approval=True, idempotent=True)
async def refund(order: int, amount: int = 10) -> str:
    """Give money back."""
    return f"refunded {amount} of order {order}"


def center_of(mock: MockProvider, *tools: Tool, stores: Stores | None = None) -> Center:
    center = Center(stores).add_provider(mock)
    for each in tools:
        center.add_tool(each)
    return center


def call(call_id: str, name: str, /, **arguments: object) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def calling(*calls: ToolCall) -> tuple[StreamEvent, ...]:
    """Return the events of an answer that makes these calls."""
    return tuple(
        event
        for index, each in enumerate(calls)
        for event in (
            ToolCallStarted(index=index, id=each.id, name=each.name),
            ToolCallReady(index=index, call=each),
        )
    )


async def soon(work: Awaitable[T]) -> T:
    """Wait with a bound."""
    async with asyncio.timeout(SOON):
        return await work


async def finished(handle: RunHandle) -> DialogResult:
    """Return how a run ended, which must be well."""
    result = (await soon(handle)).raise_for_error()
    assert result.finished, result
    return result


def said(dialog: Dialog) -> list[tuple[str, str]]:
    """Return role and text of every message; a card's role is its type."""
    return [told(entry) for entry in dialog.messages]


def told(entry: Entry) -> tuple[str, str]:
    return (entry.role, entry.content) if isinstance(entry, TextEntry) else (entry.type, entry.payload)


def kind(event: DialogEvent) -> str:
    """Return the word for an event, as in its JSON."""
    return str(event.__struct_config__.tag)


def cards(entries: Sequence[Entry]) -> list[CardEntry]:
    return [entry for entry in entries if isinstance(entry, CardEntry)]


class Echo(MockProvider):
    """Adds the number it is told to itself with a tool, and says what came of it.

    `longest` is the most messages it was sent at once.
    """

    longest = 0

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ResponseStream]:
        last = messages[-1]
        self.longest = max(self.longest, len(messages))
        mock = MockProvider()
        if last.role == "user":
            number = int(last.text)
            mock.queue_tool_calls(ToolCall(id=f"c{number}", name="add", arguments={"a": number, "b": number}))
        else:
            mock.queue_text(f"it is {last.tool_results[0].content}", chunks=4)
        async with mock.stream(messages, options) as stream:
            yield stream


async def long_dialog(stores: Stores, length: int) -> str:
    """Store a dialog of so many messages; return its id."""
    async with Center(stores) as center:
        dialog = center.new_dialog()
        for at in range(length):
            dialog.append_message("user" if at % 2 == 0 else "assistant", f"message {at} of a long talk")
        return dialog.id
