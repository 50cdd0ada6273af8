"""Scripted messages: events of the wire, and a provider in front of a server that plays them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from dialoom.llm import AnthropicProvider, ChatOptions, ChatResponse, ProviderError, chat
from dialoom.testing.wire import Hold, WireReply, WireServer
from tests.llm.served import ASK_ONCE, HELLO

KEY = "sk-ant-test-0123456789"
USAGE = {"input_tokens": 12, "output_tokens": 1}


def event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode({"type": kind, **fields}))


def begin(**fields: Any) -> bytes:
    message = {"id": "msg_1", "model": "demo-claude", "content": [], "usage": USAGE, **fields}
    return event("message_start", message=message)


def block(at: int, content: dict[str, Any], *deltas: dict[str, Any], stop: bool = True) -> bytes:
    """One content block: its start, its deltas and, unless told otherwise, its stop."""
    pieces = [event("content_block_start", index=at, content_block=content)]
    pieces += [event("content_block_delta", index=at, delta=delta) for delta in deltas]
    return b"".join((*pieces, event("content_block_stop", index=at) if stop else b""))


def words(at: int, *pieces: str) -> bytes:
    return block(at, {"type": "text", "text": ""}, *({"type": "text_delta", "text": text} for text in pieces))


def call(at: int, name: str, *pieces: str, id: str = "toolu_1", **fields: Any) -> bytes:  # noqa: A002 - the wire's word
    start = {"type": "tool_use", "id": id, "name": name, "input": {}, **fields}
    return block(at, start, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def end(reason: str | None = "end_turn", **usage: int) -> bytes:
    delta = event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 9, **usage})
    return delta + event("message_stop")


def streamed(*pieces: bytes | Hold, **fields: Any) -> WireReply:
    return WireReply(headers={"content-type": "text/event-stream"}, body=pieces, **fields)


def whole(content: list[Any], reason: str | None = "end_turn", **fields: Any) -> WireReply:
    message = {"id": "msg_1", "type": "message", "model": "demo-claude", "content": content, **fields}
    return WireReply(body=(msgspec.json.encode({**message, "stop_reason": reason}),))


@asynccontextmanager
async def served(*replies: WireReply, **made: Any) -> AsyncGenerator[tuple[WireServer, AnthropicProvider]]:
    """A server that plays `replies`, and a provider that asks it."""
    async with WireServer(replies) as server, AnthropicProvider(server.url, KEY, **made) as provider:
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
