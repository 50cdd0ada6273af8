"""A piece of a chat completion as servers write it: anything may be missing, null or of another type."""

import json
from typing import Any

import msgspec

from dialoom.llm.json_values import count_of, fields_of
from dialoom.llm.usage import Usage
from dialoom.llm.wire.broken import MalformedChunkError


class WireDelta(msgspec.Struct):
    """What a choice adds; a whole message has the same fields."""

    content: Any = None
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: Any = None
    function_call: Any = None


class WireChoice(msgspec.Struct):
    """One of the answers; we ask for one. A server written in PHP sends a list for an empty object."""

    index: Any = None
    delta: WireDelta | list[Any] | None = None
    message: WireDelta | list[Any] | None = None
    finish_reason: Any = None
    usage: Any = None
    text: Any = None
    """Words of a text completion, which is another wire's."""


class WireChunk(msgspec.Struct):
    """A streamed chunk or a whole completion; one vendor puts the usage into a field of its own."""

    id: Any = None
    model: Any = None
    choices: list[WireChoice | None] | None = None
    usage: Any = None
    x_groq: Any = None
    error: Any = None


_decoder = msgspec.json.Decoder(WireChunk)


def decode_chunk(text: str) -> WireChunk:
    """Read one chunk. Raises `MalformedChunkError`.

    Halves of a character, escaped in two chunks, are let through as they are; `SurrogateJoiner` joins them.
    """
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        if "\\ud" not in text.lower():
            raise MalformedChunkError(str(error)) from error
    try:
        return msgspec.convert(json.loads(text), WireChunk)
    except (ValueError, RecursionError) as error:
        raise MalformedChunkError(str(error)) from error


def read_usage(value: object) -> Usage:
    """Return the counts in a `usage` object; what is missing or no count stays None."""
    usage = fields_of(value)
    cached = fields_of(usage.get("prompt_tokens_details")).get("cached_tokens")
    reasoning = fields_of(usage.get("completion_tokens_details")).get("reasoning_tokens")
    return Usage(
        input_tokens=count_of(usage.get("prompt_tokens")),
        output_tokens=count_of(usage.get("completion_tokens")),
        cache_read_tokens=count_of(usage.get("prompt_cache_hit_tokens") if cached is None else cached),
        reasoning_tokens=count_of(reasoning),
    )
