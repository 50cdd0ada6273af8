"""Plain values: what JSON and YAML can both hold, clean and bounded in depth."""

import math
from collections.abc import Mapping
from datetime import date
from typing import TypeAlias, cast

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line, replace_surrogates

Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain] | None"

MAX_DEPTH = 64
MAX_OBJECT_DEPTH = 48
"""Less than `MAX_DEPTH`, so that an object still fits where a file holds it, some levels down."""


def plain_value(value: object, max_depth: int = MAX_DEPTH) -> Plain:
    """Return a copy of `value` that JSON and YAML hold: tuples become lists, dates ISO text.

    Half characters become U+FFFD. Raises `UsageError` on any other type, on keys that are not text and on
    more than `max_depth` levels. NaN and infinities pass: YAML has words for them.
    """
    return _copy(value, max_depth)


def json_object(fields: Mapping[str, object], what: str) -> dict[str, object]:
    """Return `plain_value` of `fields`, at most 48 levels, numbers finite; errors name `what` they are."""
    try:
        copy = plain_value(fields, MAX_OBJECT_DEPTH)
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from error
    if not _finite(copy):
        raise UsageError(f"{what}: holds a number that json cannot hold (nan or infinity); leave it out")
    return cast("dict[str, object]", copy)


def _copy(value: object, levels: int) -> Plain:
    """Copy `value`; `levels` more may follow."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return replace_surrogates(str(value))
        case date():
            return value.isoformat()
        case _ if levels == 0:
            raise UsageError("not a plain value: it has too many levels; flatten it")
        case list() | tuple():
            return [_copy(item, levels - 1) for item in cast("list[object]", value)]
        case Mapping():
            entries = cast("Mapping[object, object]", value)
            return {_key(key): _copy(item, levels - 1) for key, item in entries.items()}
        case _:
            raise UsageError(f"not a plain value: a {type(value).__name__}; use text, numbers, lists, dicts")


def _key(key: object) -> str:
    if isinstance(key, str):
        return replace_surrogates(key)
    raise UsageError(f"not a plain value: the key {one_line(repr(key), 40)} is not text")


def _finite(value: Plain) -> bool:
    match value:
        case float():
            return math.isfinite(value)
        case list():
            return all(_finite(item) for item in value)
        case dict():
            return all(_finite(item) for item in value.values())
        case _:
            return True
