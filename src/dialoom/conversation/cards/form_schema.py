"""A form's rules as JSON Schema 2020-12, for the page that asks: what it accepts, `check_answers` accepts.

Two things a schema cannot say stay with `check_answers`: that a date is on the calendar, and a date's bounds,
which are written as `formatMinimum` and `formatMaximum` for validators that know them.
"""

from collections.abc import Sequence

from dialoom.conversation.cards.form_field import COUNTED, FormField

Schema = dict[str, object]

_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


def form_schema(fields: Sequence[FormField]) -> Schema:
    """Return the schema of an object of answers by field id."""
    conditional = [_condition(field) for field in fields if field.visible_if]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {field.id: _answer(field) for field in fields},
        "required": [field.id for field in fields if field.required and not field.visible_if],
        "additionalProperties": False,
        **({"allOf": conditional} if conditional else {}),
    }


def _condition(field: FormField) -> Schema:
    """Say when `field` may be answered, and when it must."""
    wanted = {other: {"enum": list(values)} for other, values in field.conditions.items()}
    return {
        "if": {"properties": wanted, "required": list(wanted)},
        "then": {"required": [field.id] if field.required else []},
        "else": {"properties": {field.id: False}},
    }


def _answer(field: FormField) -> Schema:
    schema = {**_shape(field), **_bounds(field)}
    if field.label:
        schema["title"] = field.label
    if field.help:
        schema["description"] = field.help
    return schema


def _shape(field: FormField) -> Schema:
    match field.type:
        case "text" | "textarea" | "secret":
            secret: Schema = {"writeOnly": True} if field.type == "secret" else {}
            return {"type": "string", **secret, **({"pattern": field.pattern} if field.pattern else {})}
        case "select":
            return {"enum": list(field.choices)}
        case "multiselect":
            return {"type": "array", "items": {"enum": list(field.choices)}, "uniqueItems": True}
        case _:
            return dict(_PLAIN_SHAPES[field.type])


_PLAIN_SHAPES: dict[str, Schema] = {
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "bool": {"type": "boolean"},
    "date": {"type": "string", "format": "date", "pattern": _DATE},
    "file": {"type": "string", "minLength": 1},
}


def _bounds(field: FormField) -> Schema:
    low, high = field.min, field.max
    if field.type in COUNTED:
        names = ("minItems", "maxItems") if field.type == "multiselect" else ("minLength", "maxLength")
        low = 1 if field.required and not low else low  # an empty answer is none
    elif field.type == "date":
        names = ("formatMinimum", "formatMaximum")
    else:
        names = ("minimum", "maximum")
    return {name: bound for name, bound in zip(names, (low, high), strict=True) if bound is not None}
