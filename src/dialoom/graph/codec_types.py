"""Which classes of a program can be stored, under what name, and how: nothing else is ever made from data."""

import dataclasses
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Final

import msgspec

from dialoom.base.errors import UsageError

RESERVED: Final = frozenset(
    {
        "bytearray", "bytes", "date", "datetime", "decimal", "dict", "float", "frozenset", "int",
        "set", "time", "timedelta", "tuple", "uuid",
    }
)  # fmt: skip


class TypeCodec(msgspec.Struct, frozen=True):
    """How values of one class are stored: `encode` gives what stands for one, `decode` makes it again.

    `name` is what the data says; keep it when the class moves or changes its own. `type` is the class, or its
    dotted name when it is not imported yet: that is only compared, never imported. What `encode` returns may
    hold anything that can be stored itself.
    """

    name: str
    type: type | str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


class Opaque(msgspec.Struct, frozen=True):
    """A stored value whose class this program did not register. Saved again, it is what it was."""

    type_name: str
    payload: Any


class TypeRegistry:
    """The classes a store may write and read, by class and by name.

    `types` holds enums, dataclasses, msgspec Structs, named tuples and pydantic models, stored under the
    name of the class, or a `TypeCodec` for anything else. Raises UsageError for a name that is taken and for
    a class that needs a codec of its own.
    """

    def __init__(self, types: Iterable[type | TypeCodec] = ()) -> None:
        self._by_class: dict[type | str, TypeCodec] = {}
        self._by_name: dict[str, TypeCodec] = {}
        for each in types:
            self._add(each if isinstance(each, TypeCodec) else codec_of(each))

    def of_class(self, cls: type[Any]) -> TypeCodec | None:
        found = self._by_class.get(cls)
        return self._by_class.get(f"{cls.__module__}.{cls.__qualname__}") if found is None else found

    def of_name(self, name: str) -> TypeCodec | None:
        return self._by_name.get(name)

    def _add(self, codec: TypeCodec) -> None:
        if codec.name in RESERVED or codec.name in self._by_name:
            raise UsageError(
                f"two types would be stored as {codec.name!r}; give one a TypeCodec of its own name"
            )
        self._by_name[codec.name] = self._by_class[codec.type] = codec


def codec_of(cls: type) -> TypeCodec:
    """Return how a class of a known kind is stored. Raises UsageError for any other."""
    for is_kind, codec in _KINDS:
        if is_kind(cls):
            return codec(cls)
    raise UsageError(
        f"{cls.__name__} is no enum, dataclass, Struct, named tuple or model; give it a TypeCodec"
    )


def _enum(cls: Any) -> TypeCodec:
    return TypeCodec(cls.__name__, cls, lambda member: member.value, cls)


def _struct(cls: Any) -> TypeCodec:
    return TypeCodec(cls.__name__, cls, _struct_fields, _maker(cls, frozenset(cls.__struct_fields__)))


def _dataclass(cls: Any) -> TypeCodec:
    return TypeCodec(cls.__name__, cls, _dataclass_fields, _dataclass_maker(cls))


def _named_tuple(cls: Any) -> TypeCodec:
    return TypeCodec(cls.__name__, cls, list, lambda items: cls(*items))


def _model(cls: Any) -> TypeCodec:
    return TypeCodec(cls.__name__, cls, _model_text, cls.model_validate_json)


_KINDS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], TypeCodec]], ...]] = (
    (lambda cls: issubclass(cls, Enum), _enum),
    (lambda cls: issubclass(cls, msgspec.Struct), _struct),
    (dataclasses.is_dataclass, _dataclass),
    (lambda cls: tuple in cls.__mro__ and hasattr(cls, "_fields"), _named_tuple),
    (lambda cls: hasattr(cls, "model_dump_json") and hasattr(cls, "model_validate_json"), _model),
)


def _struct_fields(value: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__struct_fields__}


def _model_text(model: Any) -> str:
    return model.model_dump_json(by_alias=True, round_trip=True)


def _maker(cls: Callable[..., Any], names: frozenset[str]) -> Callable[[dict[str, Any]], Any]:
    """Return what makes a `cls`; fields it no longer has are left out, new ones take their defaults."""
    return lambda fields: cls(**{name: value for name, value in fields.items() if name in names})


def _dataclass_fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _dataclass_maker(cls: Any) -> Callable[[dict[str, Any]], Any]:
    fields = dataclasses.fields(cls)
    make = _maker(cls, frozenset(field.name for field in fields if field.init))
    derived = [field.name for field in fields if not field.init]

    def decode(stored: dict[str, Any]) -> Any:
        made = make(stored)
        for name in derived:
            if name in stored:
                object.__setattr__(made, name, stored[name])  # a frozen class lets nothing else in
        return made

    return decode
