"""What the tool tests share: calls as a model makes them, and waits with a bound."""

import asyncio
import threading
from collections.abc import Callable

import msgspec

from dialoom.llm.messages import ToolCall
from dialoom.tools.result import ToolResult

PATIENCE = 60.0
"""Seconds after which a test that waits for another thread gives up."""


def call(name: str, /, **arguments: object) -> ToolCall:
    return ToolCall(id=f"call_{name}", name=name, arguments=arguments)


def facts(result: ToolResult) -> dict[str, object]:
    """What the model reads, which must be JSON."""
    return msgspec.json.decode(result.content, type=dict[str, object])


async def happened(event: threading.Event) -> None:
    """Wait for something another thread does."""
    assert await asyncio.to_thread(event.wait, PATIENCE)


async def becomes_true(condition: Callable[[], bool]) -> None:
    """Wait for the last step of another thread, which nothing announces."""
    for _ in range(int(PATIENCE * 1000)):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never became true")
