"""Values on their way to bytes and back: what the format cannot say is tagged with the name of its type."""

import base64
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, cast
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from dialoom.graph.codec_types import Opaque, TypeCodec, TypeRegistry
from dialoom.graph.frozen import FrozenDict, FrozenList
from dialoom.graph.log import AppendLog
from dialoom.graph.state import State

MAX_DEPTH: Final = 200
TAG: Final = "$type"
_PLAIN: Final = frozenset({str, bool, type(None)})
_INT_RANGE: Final = (-(2**63), 2**64)

Handler = Callable[[Any, int], Any]


class Misfit(Exception):  # noqa: N818 - says what happened; the codec turns it into an error with a path
    """A value cannot be stored."""


class Tagged(msgspec.Struct, frozen=True):
    """What stands for a value the format has no word for."""

    name: str
    payload: Any


class ValueWriter:
    """Turns values into what a format can hold, with `tag(name, payload)` for the rest.

    `text` says that the format is JSON, which has no bytes, no infinity and no tags of its own. `careful`
    looks at every string too, to find the one that cannot be encoded.
    """

    def __init__(
        self,
        types: TypeRegistry,
        tag: Callable[[str, Any], Any],
        *,
        text: bool = False,
        careful: bool = False,
    ) -> None:
        self._types = types
        self._tag = tag
        self._text = text
        self._careful = careful
        self._plain = _PLAIN - {str} if careful else _PLAIN
        if not text:
            self._plain |= {float, bytes}
        self._handlers: dict[type, Handler] = {
            str: lambda value, _: _checked_text(value),
            int: lambda value, _: self._int(value),
            float: lambda value, _: value if math.isfinite(value) else tag("float", str(value)),
            bytes: lambda value, _: tag("bytes", base64.b64encode(value).decode()),
            bytearray: lambda value, depth: tag("bytearray", self.value(bytes(value), depth)),
            tuple: self._listed("tuple"),
            set: self._listed("set"),
            frozenset: self._listed("frozenset"),
            datetime: lambda value, _: tag("datetime", _moment(value)),
            date: lambda value, _: tag("date", value.isoformat()),
            time: lambda value, _: tag("time", _moment(value)),
            timedelta: lambda value, _: tag("timedelta", [value.days, value.seconds, value.microseconds]),
            Decimal: lambda value, _: tag("decimal", str(value)),
            UUID: lambda value, _: tag("uuid", value.hex),
            Opaque: lambda value, depth: tag(value.type_name, self.value(value.payload, depth)),
            **dict.fromkeys((list, FrozenList, AppendLog), self._list),
            **dict.fromkeys((dict, FrozenDict, State), self._dict),
        }

    def value(self, value: Any, depth: int = MAX_DEPTH) -> Any:
        """Return `value` as the format can hold it. Raises Misfit for what cannot be stored."""
        kind = cast("type[Any]", type(value))
        if kind in self._plain:
            return value
        if depth == 0:
            raise Misfit(f"something nested deeper than {MAX_DEPTH} levels")
        handler = self._handlers.get(kind)
        if handler is None:
            handler = self._handlers[kind] = self._handler_of(kind)
        return handler(value, depth - 1)

    def children(self, value: Any) -> Iterator[tuple[str, Any]]:
        """Return the parts of `value` and how each is reached from it, for the path in an error."""
        codec = self._types.of_class(cast("type[Any]", type(value)))
        if codec is not None:
            value = codec.encode(value)
        if isinstance(value, Mapping):
            for key, part in cast("Mapping[Any, Any]", value).items():
                yield f"[{key!r}]", part
        elif isinstance(value, (list, tuple, AppendLog)):
            for at, part in enumerate(cast("Iterable[Any]", value)):
                yield f"[{at}]", part

    def _handler_of(self, kind: type) -> Handler:
        codec = self._types.of_class(kind)
        if codec is not None:
            return self._registered(codec)
        if issubclass(kind, list):
            return self._list
        if issubclass(kind, dict):
            return self._dict
        raise Misfit(f"a {kind.__name__}")

    def _registered(self, codec: TypeCodec) -> Handler:
        return lambda value, depth: self._tag(codec.name, self.value(codec.encode(value), depth))

    def _int(self, value: int) -> Any:
        if _INT_RANGE[0] <= value < _INT_RANGE[1]:
            return value
        return self._tag("int", hex(value))

    def _list(self, value: Iterable[Any], depth: int) -> Any:
        return [self.value(item, depth) for item in value]

    def _listed(self, name: str) -> Handler:
        return lambda value, depth: self._tag(name, [self.value(item, depth) for item in value])

    def _dict(self, value: Mapping[Any, Any], depth: int) -> Any:
        for key in value:  # no set of types or generator, which cost more than the few keys there mostly are
            if type(key) is not str or (self._text and key == TAG):
                break
        else:
            if self._careful:
                return {_checked_text(key): self.value(item, depth) for key, item in value.items()}
            plain = self._plain  # looked up here, because most items are text and a call costs as much again
            return {
                key: item if type(item) in plain else self.value(item, depth) for key, item in value.items()
            }
        pairs = [[self.value(key, depth), self.value(item, depth)] for key, item in value.items()]
        return self._tag("dict", pairs)


class ValueReader:
    """Turns what a format held back into values, read-only outside objects, as they are in a live run."""

    def __init__(self, types: TypeRegistry, *, text: bool = False) -> None:
        self._types = types
        self._text = text

    def value(self, raw: Any, *, frozen: bool = True) -> Any:
        """Return the value. Raises what a registered class raises when it refuses to be made."""
        if type(raw) is list:
            items = [self.value(item, frozen=frozen) for item in cast("list[Any]", raw)]
            return FrozenList(items) if frozen else items
        if type(raw) is dict:
            pairs = cast("dict[str, Any]", raw)
            if self._text and TAG in pairs:
                return self._tagged(str(pairs[TAG]), pairs["value"], frozen=frozen)
            fields = {key: self.value(item, frozen=frozen) for key, item in pairs.items()}
            return FrozenDict(fields) if frozen else fields
        if type(raw) is Tagged:
            return self._tagged(raw.name, raw.payload, frozen=frozen)
        return raw

    def _tagged(self, name: str, payload: Any, *, frozen: bool) -> Any:
        if name in _BUILT_IN:
            inner = frozen and name in {"dict", "tuple"}
            return _BUILT_IN[name](self.value(payload, frozen=inner), frozen)
        codec = self._types.of_name(name)
        if codec is None:
            return Opaque(name, self.value(payload))
        return codec.decode(self.value(payload, frozen=False))


def tagged_text(name: str, payload: Any) -> dict[str, Any]:
    """Return the tag of the JSON form."""
    return {TAG: name, "value": payload}


def _checked_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Misfit("text with half a surrogate pair") from None
    return text


def _moment(value: datetime | time) -> list[Any]:
    zone = value.tzinfo.key if isinstance(value.tzinfo, ZoneInfo) else None
    return [value.isoformat() if zone is None else value.replace(tzinfo=None).isoformat(), zone, value.fold]


def _with_zone(kind: type[datetime] | type[time], payload: list[Any]) -> datetime | time:
    text, zone, fold = payload
    value = kind.fromisoformat(text).replace(fold=fold)
    return value if zone is None else value.replace(tzinfo=ZoneInfo(zone))


_BUILT_IN: Final[dict[str, Callable[[Any, bool], Any]]] = {
    "bytearray": lambda payload, _: bytearray(payload),
    "bytes": lambda payload, _: base64.b64decode(payload, validate=True),
    "date": lambda payload, _: date.fromisoformat(payload),
    "datetime": lambda payload, _: _with_zone(datetime, payload),
    "decimal": lambda payload, _: Decimal(payload),
    "dict": lambda pairs, frozen: (FrozenDict if frozen else dict)(dict(pairs)),
    "float": lambda payload, _: float(payload),
    "frozenset": lambda items, _: frozenset(items),
    "int": lambda payload, _: int(payload, 16),
    "set": lambda items, _: set(items),
    "time": lambda payload, _: _with_zone(time, payload),
    "timedelta": lambda payload, _: timedelta(*payload),
    "tuple": lambda items, _: tuple(items),
    "uuid": lambda payload, _: UUID(payload),
}
