"""The value that is wanted, as a schema for the model and as a check of what comes back."""

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Protocol, TypeVar, cast, runtime_checkable

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.llm.json_schema import JsonSchema, Violation
from dialoom.llm.json_values import fields_of, items_of, text_of

T = TypeVar("T")
_Node = dict[str, object]
_WRAPPED = "value"


class Checked(msgspec.Struct, Generic[T], frozen=True):
    """A value of the wanted kind, or why it is none."""

    value: T | None = None
    violations: tuple[Violation, ...] = ()


class Target(Generic[T]):
    """What is wanted. `schema` is what the model is shown: servers want an object, so others are wrapped."""

    def __init__(
        self, schema: Mapping[str, object], read: Callable[[object], T], *, wrapped: bool = False
    ) -> None:
        self.schema: _Node = _wrap(dict(schema)) if wrapped else dict(schema)
        self.check = JsonSchema(self.schema)
        self._read = read
        self._wrapped = wrapped
        self._closed: _Node | None = None

    @property
    def closed_schema(self) -> _Node:
        """The schema of a type without room for fields that nobody reads; servers enforce only such ones."""
        return self.schema if self._closed is None else self._closed

    def close(self) -> None:
        self._closed = _close(self.schema)

    def examine(self, value: object) -> Checked[T]:
        """Check a decoded answer and turn it into what is wanted."""
        violations = self.check.check(value)
        if violations:
            return Checked(violations=violations)
        if self._wrapped:
            value = fields_of(value)[_WRAPPED]
        try:
            return Checked(self._read(value))
        except msgspec.ValidationError as error:
            return Checked(violations=(_msgspec_violation(error),))
        except ValueError as error:  # of pydantic, whose error is one
            return Checked(violations=tuple(_pydantic_violations(error)))


def target_of_schema(schema: Mapping[str, object]) -> Target[object]:
    """Return the target of a JSON Schema. Raises `UsageError` when it is invalid."""
    return Target(schema, lambda value: value)


def target_of_type(wanted: type[T]) -> Target[T]:
    """Return the target of a type: msgspec, dataclass, TypedDict, pydantic model, or a built-in container.

    Raises `UsageError` when no schema can be made of it.
    """
    if isinstance(wanted, _PydanticModel):
        model = wanted

        def validate(value: object) -> T:
            return cast("T", model.model_validate_json(msgspec.json.encode(value)))

        target = Target(model.model_json_schema(), validate)
    else:
        schema = _schema_of(wanted)

        def convert(value: object) -> T:
            return msgspec.convert(value, wanted, str_keys=True)

        target = Target(schema, convert, wrapped=schema.get("type") != "object")
    target.close()
    return target


@runtime_checkable
class _PydanticModel(Protocol):
    """A class of pydantic's, which is never imported here."""

    def model_json_schema(self) -> _Node: ...

    def model_validate_json(self, json_data: bytes) -> object: ...


@runtime_checkable
class _ErrorList(Protocol):
    """pydantic's ValidationError."""

    def errors(
        self, *, include_url: bool, include_context: bool, include_input: bool
    ) -> list[dict[str, object]]: ...


def _schema_of(wanted: object) -> _Node:
    try:
        schema = msgspec.json.schema(wanted)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"no answer can be asked for as {one_line(repr(wanted), 80)}: {one_line(str(error))}; "
            "use a msgspec struct, a dataclass, a pydantic model or a JSON Schema"
        ) from error
    reference = text_of(schema.get("$ref"))
    if reference.startswith("#/$defs/"):  # servers want the object itself at the root
        named = fields_of(fields_of(schema["$defs"])[reference.removeprefix("#/$defs/")])
        return {**named, "$defs": schema["$defs"]}
    return schema


def _wrap(schema: _Node) -> _Node:
    inner = {name: value for name, value in schema.items() if name != "$defs"}
    outer: _Node = {"type": "object", "properties": {_WRAPPED: inner}, "required": [_WRAPPED]}
    return {**outer, "$defs": schema["$defs"]} if "$defs" in schema else outer


def _close(node: _Node) -> _Node:
    """Return a type's schema with `additionalProperties: false` where it names properties."""
    closed = dict(node)
    for keyword in ("properties", "$defs"):
        if keyword in node:
            closed[keyword] = {name: _closed(each) for name, each in fields_of(node[keyword]).items()}
    for keyword in ("anyOf", "allOf", "oneOf", "prefixItems"):
        if keyword in node:
            closed[keyword] = [_closed(each) for each in items_of(node[keyword])]
    for keyword in ("items", "additionalProperties"):
        if keyword in node:
            closed[keyword] = _closed(node[keyword])
    if "properties" in node:
        closed.setdefault("additionalProperties", False)
    return closed


def _closed(value: object) -> object:
    node = fields_of(value)
    return _close(node) if node else value


def _msgspec_violation(error: msgspec.ValidationError) -> Violation:
    words, _, path = str(error).rpartition(" - at `")
    return Violation(one_line(path.rstrip("`")), one_line(words)) if words else Violation("$", one_line(path))


def _pydantic_violations(error: ValueError) -> Iterable[Violation]:
    if not isinstance(error, _ErrorList):
        yield Violation("$", one_line(str(error)))
        return
    for each in error.errors(include_url=False, include_context=False, include_input=False)[:20]:
        keys = each.get("loc")
        steps = cast("tuple[object, ...]", keys) if isinstance(keys, tuple) else ()
        path = "$" + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in steps)
        yield Violation(one_line(path), one_line(text_of(each.get("msg"))))
