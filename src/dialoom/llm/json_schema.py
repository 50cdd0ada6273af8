"""Does a value match a JSON Schema? Schemas and values may be hostile: nothing is fetched, all is bounded."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from json import JSONDecoder, dumps
from math import isfinite
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, TypeAlias, cast

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.llm.schema_cost import Root, SchemaCost

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

Schema: TypeAlias = Mapping[str, object] | bool

MAX_VIOLATIONS: Final = 20
MAX_DEPTH: Final = 100
MAX_VALUE_NODES: Final = 100_000
MAX_VALUE_TEXT: Final = 10_000_000
MAX_SCHEMA_NODES: Final = 20_000
MAX_PATTERNS: Final = 500
MAX_REGEX_BYTES: Final = 500_000
MAX_WORK: Final = 100_000_000
"""Looks at single places that one check may cost; two seconds at the worst."""
MAX_WORK_TO_LIST: Final = 20_000
"""Up to here every violation is listed; one costs the engine hundreds of times what a match does."""
MAX_WORK_TO_LOCATE: Final = 200_000
"""Up to here at least the first violation is."""


class Violation(msgspec.Struct, frozen=True):
    """Where a value breaks its schema, such as `$.lines[0].qty`, and how; without the value itself."""

    path: str
    message: str


class JsonSchema:
    """A compiled schema: 2020-12, or the draft that its `$schema` names.

    A `$ref` reaches inside the schema and into `documents` (address to schema); any other is refused. A
    `pattern` is matched in linear time, so lookaround and back references are refused. Raises `UsageError`
    that names the place when the schema is invalid or out of bounds.
    """

    def __init__(self, schema: Schema, *, documents: Mapping[str, Schema] | None = None) -> None:
        root: Root = schema if isinstance(schema, bool) else dict(schema)
        outside: dict[str, Root] = {
            uri: document if isinstance(document, bool) else dict(document)
            for uri, document in (documents or {}).items()
        }
        for each in (root, *outside.values()):
            _check_size(each)
        self._cost = SchemaCost(root, outside)
        if self._cost.patterns > MAX_PATTERNS:
            raise UsageError(f"the schema cannot be used: it has more than {MAX_PATTERNS} patterns")
        self._validator = _compile(root, outside)

    def check(self, value: object) -> tuple[Violation, ...]:
        """Return what is wrong with `value`, at most `MAX_VIOLATIONS`; empty when it matches.

        A value that is no JSON or out of bounds is a violation too, never an error. One too large for
        its schema to be searched is reported at `$`.
        """
        work = self._weigh(value)
        if isinstance(work, Violation):
            return (work,)
        if self._validator.is_valid(value):
            return ()
        if work > MAX_WORK_TO_LOCATE:
            return (Violation("$", "does not match the schema and is too large to say where"),)
        errors = self._validator.iter_errors(value) if work <= MAX_WORK_TO_LIST else self._first(value)
        found = (Violation(_path(error.instance_path), _message(error)) for error in errors)
        return tuple(islice(dict.fromkeys(found), MAX_VIOLATIONS))

    def accepts(self, value: object) -> bool:
        """Tell whether `value` matches."""
        return not isinstance(self._weigh(value), Violation) and self._validator.is_valid(value)

    def _weigh(self, value: object) -> int | Violation:
        size = _measure(value, max_nodes=MAX_VALUE_NODES)
        if isinstance(size, Violation):
            return size
        work = size.nodes * self._cost.looks(size.depth)
        if work > MAX_WORK:
            return Violation("$", "is too deep and too large for a schema with so many branches")
        return work

    def _first(self, value: object) -> "Iterator[ValidationError]":
        from jsonschema_rs import ValidationError

        try:
            self._validator.validate(value)
        except ValidationError as error:
            yield error


def extract_json(text: str) -> object | None:
    """Return the JSON value in a model's answer, or None without one (JSON `null` is None as well).

    Looked for in this order: the whole text, a fenced block, and then the longest object or array between
    the prose. At most a million characters and a hundred places are looked at.
    """
    text = text[:1_000_000]
    for candidate in (text, *(match[1] for match in islice(_FENCED.finditer(text), 20))):
        value = _decode_whole(candidate)
        if value is not None:
            return value
    return _longest_within(text)


_FENCED = re.compile(r"```[\w-]*\s(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[{\[]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}")
_TYPES: Mapping[type, str] = {
    bool: "boolean",
    dict: "object",
    float: "number",
    int: "integer",
    list: "array",
    str: "string",
    tuple: "array",
    type(None): "null",
}


_FLAT: Final = frozenset((bool, int))


class _Size(NamedTuple):
    nodes: int
    depth: int


class _Place(NamedTuple):
    """Something still to be measured, and the way to it."""

    value: object
    key: str | int = ""
    above: "_Place | None" = None
    depth: int = 1

    def path(self) -> str:
        keys: list[str | int] = []
        place = self
        while place.above is not None:
            keys.append(place.key)
            place = place.above
        return _path(keys[::-1])


def _measure(value: object, *, max_nodes: int) -> _Size | Violation:
    """Return the size of `value`, or why it is no JSON value or goes past a bound. Ends on cycles as well."""
    waiting = [_Place(value)]
    nodes = depth = text = 0
    while waiting:
        place = waiting.pop()
        nodes += 1
        problem = _problem_of(place.value)
        inside = _inside(place.value)
        depth = max(depth, place.depth + bool(inside))
        if isinstance(place.value, str):
            text += len(place.value)
        if problem:
            return Violation(place.path(), problem)
        if depth > MAX_DEPTH:
            return Violation(place.path(), f"is nested more than {MAX_DEPTH} levels deep")
        if nodes + len(waiting) + len(inside) > max_nodes or text > MAX_VALUE_TEXT:
            return Violation("$", f"is larger than {max_nodes} values or {MAX_VALUE_TEXT} characters")
        for key, item in inside:
            if item is None or type(item) in _FLAT:
                nodes += 1
            else:
                waiting.append(_Place(item, key, place, place.depth + 1))
    return _Size(nodes, depth)


def _inside(value: object) -> list[tuple[str | int, object]]:
    if isinstance(value, dict):
        return list(cast("dict[str | int, object]", value).items())
    if isinstance(value, list | tuple):
        return list(enumerate(cast("list[object]", value)))
    return []


def _problem_of(value: object) -> str:
    """Return why `value` by itself is no JSON, or an empty text."""
    if type(value) not in _TYPES:
        return f"is a Python {one_line(type(value).__name__, 40)}, not a JSON value"
    if isinstance(value, dict):
        keys = cast("dict[object, object]", value)
        return next((problem for problem in map(_key_problem, keys) if problem), "")
    if isinstance(value, float) and not isfinite(value):
        return "is not a finite number"
    if isinstance(value, str) and not _is_text(value):
        return "holds half a character (a lone surrogate)"
    return ""


def _key_problem(key: object) -> str:
    if type(key) is not str:
        return f"has a key that is a Python {one_line(type(key).__name__, 40)}, not a string"
    return "" if _is_text(key) else "has a key with half a character (a lone surrogate)"


def _is_text(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_size(schema: Root) -> None:
    size = _measure(schema, max_nodes=MAX_SCHEMA_NODES)
    if isinstance(size, Violation):
        raise UsageError(f"the schema cannot be used: {size.path} {size.message}")


def _compile(root: Root, documents: dict[str, Root]) -> "Validator":
    import jsonschema_rs  # 15 MB, and a program without tools does not need it

    refused: list[str] = []

    def refuse(uri: str, /) -> NoReturn:
        refused.append(uri)
        raise LookupError(uri)

    try:
        registry = jsonschema_rs.Registry(list(documents.items()), retriever=refuse) if documents else None
        return jsonschema_rs.validator_for(
            root,
            validate_formats=True,
            retriever=refuse,
            registry=registry,
            mask="the value",
            pattern_options=jsonschema_rs.RegexOptions(size_limit=MAX_REGEX_BYTES),
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        if refused:
            raise UsageError(
                f"the schema refers to {one_line(refused[0])}, which is not at hand; nothing is fetched, "
                "so pass it in `documents`"
            ) from error
        if isinstance(error, jsonschema_rs.ValidationError):
            raise UsageError(
                f"the schema is invalid at {_path(error.instance_path)}: {_message(error)}"
            ) from error
        raise UsageError(f"the schema is invalid: {one_line(str(error))}") from error


def _path(keys: list[str | int]) -> str:
    return one_line("$" + "".join(map(_step, keys)), 300)


def _step(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if _PLAIN_KEY.fullmatch(key) else f"[{dumps(one_line(key, 40), ensure_ascii=False)}]"


def _message(error: "ValidationError") -> str:
    return one_line(_wording(error, branches=3), 300)


def _wording(error: "ValidationError", *, branches: int) -> str:
    """Say what is wrong; of alternatives, what is wrong with the first `branches` of them."""
    from jsonschema_rs import ValidationErrorKind as Kind

    match error.kind:
        case Kind.Type(types=types):
            return f"expected {' or '.join(sorted(types))}, got {_TYPES.get(type(error.instance), 'no JSON')}"
        case Kind.AnyOf(context=context) | Kind.OneOfNotValid(context=context) if branches:
            reasons = [_reason(errors[0], error) for errors in context if errors]
            return f"matches none of the allowed forms: {'; '.join(dict.fromkeys(reasons[:branches]))}"
        case _:
            return error.message


def _reason(inner: "ValidationError", outer: "ValidationError") -> str:
    below = inner.instance_path[len(outer.instance_path) :]
    where = "".join(map(_step, below)).removeprefix(".")
    words = _wording(inner, branches=0)
    return f"{where}: {words}" if where else words


def _decode_whole(text: str) -> object | None:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _longest_within(text: str) -> object | None:
    decoder = JSONDecoder(parse_constant=_refuse_constant)
    best: object | None = None
    longest = end = 0
    for _ in range(100):
        opening = _OPENING.search(text, end)
        if opening is None:
            break
        start, end = opening.start(), opening.end()
        try:
            value, stop = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if stop - start > longest:
            best, longest = value, stop - start
        end = stop
    return best


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
