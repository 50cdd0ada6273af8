"""An event of the Messages wire as servers write it: anything may be missing, null or of another type."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from dialoom.base.text import replace_surrogates
from dialoom.llm.json_values import count_of, fields_of
from dialoom.llm.usage import Usage
from dialoom.llm.wire.broken import MalformedChunkError


class WireDelta(msgspec.Struct):
    """What an event adds to a block, or to the message itself."""

    type: Any = None
    text: Any = None
    thinking: Any = None
    signature: Any = None
    partial_json: Any = None
    stop_reason: Any = None


class WireMessage(msgspec.Struct):
    """The head of a streamed answer, or a whole one."""

    id: Any = None
    model: Any = None
    usage: Any = None
    content: list[msgspec.Raw] | None = None
    stop_reason: Any = None


class WireEvent(WireMessage):
    """A streamed event; a whole message has the fields of one. Blocks keep their exact text.

    Where a list stands for an object, a server written in PHP had an empty one to send.
    """

    type: Any = None
    index: Any = None
    message: WireMessage | list[Any] | None = None
    content_block: msgspec.Raw = msgspec.Raw()
    delta: WireDelta | list[Any] | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(WireEvent)
_HALVES = ("text", "thinking", "partial_json")


def decode_event(text: str) -> WireEvent:
    """Read one event. Raises `MalformedChunkError`.

    Halves of a character, escaped in two deltas, are let through as they are.
    """
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        if "\\ud" not in text.lower():
            raise MalformedChunkError(str(error)) from error
    try:
        fields: object = json.loads(text)
        wire = _decoder.decode(replace_surrogates(json.dumps(fields, ensure_ascii=False)))
    except (ValueError, RecursionError) as error:
        raise MalformedChunkError(str(error)) from error
    if isinstance(wire.delta, WireDelta):
        said = fields_of(fields_of(fields).get("delta"))
        for name in _HALVES:
            setattr(wire.delta, name, said.get(name))
    return wire


def read_block(raw: msgspec.Raw) -> dict[str, object]:
    """Return the fields of a block, none when it is no object."""
    try:
        return fields_of(msgspec.json.decode(raw)) if raw else {}
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}


def read_counts(usage: object) -> dict[str, int]:
    """Return the counts of one `usage` object by their names on the wire."""
    counts = ((name, count_of(value)) for name, value in fields_of(usage).items())
    return {name: count for name, count in counts if count is not None}


def whole_usage(counts: Mapping[str, int]) -> Usage:
    """Return counts as ours: the wire leaves what it read from or wrote to its cache out of its input."""
    read = counts.get("cache_read_input_tokens")
    written = counts.get("cache_creation_input_tokens")
    fresh = counts.get("input_tokens")
    return Usage(
        input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
        output_tokens=counts.get("output_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
