"""Schemas of servers, in the form each provider takes."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.llm.json_schema import JsonSchema
from dialoom.mcp.schema_profiles import MAX_WORDS, SchemaProfile, profiled, without_nulls

PROFILES: tuple[SchemaProfile, ...] = ("raw", "anthropic", "inline_refs", "openapi", "openai_strict")
ORDER: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "item": {"$ref": "#/$defs/Item", "description": "what"},
        "more": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
        "kind": {"const": "order"},
        "level": {"oneOf": [{"type": "integer"}, {"type": "null"}], "default": {"$ref": "#/data"}},
        "tag": {"type": ["string", "null"], "pattern": "^a"},
    },
    "required": ["item"],
    "$defs": {"Item": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}},
}
ITEM = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


def test_raw_is_what_the_server_wrote():
    assert profiled(ORDER, "raw") == ORDER
    assert profiled({}, "raw") == {"type": "object"}


def test_references_are_replaced_by_what_they_mean():
    inlined = profiled(ORDER, "inline_refs")
    properties: Any = inlined["properties"]
    assert properties["item"] == {**ITEM, "description": "what"}
    assert properties["more"] == {"type": "array", "items": ITEM}
    assert properties["level"]["default"] == {"$ref": "#/data"}
    assert "$defs" not in inlined


def test_a_schema_inside_itself_ends_in_its_bare_type():
    tree = {
        "properties": {"root": {"$ref": "#/$defs/Node"}, "definitions": {"type": "string"}},
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            }
        },
    }
    assert profiled(tree, "inline_refs") == {
        "properties": {
            "root": {
                "type": "object",
                "properties": {"children": {"type": "array", "items": {"type": "object"}}},
            },
            "definitions": {"type": "string"},
        },
        "type": "object",
    }


def test_references_of_references_and_to_nowhere():
    schema = {
        "properties": {
            "a": {"$ref": "#/$defs/x~1y"},
            "b": {"$ref": "#/$defs/gone"},
            "c": {"$ref": "#anchor"},
            "d": {"$ref": "#/$defs/loop"},
        },
        "$defs": {
            "x/y": {"$ref": "#/$defs/%7Ereal".replace("%7E", "~0")},
            "~real": {"type": "number"},
            "loop": {"$ref": "#/$defs/loop"},
        },
    }
    properties: Any = profiled(schema, "inline_refs")["properties"]
    assert (properties["a"], properties["b"], properties["d"]) == ({"type": "number"}, {}, {})


@pytest.mark.parametrize("profile", PROFILES)
def test_another_document_is_never_looked_at(profile: SchemaProfile):
    schema = {
        "properties": {"a": {"$ref": "https://evil.example/s.json"}, "b": {"$dynamicRef": "file:///etc"}},
        "additionalProperties": False,
    }
    written = str(profiled(schema, profile))
    assert "evil" not in written
    assert "etc" not in written


def test_openapi_says_it_in_its_subset():
    assert profiled(ORDER, "openapi") == {
        "type": "object",
        "properties": {
            "item": {**ITEM, "description": "what"},
            "more": {"type": "array", "items": ITEM},
            "kind": {"enum": ["order"], "type": "string"},
            "level": {"anyOf": [{"type": "integer"}], "nullable": True},
            "tag": {"type": "string", "nullable": True, "pattern": "^a"},
        },
        "required": ["item"],
    }


def test_openapi_has_enums_of_texts_only():
    schema = {"properties": {"n": {"enum": [1, 2]}, "m": {"enum": ["a", 1]}, "nil": {"type": ["null"]}}}
    assert profiled(schema, "openapi")["properties"] == {
        "n": {},
        "m": {"enum": ["a"], "type": "string"},
        "nil": {"type": "string", "nullable": True},
    }


def test_strict_requires_everything_and_lets_what_was_optional_be_null():
    item = {**ITEM, "additionalProperties": False}
    assert profiled(ORDER, "openai_strict") == {
        "type": "object",
        "properties": {
            "item": {**item, "description": "what"},
            "more": {"anyOf": [{"type": "array", "items": item}, {"type": "null"}]},
            "kind": {"anyOf": [{"enum": ["order"]}, {"type": "null"}]},
            "level": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "tag": {"type": ["string", "null"]},
        },
        "required": ["item", "more", "kind", "level", "tag"],
        "additionalProperties": False,
    }


def test_a_free_object_cannot_be_said_strictly():
    with pytest.raises(UsageError, match="its schema takes any property, which the strict form cannot say"):
        profiled({"properties": {"any": {"type": "object"}}}, "openai_strict")
    empty = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert profiled({}, "openai_strict") == empty


def test_nulls_that_stand_for_nothing_are_left_out_again():
    inner = {"type": "object", "properties": {"note": {"type": "string"}}}
    schema = {**ORDER, "properties": {**ORDER["properties"], "inner": inner}}
    arguments = {"item": {"id": None}, "inner": {"note": None}, "more": None, "level": None, "new": None}
    assert without_nulls(arguments, profiled(schema, "inline_refs")) == {
        "item": {"id": None},
        "inner": {},
        "level": None,
        "new": None,
    }


def test_a_choice_at_the_root_becomes_one_object_for_those_who_refuse_one():
    schema = {
        "properties": {"always": {"type": "string"}},
        "required": ["always"],
        "oneOf": [
            {"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a", "b"]},
            {"$ref": "#/$defs/Other"},
        ],
        "allOf": [{"properties": {"c": {}}, "required": ["c"]}, {"title": "T"}],
        "$defs": {"Other": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}},
    }
    assert profiled(schema, "anthropic") == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {}, "c": {}, "always": {"type": "string"}},
        "required": ["always", "c", "a"],
        "title": "T",
    }
    assert profiled(ORDER, "anthropic") == ORDER


def test_words_inside_a_schema_hide_nothing_and_are_bounded():
    schema = {"properties": {"description": {"description": "a\u202eb" + "c" * 2000}}}
    properties: Any = profiled(schema, "raw")["properties"]
    assert properties["description"]["description"] == "ab" + "c" * (MAX_WORDS - 3) + "…"


def _deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


def _bomb() -> dict[str, Any]:
    """Each definition holds the next one twice: 2**30 when written out."""
    names = [f"d{number}" for number in range(30)]
    defs: dict[str, Any] = {
        name: {"anyOf": [{"$ref": f"#/$defs/{after}"}] * 2} for name, after in pairwise(names)
    }
    return {"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**defs, "d29": {"type": "string"}}}


@pytest.mark.parametrize("schema", [_deep(200), _bomb(), {"enum": [1], "anyOf": [{}] * 30_000}])
@pytest.mark.parametrize("profile", ["inline_refs", "openapi", "openai_strict"])
def test_a_schema_out_of_bounds_is_refused(schema: dict[str, Any], profile: SchemaProfile):
    with pytest.raises(UsageError, match="its schema is larger than 20000 parts or deeper than 60 levels"):
        profiled(schema, profile)


def test_what_is_no_object_is_refused():
    with pytest.raises(UsageError, match="its schema is not of an object"):
        profiled({"type": "string"}, "raw")


_LEAF = st.sampled_from([{"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"enum": ["a", "b"]}])


def _objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    named = st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    return named.flatmap(
        lambda properties: st.sets(st.sampled_from(sorted(properties) or ["a"])).map(
            lambda needed: {
                "type": "object",
                "properties": properties,
                "required": sorted(needed & set(properties)),
            }
        )
    )


_SCHEMA = _objects(
    st.recursive(
        _LEAF,
        lambda inner: (
            _objects(inner) | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)})
        ),
        max_leaves=6,
    )
)


@given(_SCHEMA, st.sampled_from(PROFILES))
def test_every_form_is_a_valid_schema(schema: dict[str, Any], profile: SchemaProfile):
    JsonSchema(profiled(schema, profile))


_VALUE = st.recursive(
    st.sampled_from(["a", "b", "c", 1, True, None]),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=8,
)


@given(_SCHEMA, st.dictionaries(st.sampled_from("abcd"), _VALUE, max_size=4))
def test_arguments_a_server_takes_are_found_under_the_inlined_form_too(
    schema: dict[str, Any], arguments: dict[str, Any]
):
    assert JsonSchema(schema).accepts(arguments) == JsonSchema(profiled(schema, "inline_refs")).accepts(
        arguments
    )
