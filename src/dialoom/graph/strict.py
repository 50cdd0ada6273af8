"""Finding what can still change in a value that the engine has made read-only, for graphs built strict."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any, Final, cast
from uuid import UUID

import msgspec

from dialoom.graph.frozen import MAX_DEPTH, FrozenDict, FrozenList

_FIXED: Final = (
    str, int, float, complex, bool, bytes, type(None), range, type, Enum,
    date, time, timedelta, tzinfo, Decimal, Fraction, UUID, PurePath,
)  # fmt: skip


class ChangeableError(TypeError):
    """A value holds something that can change in place."""


def refuse_changeable(value: Any) -> None:
    """Raise ChangeableError, naming the way to it, for the first object in `value` that can change in place.

    Lists and dicts must be frozen; dataclasses, Structs and pydantic models must be declared frozen, and what
    they hold is looked at too. An object of any other class counts as one that can change.
    """
    found = next(_changeable(value, "it", MAX_DEPTH), None)
    if found is not None:
        where, kind = found
        raise ChangeableError(
            f"{where} is a {kind}, which can change in place; declare it frozen or write plain data"
            " (the graph is built with strict=True)"
        )


def _changeable(value: Any, where: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, _FIXED):
        return
    parts = _parts(value)
    if parts is None or depth == 0:
        yield where, type(value).__name__
    else:
        for step, part in parts:
            yield from _changeable(part, where + step, depth - 1)


def _parts(value: Any) -> Sequence[tuple[str, Any]] | None:
    """Return what a read-only container holds and how each is reached; None for any other object."""
    if isinstance(value, (FrozenList, tuple)):
        return [(f"[{at}]", item) for at, item in enumerate(cast("Sequence[Any]", value))]
    if isinstance(value, FrozenDict):
        return [(f"[{key!r}]", item) for key, item in value.items()]
    if isinstance(value, frozenset):
        return [(" (in the set)", item) for item in cast("frozenset[Any]", value)]
    names = _frozen_fields(value)
    return None if names is None else [(f".{name}", getattr(value, name)) for name in names]


def _frozen_fields(value: Any) -> Iterable[str] | None:
    """Return the fields of a frozen Struct, dataclass or pydantic model, None for anything else."""
    kind = cast("Any", type(value))
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__ if kind.__struct_config__.frozen else None
    if hasattr(kind, "__dataclass_params__"):
        return tuple(kind.__dataclass_fields__) if kind.__dataclass_params__.frozen else None
    is_frozen_model = hasattr(kind, "model_fields") and kind.model_config.get("frozen")
    return tuple(kind.model_fields) if is_frozen_model else None
