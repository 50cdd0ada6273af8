"""The engine's own structs on their way to bytes: untagged, because the fields' types say what comes back."""

from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import msgspec

from dialoom.graph.codec_values import ValueWriter

Write = Callable[[Any], Any]
_SCALARS: Final = (str, int, bool, float)


class FieldWriter:
    """Writes structs by field, fields equal to their defaults left out, values of no set type by `values`.

    `msgspec.convert` to the same type reads them back.
    """

    def __init__(self, values: ValueWriter) -> None:
        self._values = values
        self._structs: dict[type, Write] = {}
        self._known: dict[tuple[type, frozenset[str]], tuple[tuple[str, Any, Write], ...]] = {}

    def fields(self, value: msgspec.Struct, *, omit: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Return the fields of `value` without those in `omit`. Raises Misfit for what cannot be stored."""
        written: dict[str, Any] = {}
        for name, default, write in self._writes_of(type(value), omit):
            field = getattr(value, name)
            if field is not default and (default is msgspec.NODEFAULT or field != default):
                written[name] = field if write is _as_it_is else write(field)
        return written

    def _writes_of(
        self, kind: type[msgspec.Struct], omit: frozenset[str] = frozenset()
    ) -> tuple[tuple[str, Any, Write], ...]:
        found = self._known.get((kind, omit))
        if found is None:
            found = self._known[kind, omit] = tuple(
                (field.name, field.default, self._of_type(field.type))
                for field in msgspec.structs.fields(kind)
                if field.name not in omit
            )
        return found

    def _of_type(self, wanted: Any) -> Write:
        """Return how a value of the declared type `wanted` is written."""
        if wanted in _SCALARS or get_origin(wanted) is Literal:
            return _as_it_is
        if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
            return self._struct
        origin, inner = get_origin(wanted), get_args(wanted)
        if origin is tuple:
            return self._tuple(inner)
        if isinstance(origin, type) and issubclass(origin, Mapping) and inner[0] is str:
            item = self._of_type(inner[1])
            return lambda value: {key: item(each) for key, each in value.items()}
        if origin in (Union, UnionType):
            return self._one_of(tuple(each for each in inner if each is not type(None)))
        return self._values.value

    def _struct(self, value: msgspec.Struct) -> Any:
        kind = type(value)
        write = self._structs.get(kind)
        if write is None:
            write = self._structs[kind] = self._of_struct(kind)
        return write(value)

    def _of_struct(self, kind: type[msgspec.Struct]) -> Write:
        config = kind.__struct_config__
        if config.tag is not None:
            tag = {str(config.tag_field): config.tag}
            return lambda value: {**tag, **self.fields(value)}
        if not config.array_like:
            return self.fields
        writes = [
            (at, write) for at, (_, _, write) in enumerate(self._writes_of(kind)) if write is not _as_it_is
        ]

        def write_array(value: msgspec.Struct) -> list[Any]:
            parts = [*msgspec.structs.astuple(value)]
            for at, write in writes:
                parts[at] = write(parts[at])
            return parts

        return write_array

    def _tuple(self, inner: tuple[Any, ...]) -> Write:
        if len(inner) == 2 and inner[1] is ...:
            item = self._of_type(inner[0])
            return _as_it_is if item is _as_it_is else lambda value: [item(each) for each in value]
        items = [self._of_type(each) for each in inner]
        return lambda value: [item(each) for item, each in zip(items, value, strict=True)]

    def _one_of(self, types: tuple[Any, ...]) -> Write:
        if len(types) == 1:
            only = self._of_type(types[0])
            return lambda value: None if value is None else only(value)
        structs = tuple(each for each in types if isinstance(each, type) and issubclass(each, msgspec.Struct))
        return lambda value: self._struct(value) if isinstance(value, structs) else self._values.value(value)


def _as_it_is(value: Any) -> Any:
    return value
