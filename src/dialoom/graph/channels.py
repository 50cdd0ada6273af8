"""Named cells of the state, and the check every write passes before it is committed."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast

import msgspec

from dialoom.graph.frozen import UNCHANGING, freeze
from dialoom.graph.log import AppendLog
from dialoom.graph.ops import Op, apply
from dialoom.graph.reducers import Reducer


class Unset:
    """The type of `UNSET`: no default was given, which None would not say."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()


class Channel(msgspec.Struct, frozen=True):
    """One cell. `type`, anything `msgspec.convert` takes, is that of the whole value; None is no check.

    A write whose type is in `as_it_is` is set without another look; `prepared` finds out. A `strict` channel
    refuses what can change in place.
    """

    name: str
    reducer: Reducer
    type: object | None = None
    default: object = UNSET
    as_it_is: frozenset[object] = frozenset()
    strict: bool = False

    def prepared(self, *, strict: bool) -> "Channel":
        """Return the channel with `as_it_is` worked out."""
        if strict or self.reducer.kind != "set" or self.reducer.combine is not None:
            return msgspec.structs.replace(self, strict=strict)
        kinds: list[object] = [kind for kind in UNCHANGING if self.type is None or self.type is kind]
        return msgspec.structs.replace(self, as_it_is=frozenset(kinds))


class WriteRefused(Exception):  # noqa: N818 - says what happened; it never leaves the engine
    """A write does not fit. `source` is the node (or START for the input), `channel` what it wrote to."""

    def __init__(self, source: str, channel: str, reason: str) -> None:
        super().__init__(f"write to channel {channel!r} refused: {reason}")
        self.source = source
        self.channel = channel


def operation(channel: Channel, values: Mapping[str, Any], written: Any) -> Op:
    """Return `written` as the checked operation to commit. Raises what a reducer or a check raises."""
    reducer = channel.reducer
    if type(written) is AppendLog:
        written = written.frozen()
    if reducer.combine is not None:
        if channel.name in values:
            written = reducer.combine(values[channel.name], written)
    elif reducer.kind != "set":
        written = _gathered(reducer.kind, written)
    if channel.type is not None and channel.type is not type(written):
        written = msgspec.convert(written, channel.type)
    written = written if type(written) in UNCHANGING else freeze(written)
    if channel.strict:
        _refuse_changeable(written)
    return Op(channel.name, reducer.kind, written)


def apply_writes(
    channels: Mapping[str, Channel], values: dict[str, Any], source: str, writes: Mapping[str, Any]
) -> list[Op]:
    """Carry out `writes` on `values` and return them as operations. Raises WriteRefused at a misfit."""
    ops: list[Op] = []
    for name, written in writes.items():
        channel = channels.get(name)
        if channel is None:
            known = ", ".join(sorted(channels)) or "none"
            raise WriteRefused(source, str(name), f"there is no such channel; the graph has: {known}")
        if type(written) in channel.as_it_is:
            values[name] = written
            ops.append(Op(name, "set", written))
            continue
        try:
            op = operation(channel, values, written)
            apply(values, op)
        except Exception as error:  # seam: reducers and types are foreign code
            raise WriteRefused(source, name, str(error)) from error
        ops.append(op)
    return ops


def _refuse_changeable(written: Any) -> None:
    from dialoom.graph.strict import refuse_changeable  # only a strict graph pays for it

    refuse_changeable(written)


def _gathered(kind: Literal["extend", "update"], written: Any) -> list[Any] | dict[str, Any]:
    if kind == "extend":
        if isinstance(written, (list, tuple)):
            return list(cast("Sequence[Any]", written))
        raise TypeError(f"append takes a list of items, not {type(written).__name__}; write [item]")
    if isinstance(written, Mapping):
        return dict(cast("Mapping[str, Any]", written))
    raise TypeError(f"merge takes a mapping of keys to lay over, not {type(written).__name__}")


def initial_operation(channel: Channel) -> Op | None:
    """Return what gives a channel its first value, None where it has none. Raises what a check raises."""
    if channel.default is not UNSET:
        return operation(channel, {}, channel.default)
    if channel.reducer.empty is not None:
        return operation(channel, {}, channel.reducer.empty())
    kind = channel.reducer.kind
    return None if kind == "set" else operation(channel, {}, [] if kind == "extend" else {})
