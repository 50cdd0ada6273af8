"""Takes keys out of what is recorded, also where a model spelt one out piece by piece."""

import re
from collections.abc import Callable, Collection, Sequence
from itertools import groupby

from dialoom.llm.events import ReasoningDelta, RefusalDelta, StreamEvent, TextDelta, ToolCallDelta
from dialoom.llm.json_values import fields_of, items_of

MASK = "***"
_KEY_LIKE = re.compile(r"\b(?:sk|pk|rk|gsk|xai)-[\w-]{16,}|(?<=[Bb]earer )[\w.~+/-]{16,}=*")
_SECRET_NAME = re.compile(r"api[-_]?key|token$|secret|password|authorization|cookie", re.IGNORECASE)

Mask = Callable[[str], str]


def mask_of(secrets: Collection[str]) -> Mask:
    """Return what replaces `secrets`, and all that looks like a key, in a text."""

    def mask(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, MASK)
        return _KEY_LIKE.sub(MASK, text)

    return mask


def masked(value: object, mask: Mask) -> object:
    """Return a JSON value without the secrets in its texts."""
    if isinstance(value, str):
        return mask(value)
    if fields := fields_of(value):
        return {mask(name): masked(inner, mask) for name, inner in fields.items()}
    return [masked(item, mask) for item in items_of(value)] or value


def without_named_secrets(value: object) -> object:
    """Return a JSON value without the texts behind names that tell of a secret, such as `api_key`."""
    if fields := fields_of(value):
        return {
            name: MASK
            if isinstance(inner, str) and _SECRET_NAME.search(name)
            else without_named_secrets(inner)
            for name, inner in fields.items()
        }
    return [without_named_secrets(item) for item in items_of(value)] or value


def joined(events: Sequence[StreamEvent]) -> list[StreamEvent]:
    """Return `events` with neighbouring pieces of the same words made one."""
    return [one for _, group in groupby(events, _piece_of) for one in _joined(list(group))]


def _piece_of(event: StreamEvent) -> tuple[object, ...]:
    match event:
        case TextDelta() | ReasoningDelta() | RefusalDelta():
            return (type(event),)
        case ToolCallDelta():
            return (ToolCallDelta, event.index)
        case _:
            return (None,)


def _joined(events: list[StreamEvent]) -> list[StreamEvent]:
    match events[0]:
        case TextDelta() | ReasoningDelta() | RefusalDelta() as first:
            words = "".join(
                e.text for e in events if isinstance(e, TextDelta | ReasoningDelta | RefusalDelta)
            )
            return [type(first)(words)]
        case ToolCallDelta() as first:
            words = "".join(event.arguments for event in events if isinstance(event, ToolCallDelta))
            return [ToolCallDelta(index=first.index, arguments=words)]
        case _:
            return events
