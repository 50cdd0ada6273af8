"""Committed operations: the only way state changes, live and on replay alike."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, assert_never, cast

import msgspec

from dialoom.graph.frozen import FrozenDict
from dialoom.graph.log import AppendLog

OpKind = Literal["set", "extend", "update"]


class Op(msgspec.Struct, frozen=True, array_like=True):
    """One change of one channel. `value` is what to set, the items to add, or the keys to lay over."""

    channel: str
    kind: OpKind
    value: Any


def fold(values: dict[str, Any], ops: Iterable[Op]) -> None:
    """Carry out `ops` in order on `values`. Raises what `apply` raises."""
    for op in ops:
        apply(values, op)


def apply(values: dict[str, Any], op: Op) -> None:
    """Carry out `op` on `values`. Raises TypeError when its channel holds what this kind cannot change."""
    match op.kind:
        case "set":
            values[op.channel] = op.value
        case "extend":
            values[op.channel] = _log(values.get(op.channel)).extended(op.value)
        case "update":
            values[op.channel] = FrozenDict({**_mapping(values.get(op.channel)), **op.value})
        case _:
            assert_never(op.kind)


def _log(value: Any) -> AppendLog:
    if type(value) is AppendLog:
        return value
    if value is None:
        return AppendLog.of()
    if isinstance(value, (list, tuple)):
        # a channel that changed its reducer keeps what it held
        return AppendLog.of(cast("Sequence[Any]", value))
    raise TypeError(f"it holds {type(value).__name__}, which cannot be appended to")


def _mapping(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    raise TypeError(f"it holds {type(value).__name__}, which cannot be merged into")
