"""What tests of dialogs share: a center around a scripted model, a few tools, and readers of logs."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from dialoom.conversation import CardEntry, Entry, TextEntry
from dialoom.dialog import Center, Dialog, DialogEvent, RunHandle, Stores
from dialoom.dialog.result import DialogResult
from dialoom.llm import MockProvider, StreamEvent, ToolCall, ToolCallReady, ToolCallStarted
from dialoom.tools import Tool, tool

T = TypeVar("T")
SOON = 20.0


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


def call(call_id: str, name: str, **arguments: object) -> ToolCall:
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


def text(role: str, content: str) -> TextEntry:
    return TextEntry(role=role, content=content)  # type: ignore[arg-type] - a role, written short
