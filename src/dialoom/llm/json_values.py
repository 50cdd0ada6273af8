"""Looks into decoded JSON of unknown shape."""

from typing import cast


def fields_of(value: object) -> dict[str, object]:
    """Return `value` when it is a JSON object, else an empty one."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def items_of(value: object) -> list[object]:
    """Return `value` when it is a JSON array, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else []


def count_of(value: object) -> int | None:
    """Return `value` when it can be a count of tokens, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < 1e15 else None


def text_of(value: object) -> str:
    """Return `value` when it is text, else an empty one."""
    return value if isinstance(value, str) else ""
