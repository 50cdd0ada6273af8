"""An answer as it can be kept: written to any store and read back from it."""

from collections.abc import Iterable
from typing import Final, cast

import msgspec

from dialoom.llm.messages import Message, Part, ToolCall, ToolCallPart

MAX_DEPTH: Final = 200
"""Arguments that nest deeper are no JSON that anybody has to take; what is left of them is their text."""


def keepable(message: Message) -> Message:
    """Return `message`, with calls of endlessly nested arguments as calls that cannot be run."""
    if not any(_is_too_deep(call) for call in message.tool_calls):
        return message
    return msgspec.structs.replace(message, parts=tuple(_keepable(part) for part in message.parts))


def _keepable(part: Part) -> Part:
    if isinstance(part, ToolCallPart) and _is_too_deep(part.call):
        call = msgspec.structs.replace(part.call, arguments=None, problem="invalid_json")
        return ToolCallPart(call)
    return part


def _is_too_deep(call: ToolCall) -> bool:
    if call.arguments is None or 0 < len(call.raw) < 2 * MAX_DEPTH:
        return False
    level: Iterable[object] = (call.arguments,)
    for _ in range(MAX_DEPTH):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()
