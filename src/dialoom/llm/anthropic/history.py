"""A history as this wire accepts it: a projection with repairs; the messages are never changed."""

import re
from collections.abc import Collection, Iterator, Sequence

import msgspec

from dialoom.base.text import replace_surrogates
from dialoom.llm.files import FilePart, cannot_take
from dialoom.llm.json_values import fields_of
from dialoom.llm.messages import (
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    RefusalPart,
    SourcePart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResultPart,
)
from dialoom.llm.pairing import paired
from dialoom.llm.wire.render import render_source
from dialoom.llm.wire.tool_files import with_files_shown

Fields = dict[str, object]
Wire = Fields | msgspec.Raw
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")
FILES = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")
"""Media types that this wire takes."""
_OPENING = "(the conversation goes on)"


class WireTurn(msgspec.Struct):
    """One message of the wire; roles alternate."""

    role: str
    content: list[Wire]


def wire_system(messages: Sequence[Message]) -> list[Fields]:
    """Return the instructions of a history, which have a place of their own on this wire."""
    texts = (replace_surrogates(message.text) for message in messages if message.role == "system")
    return [{"type": "text", "text": text} for text in texts if text.strip()]


def wire_turns(
    messages: Sequence[Message], provider: str, *, tool_files: Collection[str] = FILES
) -> list[WireTurn]:
    """Return the turns of a history for `provider`, repaired where the wire would refuse them.

    Every call is answered in the next user turn, results before words; roles alternate and a user begins;
    there is no empty text; thoughts go back only signed and only to whom they came from, opaque blocks
    only to their provider; ids are unique and spelt as the wire wants them. Of what tools show, that of the
    media types `tool_files` goes along.
    """
    turns: list[WireTurn] = []
    ids = _WireIds()
    said = paired([message for message in messages if message.role != "system"])
    for message in with_files_shown(said, [kind for kind in tool_files if kind in FILES]):
        role = "assistant" if message.role == "assistant" else "user"
        parts = sorted(message.parts, key=lambda part: isinstance(part, ToolCallPart))  # calls come last
        content = [wire for part in parts for wire in _wire_part(part, message, provider, ids=ids)]
        if not content:
            continue
        if turns and turns[-1].role == role:
            turns[-1].content += content
        else:
            turns.append(WireTurn(role, content))
    if turns and turns[0].role == "assistant":
        turns.insert(0, WireTurn("user", [{"type": "text", "text": _OPENING}]))
    return _without_open_end(turns)


class _WireIds:
    """Ids of calls as the wire wants them; a result takes that of the first call that waits for it."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._unanswered: dict[str, list[str]] = {}

    def of_call(self, call: ToolCall) -> str:
        plain = _NOT_IN_IDS.sub("_", call.id)[:60] or "call"
        chosen, number = plain, 1
        while chosen in self._taken:
            number += 1
            chosen = f"{plain}_{number}"
        self._taken.add(chosen)
        self._unanswered.setdefault(call.id, []).append(chosen)
        return chosen

    def of_result(self, result: ToolResultPart) -> str | None:
        asked = self._unanswered.get(result.call_id)
        return asked.pop(0) if asked else None


def _wire_part(part: Part, message: Message, provider: str, *, ids: _WireIds) -> Iterator[Wire]:
    match part:
        case TextPart() | RefusalPart():
            yield from _wire_text(part.text)
        case SourcePart():
            yield from _wire_text(render_source(part))
        case FilePart():
            if message.role == "user":
                yield _wire_file(part)
        case ToolResultPart():
            call_id = ids.of_result(part) if message.role == "tool" else None
            if call_id is not None:
                yield _wire_result(part, call_id)
        case _:
            if message.role == "assistant":
                yield from _wire_own(part, message, provider, ids=ids)


def _wire_own(
    part: ReasoningPart | OpaquePart | ToolCallPart, message: Message, provider: str, *, ids: _WireIds
) -> Iterator[Wire]:
    """Give what only a model says."""
    match part:
        case ReasoningPart():
            came_from = message.origin.provider if message.origin else provider
            if part.signature and came_from == provider:
                words = replace_surrogates(part.text)
                yield {"type": "thinking", "thinking": words, "signature": part.signature}
        case OpaquePart():
            if part.provider == provider and _is_object(part.block):
                yield msgspec.Raw(part.block.encode())
        case ToolCallPart():
            call = part.call
            name = _NOT_IN_IDS.sub("_", call.name)[:128] or "unnamed"
            yield {"type": "tool_use", "id": ids.of_call(call), "name": name, "input": call.arguments or {}}


def _wire_text(text: str) -> Iterator[Fields]:
    if text.strip():
        yield {"type": "text", "text": replace_surrogates(text)}


def _wire_file(part: FilePart) -> Fields:
    if part.media_type not in FILES:
        raise cannot_take(part, "the messages wire")
    source = {"type": "base64", "media_type": part.media_type, "data": part.base64}
    return {"type": "image" if part.kind == "image" else "document", "source": source}


def _wire_result(result: ToolResultPart, call_id: str) -> Fields:
    wire: Fields = {"type": "tool_result", "tool_use_id": call_id}
    if result.files:
        wire["content"] = [*_wire_text(result.content), *map(_wire_file, result.files)]
    elif result.content.strip():
        wire["content"] = replace_surrogates(result.content)
    if result.is_error and not result.files:  # the wire refuses pictures in a result that is marked
        wire["is_error"] = True
    return wire


def _is_object(text: str) -> bool:
    try:
        return bool(fields_of(msgspec.json.decode(text)))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def _without_open_end(turns: list[WireTurn]) -> list[WireTurn]:
    """Return `turns` without blanks at the end of a last assistant turn, which the wire refuses."""
    last = turns[-1].content[-1] if turns and turns[-1].role == "assistant" else None
    if isinstance(last, dict) and last.get("type") == "text":
        last["text"] = str(last["text"]).rstrip()
    return turns
