"""A schema for the answer, or any JSON, as OpenAI's wires ask for it."""

import re
from collections.abc import Mapping

from dialoom.llm.json_values import fields_of, items_of, text_of
from dialoom.llm.options import ChatOptions

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


def response_format(options: ChatOptions) -> dict[str, object] | None:
    """Return the `response_format` of chat completions; None leaves the form of the answer open."""
    if options.response_schema:
        return {"type": "json_schema", "json_schema": _named(options.response_schema)}
    return _any_json(options)


def text_format(options: ChatOptions) -> dict[str, object] | None:
    """Return the `text` of responses, which says the same in other places."""
    if options.response_schema:
        return {"format": {"type": "json_schema", **_named(options.response_schema)}}
    asked = _any_json(options)
    return {"format": asked} if asked else None


def _any_json(options: ChatOptions) -> dict[str, object] | None:
    return {"type": "json_object"} if options.json_mode else None


def _named(schema: Mapping[str, object]) -> dict[str, object]:
    """Return the schema with the name both wires want; `strict` where OpenAI accepts that.

    Strict means that the server enforces the schema, and OpenAI refuses it for one that leaves anything
    open. Servers that enforce every schema do not look at the word.
    """
    name = _NOT_IN_NAMES.sub("_", text_of(schema.get("title")))[:64].strip("_") or "answer"
    fields: dict[str, object] = {"name": name, "schema": schema}
    return {**fields, "strict": True} if _is_closed(dict(schema)) else fields


def _is_closed(value: object) -> bool:
    """Whether every object in a schema requires all its properties and allows no others."""
    node = fields_of(value)
    if node.get("type") == "object" or "properties" in node:
        named = fields_of(node.get("properties"))
        if node.get("additionalProperties") is not False or set(named) != set(_names(node)):
            return False
    return all(map(_is_closed, (*node.values(), *items_of(value))))


def _names(node: dict[str, object]) -> list[str]:
    return [name for name in items_of(node.get("required")) if isinstance(name, str)]
