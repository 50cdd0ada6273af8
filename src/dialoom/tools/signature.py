"""A function's signature as a JSON Schema, and arguments decoded to the types it asks for."""

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Optional,
    Protocol,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.llm.json_schema import Violation
from dialoom.tools.alternatives import OneOf, decodable
from dialoom.tools.constraints import read_constraints
from dialoom.tools.context import ToolContext
from dialoom.tools.docstring import Documentation, read_docstring
from dialoom.tools.observe import to_plain
from dialoom.tools.tool import ArgumentsError

_REFERENCE: Final = "#/$defs/{name}"
_PLACE: Final = re.compile(r" - at (?:`key` in )?`(\$.*)`\Z")
_FIELDS_ONLY: Final = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}


@runtime_checkable
class ModelType(Protocol):
    """The class of a pydantic model, or whatever offers the same two methods."""

    def model_json_schema(self, *, ref_template: str) -> dict[str, Any]: ...
    def model_validate(self, value: object, /) -> object: ...


@runtime_checkable
class MarksField(Protocol):
    """What pydantic's `Field(...)` returns."""

    def is_required(self) -> bool: ...


class Signature:
    """What a tool function takes: `schema` for the model, `decode` for its arguments.

    `description` is its docstring without what that says of parameters; `context` names the parameter
    that takes the `ToolContext`, None without one. Raises `UsageError` when a parameter has no type, or one
    that JSON cannot carry.
    """

    def __init__(self, function: Callable[..., object], *, name: str) -> None:
        parameters = _read_parameters(function, name)
        contexts = [each.name for each in parameters if _is_context(each.annotation)]
        if len(contexts) > 1:
            raise UsageError(f"tool {name!r} takes the context twice; keep one of {', '.join(contexts)}")
        self.context = next(iter(contexts), None)
        visible = [each for each in parameters if each.name != self.context]
        documentation = read_docstring(inspect.getdoc(function), [each.name for each in visible])
        self.description = documentation.description
        self._struct = _struct_of(visible, name)
        self.schema = _schema_of(self._struct, visible, name=name, documentation=documentation)

    def decode(self, args: Mapping[str, object]) -> dict[str, object]:
        """Return `args` as the types of the signature; what was not given is left to the function's defaults.

        Raises `ArgumentsError` on what does not fit. A whole number may come as `3.0`, as in JSON Schema.
        """
        try:
            struct = self._convert(args)
        except msgspec.ValidationError:
            try:
                struct = self._convert(_with_whole_numbers(args))
            except msgspec.ValidationError as error:
                raise ArgumentsError((_violation(error),)) from error
        fields = msgspec.structs.asdict(struct)
        return {name: value for name, value in fields.items() if value is not msgspec.UNSET}

    def _convert(self, args: object) -> msgspec.Struct:
        try:
            return msgspec.convert(args, self._struct, str_keys=True, dec_hook=_decode_custom)
        except UnicodeEncodeError as error:  # msgspec looks a text up, in a Literal say, by its bytes
            raise msgspec.ValidationError("a text holds half a character (a lone surrogate)") from error


def _read_parameters(function: Callable[..., object], name: str) -> list[inspect.Parameter]:
    try:
        signature = inspect.signature(function)
        hints = get_type_hints(_hinted(function), include_extras=True)
    except (NameError, AttributeError, SyntaxError, TypeError, ValueError) as error:
        raise UsageError(
            f"the type hints of tool {name!r} cannot be read: {one_line(str(error))}; "
            "define the types at the top of its module"
        ) from error
    for parameter in signature.parameters.values():
        _check_parameter(parameter, name)
    return [
        each.replace(annotation=hints.get(each.name, each.annotation))
        for each in signature.parameters.values()
    ]


def _check_parameter(parameter: inspect.Parameter, tool: str) -> None:
    own = parameter.name
    if parameter.kind not in _FIELDS_ONLY:
        raise UsageError(
            f"tool {tool!r} takes {parameter}; models name each argument, so name each parameter"
        )
    if parameter.annotation is inspect.Parameter.empty:
        if own == "self":
            raise UsageError(
                f"{tool!r} is a method; make a tool of it on an object, as in tool(archive.{tool})"
            )
        raise UsageError(f"parameter {own!r} of tool {tool!r} has no type hint; add one")
    if isinstance(parameter.default, MarksField):
        raise UsageError(
            f"parameter {own!r} of tool {tool!r} has a Field for its default, which its function would get;"
            f" put it into the type, as in {own}: Annotated[int, Field(...)] = 5"
        )


def _hinted(function: Callable[..., object]) -> Callable[..., object]:
    """Return what holds the type hints: of a partial, its function; of an object, what calls it."""
    if isinstance(function, functools.partial):
        return _hinted(cast("functools.partial[object]", function).func)
    return function if inspect.isroutine(function) else type(function).__call__


def _is_context(annotation: object) -> bool:
    if get_origin(annotation) in {Union, UnionType, Annotated}:
        return any(_is_context(each) for each in get_args(annotation))
    return annotation is ToolContext


def _struct_of(parameters: list[inspect.Parameter], name: str) -> type[msgspec.Struct]:
    try:
        fields = [_field(each) for each in parameters]
        return msgspec.defstruct(f"Arguments of {name}", fields, kw_only=True, forbid_unknown_fields=True)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the parameters of tool {name!r} cannot be used: {one_line(str(error))}") from error


def _field(parameter: inspect.Parameter) -> tuple[str, Any] | tuple[str, Any, Any]:
    if parameter.default is inspect.Parameter.empty:
        return parameter.name, decodable(parameter.annotation)
    hint = parameter.annotation if parameter.default is not None else _or_none(parameter.annotation)
    return parameter.name, decodable(hint), msgspec.field(default_factory=_not_given)


def _or_none(annotation: Any) -> Any:
    """Return the type that a default of None means, as in `limit: int = None`."""
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        return Annotated[_or_none(inner), *marks]
    return annotation if annotation is Any else Optional[annotation]  # noqa: UP045 - built at run time


def _not_given() -> msgspec.UnsetType:
    return msgspec.UNSET


def _schema_of(
    struct: type[msgspec.Struct],
    parameters: list[inspect.Parameter],
    *,
    name: str,
    documentation: Documentation,
) -> dict[str, object]:
    definitions: dict[str, Any] = {}

    def describe(kind: type) -> dict[str, Any]:
        if issubclass(kind, OneOf):
            schemas, found = msgspec.json.schema_components(
                kind.types, schema_hook=describe, ref_template=_REFERENCE
            )
            _merge(definitions, found, name)
            return {"anyOf": list(schemas)}
        if issubclass(kind, PurePath):
            return {"type": "string"}
        if not isinstance(kind, ModelType):
            raise NotImplementedError
        schema = kind.model_json_schema(ref_template="#/$defs/{model}")
        _merge(definitions, schema.pop("$defs", {}), name)
        return schema

    try:
        (own,), found = msgspec.json.schema_components(
            (struct,), schema_hook=describe, ref_template=_REFERENCE
        )
    except (TypeError, ValueError) as error:
        reason = one_line(str(error).rpartition("\n")[2])
        odd = ", ".join(_without_schema(parameters, describe))
        raise UsageError(
            f"parameter {odd!r} of tool {name!r} has a type that JSON cannot carry: {reason}"
        ) from error
    schema = found.pop(own["$ref"].removeprefix("#/$defs/"))
    _merge(definitions, found, name)
    properties: dict[str, dict[str, object]] = schema["properties"]
    for parameter in parameters:
        properties[parameter.name] = _property(properties[parameter.name], parameter, documentation)
    result: dict[str, object] = {
        "type": "object",
        "properties": properties,
        "required": schema["required"],
        "additionalProperties": False,
    }
    return result | ({"$defs": definitions} if definitions else {})


def _without_schema(
    parameters: list[inspect.Parameter], describe: Callable[[type], dict[str, Any]]
) -> Iterator[str]:
    """Give the names of parameters whose type no schema can be written for."""
    for parameter in parameters:
        try:
            msgspec.json.schema_components((decodable(parameter.annotation),), schema_hook=describe)
        except (TypeError, ValueError):
            yield parameter.name


def _merge(definitions: dict[str, Any], more: Mapping[str, Any], name: str) -> None:
    for key, schema in more.items():
        if definitions.setdefault(key, schema) != schema:
            raise UsageError(f"tool {name!r} takes two types called {key}; rename one of them")


def _property(
    schema: dict[str, object], parameter: inspect.Parameter, documentation: Documentation
) -> dict[str, object]:
    metadata = get_args(parameter.annotation)[1:] if get_origin(parameter.annotation) is Annotated else ()
    full = schema | read_constraints(metadata, kind=schema.get("type"))
    words = documentation.parameters.get(parameter.name)
    if words:
        full.setdefault("description", words)
    if parameter.default is inspect.Parameter.empty:
        return full
    try:
        return full | {"default": to_plain(parameter.default)}
    except (TypeError, ValueError, RecursionError):
        return full  # a default that JSON cannot carry is the function's own business


def _decode_custom(kind: type, value: object) -> object:
    if issubclass(kind, OneOf):
        return kind.decode(value, _decode_custom)
    if issubclass(kind, PurePath):
        return kind(msgspec.convert(value, str))
    assert isinstance(kind, ModelType)  # others were refused when the schema was made
    try:
        return kind.model_validate(value)
    except ValueError as error:
        raise ValueError(_model_problems(error)) from error


def _model_problems(error: ValueError) -> str:
    """Return what a pydantic error says, without the value and the links."""
    if not isinstance(error, _ListsErrors):
        return str(error)
    problems = error.errors(include_url=False, include_input=False)[:3]
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}".lstrip(": ") for each in problems)


@runtime_checkable
class _ListsErrors(Protocol):
    def errors(self, *, include_url: bool, include_input: bool) -> list[dict[str, Any]]: ...


def _violation(error: msgspec.ValidationError) -> Violation:
    text = str(error)
    place = _PLACE.search(text)
    return Violation(place[1], one_line(text[: place.start()])) if place else Violation("$", one_line(text))


def _with_whole_numbers(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_whole_numbers(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return {key: _with_whole_numbers(item) for key, item in fields.items()}
    return value
