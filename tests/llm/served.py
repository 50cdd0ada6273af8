"""Scripted chat completions: pieces of the wire, and a provider in front of a server that plays them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from dialoom.llm import (
    ChatOptions,
    ChatResponse,
    OpenAIProvider,
    ProviderError,
    ResponseStream,
    StreamEvent,
    chat,
    user,
)
from dialoom.llm.retry import ONCE
from dialoom.testing.wire import Hold, WireReply, WireServer

KEY = "sk-test-0123456789"
HELLO = [user("Hello")]
SOON = 60.0
ASK_ONCE = ChatOptions(retry=ONCE)


def sse(value: Any) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def chunk(delta: dict[str, Any] | None = None, *, finish: str | None = None) -> bytes:
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    return sse({"id": "cc-1", "model": "demo", "choices": choices})


DONE = b"data: [DONE]\n\n"
SAID = (chunk({"content": "Hel"}), chunk({"content": "lo"}), chunk(finish="stop"), DONE)


def streamed(*pieces: bytes | Hold, **fields: Any) -> WireReply:
    return WireReply(headers={"content-type": "text/event-stream"}, body=pieces, **fields)


@asynccontextmanager
async def served(*replies: WireReply, **made: Any) -> AsyncGenerator[tuple[WireServer, OpenAIProvider]]:
    """A server that plays `replies`, and a provider that asks it."""
    async with WireServer(replies) as server, OpenAIProvider(f"{server.url}/v1", KEY, **made) as provider:
        yield server, provider


async def ask(*replies: WireReply, options: ChatOptions = ASK_ONCE, **made: Any) -> ChatResponse:
    """Return the answer that `replies` make."""
    async with served(*replies, **made) as (_, provider):
        return await chat(provider, HELLO, options)


async def failure(*replies: WireReply, **made: Any) -> ProviderError:
    """Return the error that `replies` make; it never shows the key."""
    with pytest.raises(ProviderError) as caught:
        await ask(*replies, **made)
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value)
    return caught.value


async def read_all(stream: ResponseStream) -> list[StreamEvent]:
    return [event async for event in stream]
