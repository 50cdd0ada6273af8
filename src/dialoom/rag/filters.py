"""Conditions on a chunk as data: they travel as JSON, and a store may look them up instead of asking."""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import TypeAlias

import msgspec

from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.types import Chunk, MetaValue

ACL = "acl"
"""Reserved metadata: a list of who may see a chunk. Without it everyone may, with an empty one nobody."""
MAX_DEPTH = 16
MAX_CONDITIONS = 256
_LONGEST_NAME = 200
_LARGEST_INT = 2**63 - 1
_OWN_FIELDS = ("id", "doc_id", "page")

Scalar: TypeAlias = str | int | float | bool | None
Number: TypeAlias = int | float | bool


class _Field(msgspec.Struct, frozen=True, tag_field="op", forbid_unknown_fields=True):
    """A condition on one field: `id`, `doc_id` or `page` of the chunk, or a name of its metadata."""

    field: str

    def check_name(self) -> None:
        if not 0 < len(self.field) <= _LONGEST_NAME or any(
            mark in '"\\' or mark < " " for mark in self.field
        ):
            raise InvalidOptionsError(f"a filter cannot name the field {self.field[:40]!r}; rename it")

    def held(self, chunk: Chunk) -> MetaValue:
        if self.field in _OWN_FIELDS:
            own: MetaValue = getattr(chunk, self.field)
            return own
        return chunk.metadata.get(self.field)


class Eq(_Field, frozen=True, tag="eq"):
    """The field has this value; None also stands for a field that is not there."""

    value: Scalar

    def __post_init__(self) -> None:
        self.check_name()
        _check_value(self.value)

    def __call__(self, chunk: Chunk) -> bool:
        return self.held(chunk) == self.value


class Ne(_Field, frozen=True, tag="ne"):
    """The field has another value, or is not there."""

    value: Scalar

    def __post_init__(self) -> None:
        self.check_name()
        _check_value(self.value)

    def __call__(self, chunk: Chunk) -> bool:
        return self.held(chunk) != self.value


class In(_Field, frozen=True, tag="in"):
    """The field has one of these values."""

    values: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        self.check_name()
        if len(self.values) > MAX_CONDITIONS:
            raise InvalidOptionsError(f"a filter may list {MAX_CONDITIONS} values, not {len(self.values)}")
        for value in self.values:
            _check_value(value)

    def __call__(self, chunk: Chunk) -> bool:
        return self.held(chunk) in self.values


class Gt(_Field, frozen=True, tag="gt"):
    """The field is greater: a number than a number, a text than a text in the order of its code points."""

    value: str | int | float

    def __post_init__(self) -> None:
        self.check_name()
        _check_value(self.value)

    def __call__(self, chunk: Chunk) -> bool:
        return _is_less(self.value, self.held(chunk))


class Lt(_Field, frozen=True, tag="lt"):
    """The field is less: a number than a number, a text than a text in the order of its code points."""

    value: str | int | float

    def __post_init__(self) -> None:
        self.check_name()
        _check_value(self.value)

    def __call__(self, chunk: Chunk) -> bool:
        return _is_less(self.held(chunk), self.value)


class Contains(_Field, frozen=True, tag="contains"):
    """The field is a list with this text in it, or a text that this one is a part of."""

    value: str

    def __post_init__(self) -> None:
        self.check_name()
        _check_value(self.value)

    def __call__(self, chunk: Chunk) -> bool:
        held = self.held(chunk)
        return isinstance(held, list | str) and self.value in held


class VisibleTo(msgspec.Struct, frozen=True, tag_field="op", tag="visible_to", forbid_unknown_fields=True):
    """One of these names may see the chunk: it stands in the chunk's list `acl`, or there is no such list.

    An `acl` that is no list lets nobody in.
    """

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if isinstance(self.names, str):  # a text is a row of letters, each of which would be a name
            raise InvalidOptionsError(f"names are a tuple of texts; write ({self.names!r},)")
        for name in self.names:
            _check_value(name)

    def __call__(self, chunk: Chunk) -> bool:
        listed = chunk.metadata.get(ACL)
        return listed is None or (isinstance(listed, list) and not set(self.names).isdisjoint(listed))


class And(msgspec.Struct, frozen=True, tag_field="op", tag="and", forbid_unknown_fields=True):
    """All of these hold; none at all holds too."""

    of: tuple["Condition", ...]

    def __post_init__(self) -> None:
        _check_size(self)

    def __call__(self, chunk: Chunk) -> bool:
        return all(condition(chunk) for condition in self.of)


class Or(msgspec.Struct, frozen=True, tag_field="op", tag="or", forbid_unknown_fields=True):
    """At least one of these holds."""

    of: tuple["Condition", ...]

    def __post_init__(self) -> None:
        _check_size(self)

    def __call__(self, chunk: Chunk) -> bool:
        return any(condition(chunk) for condition in self.of)


class Not(msgspec.Struct, frozen=True, tag_field="op", tag="not", forbid_unknown_fields=True):
    """The opposite."""

    of: "Condition"

    def __post_init__(self) -> None:
        _check_size(self)

    def __call__(self, chunk: Chunk) -> bool:
        return not self.of(chunk)


Condition: TypeAlias = Eq | Ne | In | Gt | Lt | Contains | VisibleTo | And | Or | Not
"""A condition is called with a chunk, so it goes wherever a `ChunkFilter` goes."""
CONDITIONS = (Eq, Ne, In, Gt, Lt, Contains, VisibleTo, And, Or, Not)


def parse_condition(source: bytes | str | Mapping[str, object]) -> Condition:
    """Read a condition from JSON or what JSON is read to; `InvalidOptionsError` says what is wrong with it.

    `{"op": "not", "of": {"op": "in", "field": "lang", "values": ["en", "fr"]}}` is one.
    """
    try:
        if isinstance(source, bytes | str):
            return msgspec.json.decode(source, type=Condition)
        return msgspec.convert(source, Condition)
    except RecursionError as error:
        raise InvalidOptionsError(f"a filter may be nested {MAX_DEPTH} deep; make it flatter") from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidOptionsError(f"the filter cannot be read: {error}") from error


def _is_less(first: object, second: object) -> bool:
    if isinstance(first, str) and isinstance(second, str):
        return first < second
    return isinstance(first, Number) and isinstance(second, Number) and first < second


def _check_value(value: Scalar) -> None:
    """Refuse what a database takes for something else: huge and endless numbers, NUL, half characters."""
    if isinstance(value, str):
        if "\0" in value or any("\ud800" <= mark <= "\udfff" for mark in value):
            raise InvalidOptionsError("a filter's text holds NUL or half a surrogate pair; take it out")
    elif isinstance(value, float) and not isfinite(value):
        raise InvalidOptionsError(f"a filter cannot compare with {value}; use a finite number")
    elif isinstance(value, int) and abs(value) > _LARGEST_INT:
        raise InvalidOptionsError("a filter cannot compare with so large a number; use one below 2**63")


def _check_size(condition: Condition) -> None:
    level: list[Condition] = [condition]
    seen = depth = 0
    while level:
        seen, depth = seen + len(level), depth + 1
        if depth > MAX_DEPTH or seen > MAX_CONDITIONS:
            raise InvalidOptionsError(
                f"a filter may have {MAX_CONDITIONS} conditions, {MAX_DEPTH} deep; make it smaller"
            )
        level = [inner for outer in level for inner in _inside(outer)]


def _inside(condition: Condition) -> Iterable[Condition]:
    match condition:
        case And(of=inner) | Or(of=inner):
            return inner
        case Not(of=inner):
            return (inner,)
        case _:
            return ()
