"""A server's schema in the form that a provider takes; hostile as it may be: nothing fetched, all bounded.

`raw` is what the server wrote, fit for providers that read JSON Schema. The others say the same with less:
`inline_refs` without references, `anthropic` without a choice at the root, `openapi` in the subset that
Gemini reads, `openai_strict` closed, with every property required. A call is checked against the server's
own schema in the end, whatever a model was shown.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias, cast
from urllib.parse import unquote

from dialoom.base.errors import UsageError
from dialoom.mcp.json_shapes import list_of, object_of
from dialoom.mcp.results import clean_text

SchemaProfile: TypeAlias = Literal["raw", "anthropic", "inline_refs", "openapi", "openai_strict"]
Schema: TypeAlias = dict[str, object]

MAX_NODES: Final = 20_000
MAX_DEPTH: Final = 60
MAX_WORDS: Final = 1024
"""Characters of one description inside a schema."""

_WORDS: Final = frozenset({"description", "title", "$comment"})
_BY_NAME: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_CHOICES: Final = ("anyOf", "oneOf")
_OPENAPI: Final = frozenset(
    {"type", "format", "title", "description", "nullable", "enum", "items", "properties", "required", "anyOf"}
    | {"minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength", "pattern"}
)
_STRICT: Final = frozenset({"type", "title", "description", "enum", "items", "anyOf"})
_DATA: Final = frozenset({"default", "const", "enum", "examples"})


def profiled(schema: Mapping[str, object], profile: SchemaProfile) -> Schema:
    """Return the schema of an object as `profile` has it.

    A reference to another document says nothing any more: it is not followed, anything passes. Raises
    `UsageError` when the schema is out of bounds, is not of an object, or cannot be said in `profile`.
    """
    if schema.get("type", "object") != "object":
        raise UsageError("its schema is not of an object")
    local = _Copy(_without_remote).of({**schema, "type": "object"})
    match profile:
        case "raw":
            return local
        case "inline_refs":
            return _Inlined(local).of(local)
        case "anthropic":
            chooses = any(key in local for key in (*_CHOICES, "allOf"))
            return _one_object(_Inlined(local).of(local)) if chooses else local
        case "openapi":
            return _Copy(_as_openapi).of(_one_object(_Inlined(local).of(local)))
        case "openai_strict":
            return _Copy(_as_strict).of(_one_object(_Inlined(local).of(local)))


def without_nulls(arguments: Mapping[str, object], schema: Mapping[str, object]) -> dict[str, object]:
    """Return `arguments` without the nulls that stand for "not given" in the strict form.

    `schema` is what a call is checked against, without references.
    """
    properties = object_of(schema.get("properties"))
    needed = list_of(schema.get("required"))
    kept: dict[str, object] = {}
    for name, value in arguments.items():
        inner = object_of(properties.get(name))
        if value is None and name not in needed and not _takes_null(inner):
            continue
        kept[name] = without_nulls(object_of(value), inner) if object_of(value) else value
    return kept


Trail: TypeAlias = tuple[str, ...]
"""The references that led to where a walk is."""


class _Copy:
    """Copies a schema, each sub-schema through `change` on the way up, within the bounds."""

    def __init__(self, change: Callable[[Schema], Schema] = dict) -> None:
        self._change = change
        self._nodes = 0

    def of(self, schema: Schema, *, depth: int = 0, trail: Trail = ()) -> Schema:
        self._count(depth)
        schema, trail = self.opened(schema, trail)
        copied: Schema = {}
        for key, value in schema.items():
            if key in _WORDS and isinstance(value, str):
                copied[key] = clean_text(value, MAX_WORDS)
            elif key in _DATA:
                copied[key] = value
            elif key in _BY_NAME:
                named = object_of(value).items()
                copied[key] = {name: self._inner(each, depth + 1, trail) for name, each in named}
            else:
                copied[key] = self._inner(value, depth + 1, trail)
        return self._change(copied)

    def opened(self, schema: Schema, trail: Trail) -> tuple[Schema, Trail]:
        """Return what stands for `schema` before its parts are looked at."""
        return schema, trail

    def _inner(self, value: object, depth: int, trail: Trail) -> object:
        if isinstance(value, dict):
            return self.of(cast("Schema", value), depth=depth, trail=trail)
        if isinstance(value, list):
            self._count(depth)
            return [self._inner(item, depth + 1, trail) for item in cast("list[object]", value)]
        return value

    def _count(self, depth: int) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            raise UsageError(f"its schema is larger than {MAX_NODES} parts or deeper than {MAX_DEPTH} levels")


class _Inlined(_Copy):
    """Copies a schema with each reference replaced by what it means; one inside itself by its bare type."""

    def __init__(self, root: Schema) -> None:
        super().__init__()
        self._root = root

    def opened(self, schema: Schema, trail: Trail) -> tuple[Schema, Trail]:
        while isinstance(target := schema.get("$ref"), str):
            own = {key: each for key, each in schema.items() if key != "$ref"}
            meant = _pointed(self._root, target)
            if target in trail:
                meant = {"type": meant["type"]} if "type" in meant else {}
            schema, trail = {**meant, **own}, (*trail, target)
        return {key: each for key, each in schema.items() if key not in {"$defs", "definitions"}}, trail


def _without_remote(schema: Schema) -> Schema:
    remote = [key for key in ("$ref", "$dynamicRef") if not str(schema.get(key, "#")).startswith("#")]
    return {key: value for key, value in schema.items() if key not in remote}


def _pointed(root: Schema, target: str) -> Schema:
    """Return what a local reference points to; one that points nowhere says nothing."""
    place: object = root
    for step in target.removeprefix("#").split("/")[1:]:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        place = object_of(place).get(key)
    return object_of(place)


def _one_object(schema: Schema) -> Schema:
    """Return `schema` without a choice at its root: one object that takes what any branch takes."""
    merged = _merged(schema)
    properties, needed = dict(object_of(merged.get("properties"))), _names(merged.get("required"))
    for key in _CHOICES:
        branches = _listed(merged.pop(key, None))
        for branch in branches:
            properties = {**object_of(branch.get("properties")), **properties}
        choices = [set(_names(branch.get("required"))) for branch in branches]
        needed += sorted(set[str].intersection(*choices)) if choices else []
    return {**merged, "properties": properties, "required": list(dict.fromkeys(needed))}


def _merged(schema: Schema) -> Schema:
    """Return `schema` with the parts of its `allOf` put into it."""
    plain = dict(schema)
    for part in _listed(plain.pop("allOf", None)):
        properties = {**object_of(part.get("properties")), **object_of(plain.get("properties"))}
        needed = [*_names(plain.get("required")), *_names(part.get("required"))]
        plain = {**part, **plain}
        if properties:
            plain |= {"properties": properties, "required": list(dict.fromkeys(needed))}
    return plain


def _as_openapi(schema: Schema) -> Schema:
    schema = _simpler(schema)
    kinds = schema.get("type")
    if isinstance(kinds, list):
        names = [kind for kind in cast("list[object]", kinds) if kind != "null"]
        schema["nullable"] = len(names) < len(cast("list[object]", kinds))
        schema["type"] = names[0] if names else "string"
    choices = _listed(schema.get("anyOf"))
    if choices and any(choice.get("type") == "null" for choice in choices):
        real = [choice for choice in choices if choice.get("type") != "null"]
        schema |= {"anyOf": real, "nullable": True}
    enum = schema.get("enum")
    if isinstance(enum, list):
        texts = [value for value in cast("list[object]", enum) if isinstance(value, str)]
        schema |= {"enum": texts, "type": "string"} if texts else {"enum": None}
    return {key: value for key, value in schema.items() if key in _OPENAPI and value is not None}


def _as_strict(schema: Schema) -> Schema:
    schema = _simpler(schema)
    kept: Schema = {key: value for key, value in schema.items() if key in _STRICT}
    if "properties" not in schema and schema.get("type") != "object":
        return kept
    if "properties" not in schema and schema.get("additionalProperties") is not False:
        raise UsageError("its schema takes any property, which the strict form cannot say")
    needed = set(_names(schema.get("required")))
    properties = {
        name: each if name in needed else _or_null(object_of(each))
        for name, each in object_of(schema.get("properties")).items()
    }
    return kept | {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _simpler(schema: Schema) -> Schema:
    """Return `schema` with `oneOf` as `anyOf`, `const` as `enum` and `allOf` put together."""
    plain = _merged(schema)
    if "oneOf" in plain:
        plain["anyOf"] = [*_listed(plain.pop("oneOf")), *_listed(plain.get("anyOf"))]
    if "const" in plain:
        plain["enum"] = [plain.pop("const")]
    return plain


def _or_null(schema: Schema) -> Schema:
    return schema if _takes_null(schema) else {"anyOf": [schema, {"type": "null"}]}


def _takes_null(schema: Mapping[str, object]) -> bool:
    kind = schema.get("type")
    kinds = cast("list[object]", kind) if isinstance(kind, list) else [kind]
    if "null" in kinds or not schema:
        return True
    return any(_takes_null(choice) for key in _CHOICES for choice in _listed(schema.get(key)))


def _listed(value: object) -> list[Schema]:
    return [cast("Schema", each) for each in list_of(value) if isinstance(each, dict)]


def _names(value: object) -> list[str]:
    return [each for each in list_of(value) if isinstance(each, str)]
