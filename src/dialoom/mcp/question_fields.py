"""The form of a server's question, field by field, as a form card has them: JSON values, and no card here."""

from collections.abc import Mapping
from typing import Final

from dialoom.mcp.json_shapes import list_of, object_of
from dialoom.mcp.results import clean_text

MAX_FIELDS: Final = 100
MAX_OPTIONS: Final = 500
MAX_LABEL: Final = 300
DONE: Final = "done"
"""The one field of a question that is a page to visit."""

Field = dict[str, object]


def fields_of_schema(schema: Mapping[str, object]) -> list[Field]:
    """Return a field for each property that the protocol allows in a form; others are left out."""
    required = list_of(schema.get("required"))
    properties = list(object_of(schema.get("properties")).items())[:MAX_FIELDS]
    found: list[Field] = []
    for name, each in properties:
        field = _kind(object_of(each))
        if field and 0 < len(name) <= 100:
            found.append({"id": name, **_words(name, object_of(each)), **field, "required": name in required})
    return found


def fields_of_page(url: str) -> list[Field]:
    """Return the field that asks whether a page was visited."""
    return [{"id": DONE, "label": clean_text(f"Open {url}, then come back", MAX_LABEL), "type": "bool"}]


def _words(name: str, schema: Mapping[str, object]) -> Field:
    title, description = schema.get("title"), schema.get("description")
    words: Field = {"label": clean_text(title if isinstance(title, str) else name, MAX_LABEL)}
    if isinstance(description, str):
        words["help"] = clean_text(description, MAX_LABEL)
    default = schema.get("default")
    choices = list_of(default)
    if isinstance(default, str | int | float) or (choices and all(isinstance(each, str) for each in choices)):
        words["default"] = default
    return words


def _kind(schema: Mapping[str, object]) -> Field:
    match schema.get("type"):
        case "boolean":
            return {"type": "bool"}
        case "integer" | "number" as kind:
            return {"type": kind, **_bounds(schema, "minimum", "maximum")}
        case "array":
            options = _options(object_of(schema.get("items")))
            return {"type": "multiselect", "options": options} if options else {}
        case "string":
            return _text(schema)
        case _:
            return {}


def _text(schema: Mapping[str, object]) -> Field:
    options = _options(schema)
    if options:
        return {"type": "select", "options": options}
    if schema.get("format") == "date":
        return {"type": "date"}
    return {"type": "text", **_bounds(schema, "minLength", "maxLength")}


def _bounds(schema: Mapping[str, object], least: str, most: str) -> Field:
    """Return the bounds that a field can have: of a number, or of the characters of a text."""
    named = {"min": schema.get(least), "max": schema.get(most)}
    numbers = {name: bound for name, bound in named.items() if type(bound) in {int, float}}
    if least == "minimum":
        return dict(numbers)
    return {name: bound for name, bound in numbers.items() if isinstance(bound, int) and bound >= 0}


def _options(schema: Mapping[str, object]) -> list[Field]:
    values, labels = list_of(schema.get("enum")), list_of(schema.get("enumNames"))
    if values:
        pairs = zip(values, labels if len(labels) == len(values) else values, strict=True)
    else:
        choices = [object_of(each) for key in ("oneOf", "anyOf") for each in list_of(schema.get(key))]
        pairs = ((each.get("const"), each.get("title", each.get("const"))) for each in choices)
    return [
        {"value": value, "label": clean_text(str(label), MAX_LABEL)}
        for value, label in list(pairs)[:MAX_OPTIONS]
        if isinstance(value, str)
    ]
