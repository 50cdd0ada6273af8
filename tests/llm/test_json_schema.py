"""JSON Schema: what is wrong, where, and that no schema and no value can hang, crash or fetch anything."""

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.llm.json_schema import MAX_DEPTH, MAX_VIOLATIONS, JsonSchema, Violation, extract_json

ORDER = {
    "type": "object",
    "properties": {
        "user": {"type": "object", "properties": {"age": {"type": "integer"}}},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"qty": {"type": "integer"}}}},
    },
    "required": ["user"],
}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def messages(schema: dict[str, Any], value: object) -> list[str]:
    return [f"{each.path}: {each.message}" for each in JsonSchema(schema).check(value)]


def refusal(schema: Any, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        JsonSchema(schema, **options)
    return str(caught.value)


@pytest.mark.promise("llm-042")
def test_a_violation_names_the_path_and_what_was_expected() -> None:
    assert JsonSchema(ORDER).check({"user": {"age": "old"}, "lines": [{"qty": 1.5}]}) == (
        Violation("$.user.age", "expected integer, got string"),
        Violation("$.lines[0].qty", "expected integer, got number"),
    )


@pytest.mark.promise("llm-043")
def test_accepts_tells_whether_a_value_passes() -> None:
    schema = JsonSchema(ORDER)
    assert schema.accepts({"user": {"age": 3}})
    assert not schema.accepts({"user": {"age": "three"}})
    assert not schema.accepts({"user": float("nan")})


@pytest.mark.promise("llm-044")
def test_a_local_ref_is_followed_also_in_a_circle() -> None:
    tree = {"type": "object", "properties": {"name": {"type": "string"}, "kids": {"items": {"$ref": "#"}}}}
    assert messages(tree, {"kids": [{"kids": [{"name": 1}]}]}) == [
        "$.kids[0].kids[0].name: expected string, got integer"
    ]
    assert JsonSchema({"$ref": "#"}).accepts(1)
    named = {"$defs": {"id": {"$anchor": "id", "minimum": 1}}, "properties": {"a": {"$ref": "#id"}}}
    assert messages(named, {"a": 0}) == ["$.a: the value is less than the minimum of 1"]


@pytest.mark.promise("llm-045")
def test_a_ref_reaches_the_documents_that_were_given() -> None:
    documents = {"https://example.org/money.json": {"$defs": {"sum": {"type": "number", "minimum": 0}}}}
    schema = JsonSchema({"$ref": "https://example.org/money.json#/$defs/sum"}, documents=documents)
    assert schema.check(-1) == (Violation("$", "the value is less than the minimum of 0"),)
    relative = JsonSchema({"items": {"$ref": "any.json"}}, documents={"any.json": True})
    assert relative.accepts([1])


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9/schema", "file:///etc/passwd", "https://example.org/a.json#/$defs/b"]
)
def test_nothing_is_ever_fetched(address: str) -> None:
    problem = f"the schema refers to {address.partition('#')[0]}, which is not at hand; nothing is fetched"
    assert refusal({"properties": {"a": {"$ref": address}}}).startswith(problem)
    documents = {"https://example.org/other.json": {"$ref": address}}
    assert "nothing is fetched" in refusal({"$ref": "https://example.org/other.json"}, documents=documents)


@pytest.mark.promise("llm-046")
def test_pattern_is_checked() -> None:
    assert messages({"pattern": "^[A-Z]{2}[0-9]+$"}, "A1") == [
        '$: the value does not match "^[A-Z]{2}[0-9]+$"'
    ]
    assert JsonSchema({"pattern": r"^\p{L}+$"}).accepts("Größe")


@pytest.mark.promise("llm-047")
def test_pattern_properties_are_checked() -> None:
    schema = {"patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": False}
    assert messages(schema, {"n_a": 1, "n_b": "x", "c": 2}) == [
        "$.n_b: expected integer, got string",
        "$: Additional properties are not allowed ('c' was unexpected)",
    ]


@pytest.mark.promise("llm-048")
def test_if_then_else_are_checked() -> None:
    schema = {
        "if": {"properties": {"kind": {"const": "card"}}},
        "then": {"required": ["number"]},
        "else": {"required": ["iban"]},
    }
    assert messages(schema, {"kind": "card"}) == ['$: "number" is a required property']
    assert messages(schema, {"kind": "bank"}) == ['$: "iban" is a required property']


@pytest.mark.promise("llm-049")
def test_dependency_keywords_are_checked() -> None:
    assert messages({"dependentRequired": {"a": ["b"]}}, {"a": 1}) == ['$: "b" is a required property']
    schemas = {"dependentSchemas": {"a": {"properties": {"b": {"type": "string"}}}}}
    assert messages(schemas, {"a": 1, "b": 2}) == ["$.b: expected string, got integer"]
    draft7 = {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": ["b"]}}
    assert messages(draft7, {"a": 1}) == ['$: "b" is a required property']


@pytest.mark.promise("llm-050")
@pytest.mark.parametrize("name", ["date", "date-time", "email", "uri", "uuid", "ipv4"])
def test_format_is_checked(name: str) -> None:
    assert messages({"format": name}, "no such thing") == [f'$: the value is not a "{name}"']


@pytest.mark.promise("llm-051")
def test_exclusive_bounds_are_checked_as_each_draft_writes_them() -> None:
    newest = JsonSchema({"exclusiveMinimum": 0, "exclusiveMaximum": 10})
    assert [newest.accepts(each) for each in (0, 0.5, 9, 10)] == [False, True, True, False]
    draft4 = JsonSchema(
        {"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 10, "exclusiveMaximum": True}
    )
    assert [draft4.accepts(each) for each in (9, 10)] == [True, False]


def test_alternatives_say_what_is_wrong_with_each() -> None:
    schema = {"anyOf": [{"type": "integer"}, {"properties": {"x": {"type": "string"}}}, {"type": "null"}]}
    reasons = "expected integer, got object; x: expected string, got integer; expected null, got object"
    assert messages(schema, {"x": 1}) == [f"$: matches none of the allowed forms: {reasons}"]


def test_keys_that_are_no_names_are_quoted_in_the_path() -> None:
    schema = {"additionalProperties": {"additionalProperties": {"type": "null"}}}
    assert messages(schema, {"a b": {'"\n': 1}}) == [r'$["a b"]["\""]: expected null, got integer']


def test_a_secret_value_is_not_repeated() -> None:
    secret = "sk-live-4242"
    schema = {"properties": {"key": {"anyOf": [{"maxLength": 3}, {"const": "x"}]}, "other": {"enum": [1]}}}
    assert secret not in str(JsonSchema(schema).check({"key": secret, "other": [secret]}))


def test_violations_are_counted_up_to_a_bound_and_never_twice() -> None:
    assert len(JsonSchema({"items": {"type": "string"}}).check([1] * 1000)) == MAX_VIOLATIONS
    assert messages({"allOf": [{"type": "string"}, {"type": "string"}]}, 1) == [
        "$: expected string, got integer"
    ]


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (
            {"properties": {"a": {"type": 3}}},
            "the schema is invalid at $.properties.a.type: matches none of the allowed forms: ",
        ),
        ({"properties": {"q": {"pattern": "(["}}}, "the schema is invalid at $.properties.q.pattern: "),
        ({"pattern": "(?=a)b"}, "the schema is invalid at $.pattern: "),
        ({"pattern": "^(.{1,300}){1,30}$"}, "the schema is invalid at $.pattern: "),
        ({"$ref": "#/$defs/none"}, "the schema is invalid at $: Pointer '/$defs/none' does not exist"),
        (
            {"$schema": "http://example.org/own"},
            "the schema refers to http://example.org/own, which is not at hand",
        ),
        ({"enum": [object()]}, "the schema cannot be used: $.enum[0] is a Python object, not a JSON value"),
        ({1: True}, "the schema cannot be used: $ has a key that is a Python int, not a string"),
        ({"const": "\ud800"}, "the schema cannot be used: $.const holds half a character (a lone surrogate)"),
        ({"\ud800": 1}, "the schema cannot be used: $ has a key with half a character (a lone surrogate)"),
        ({"maximum": float("inf")}, "the schema cannot be used: $.maximum is not a finite number"),
        ({"enum": list(range(20_000))}, "the schema cannot be used: $ is larger than 20000 values"),
        ({"anyOf": [{"pattern": "a"}] * 501}, "the schema cannot be used: it has more than 500 patterns"),
    ],
)
def test_an_invalid_schema_is_refused_with_its_place(schema: Any, problem: str) -> None:
    assert refusal(schema).startswith(problem)


def test_a_document_that_is_no_valid_schema_is_refused() -> None:
    assert refusal({"$ref": "https://example.org/a"}, documents={"https://example.org/a": {"type": "bogus"}})
    assert refusal(True, documents={"::no address": True}).startswith("the schema is invalid: Invalid URI")


def test_an_address_that_is_none_is_refused() -> None:
    for keyword in ("$id", "$ref"):
        problem = "the schema is invalid at $: Invalid URI reference 'http://[::no'"
        assert refusal({keyword: "http://[::no"}).startswith(problem)
    nested = {"$id": "https://example.org/a", "$defs": {"b": {"$id": "http://[::no"}}}
    assert "Invalid URI reference 'http://[::no'" in refusal(nested)


def test_a_pointer_may_lead_through_lists_and_escaped_names() -> None:
    schema = JsonSchema(
        {"allOf": [{"type": "object"}], "$defs": {"a/b": {"examples": [1, {"type": "string"}]}}}
        | {"properties": {"list": {"$ref": "#/allOf/0"}, "name": {"$ref": "#/$defs/a~1b/examples/1"}}}
    )
    assert schema.accepts({"list": {}, "name": "x"})
    assert not schema.accepts({"list": {}, "name": 1})


def test_a_value_that_is_no_json_is_a_violation() -> None:
    schema = JsonSchema(True)
    circle: list[object] = []
    circle.append(circle)
    assert schema.check({"a": [b"x"]}) == (Violation("$.a[0]", "is a Python bytes, not a JSON value"),)
    assert schema.check({"a": float("inf")}) == (Violation("$.a", "is not a finite number"),)
    assert schema.check({"a": {2: 3}}) == (Violation("$.a", "has a key that is a Python int, not a string"),)
    assert schema.check("\udc00") == (Violation("$", "holds half a character (a lone surrogate)"),)
    (violation,) = schema.check(circle)
    assert violation.message == f"is nested more than {MAX_DEPTH} levels deep"
    assert schema.check((1, (2, 3))) == ()


def test_a_value_past_a_bound_is_a_violation() -> None:
    schema = JsonSchema({"items": {"$ref": "#"}})
    deep: list[object] = []
    for _ in range(200_000):
        deep = [deep]
    assert schema.check(deep)[0].message == f"is nested more than {MAX_DEPTH} levels deep"
    assert schema.check([0] * 100_001)[0].message.startswith("is larger than 100000 values")
    assert schema.check(["a" * 10_000_001])[0].message.startswith("is larger than 100000 values")


def test_the_one_wrong_item_of_a_long_list_is_found() -> None:
    assert JsonSchema({"items": {"type": "string"}}).check(["a"] * 90_000 + [1]) == (
        Violation("$[90000]", "expected string, got integer"),
    )


def doubling(levels: int) -> dict[str, Any]:
    """A schema that looks at one place 2 ** levels times."""
    names = [f"#/$defs/n{level}" for level in range(levels + 1)]
    links = {f"n{level}": {"allOf": [{"$ref": names[level + 1]}] * 2} for level in range(levels)}
    return {"$defs": links | {f"n{levels}": {"type": "string"}}, "$ref": names[0]}


FORMULA: dict[str, Any] = {
    "anyOf": [
        {"type": "object", "properties": {"op": {"const": op}, "l": {"$ref": "#"}, "r": {"$ref": "#"}}}
        | {"required": ["op", "l", "r"]}
        for op in "+-*/"
    ]
    + [{"type": "number"}]
}


def formula(depth: int, leaf: object) -> object:
    return leaf if depth == 0 else {"op": "/", "l": formula(depth - 1, leaf), "r": formula(depth - 1, leaf)}


@pytest.mark.timeout(20)
def test_a_schema_that_doubles_its_work_is_not_let_loose() -> None:
    refused = Violation("$", "is too deep and too large for a schema with so many branches")
    assert JsonSchema(doubling(60)).check("x") == (refused,)
    assert not JsonSchema(doubling(60)).accepts("x")
    assert JsonSchema(doubling(10)).check("x") == ()
    assert JsonSchema(FORMULA).check(formula(12, 1)) == (refused,)


@pytest.mark.timeout(20)
def test_a_branching_value_is_checked_though_its_error_may_not_be_located() -> None:
    schema = JsonSchema(FORMULA)
    assert schema.check(formula(5, 1)) == ()
    assert schema.check(formula(2, "x"))[0].message.startswith("matches none of the allowed forms: ")
    assert schema.check(formula(6, "x")) == (
        Violation("$", "does not match the schema and is too large to say where"),
    )


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "schema",
    [
        {
            "$dynamicAnchor": "n",
            "allOf": [{"items": {"$dynamicRef": "#n"}}, {"items": {"$dynamicRef": "#n"}}],
        },
        {
            "$id": "https://example.org/a",
            "anyOf": [{"items": {"$ref": "a"}}, {"items": {"$ref": "#"}}, False],
        },
        {"$anchor": "n", "allOf": [{"additionalItems": True, "contains": {"$ref": "#n"}}] * 2},
        {"oneOf": [{"prefixItems": [{"$ref": "#"}]}, {"items": {"$ref": "#/oneOf/0/prefixItems/0"}}, False]},
        {"unevaluatedItems": {"unevaluatedItems": {"$ref": "#"}}},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "allOf": [{"items": [{"$ref": "#"}]}, {"items": [{"$ref": "#"}]}],
        },
    ],
)
def test_every_way_of_going_round_is_bounded(schema: dict[str, Any]) -> None:
    value: list[object] = []
    for _ in range(MAX_DEPTH - 2):
        value = [value]
    (violation,) = JsonSchema(schema).check(value)
    assert violation.path == "$"


def test_a_chain_of_references_longer_than_any_sensible_one_is_refused() -> None:
    links = {f"n{level}": {"$ref": f"#/$defs/n{level + 1}"} for level in range(2000)}
    schema = JsonSchema({"$defs": links | {"n2000": True}, "items": {"$ref": "#/$defs/n0"}})
    assert schema.check(1) == ()
    assert schema.check([1])[0].message == "is too deep and too large for a schema with so many branches"


def test_meta_schemas_are_at_hand() -> None:
    schema = JsonSchema({"$ref": "https://json-schema.org/draft/2020-12/schema"})
    assert schema.accepts({"type": "string"})
    assert not schema.accepts({"type": "bogus"})


@given(schema=st.booleans() | st.dictionaries(st.sampled_from(sorted(ORDER)), JSON_VALUES), value=JSON_VALUES)
def test_any_schema_is_compiled_or_refused_and_any_value_checked(schema: Any, value: object) -> None:
    try:
        compiled = JsonSchema(schema)
    except UsageError:
        return
    assert compiled.accepts(value) == (compiled.check(value) == ())


@given(JSON_VALUES)
def test_a_value_accepts_itself_as_a_constant(value: object) -> None:
    assert JsonSchema({"const": value}).check(value) == ()


@pytest.mark.promise("llm-052")
def test_json_is_found_inside_a_fence() -> None:
    assert extract_json('Here it is:\n```json\n{"a": [1, 2]}\n```\nAnything else?') == {"a": [1, 2]}
    assert extract_json("```\n[1]\n```") == [1]
    assert extract_json('```json\n{"a": 1}') == {"a": 1}


@pytest.mark.promise("llm-053")
def test_json_is_found_between_prose() -> None:
    assert extract_json('As shown in [1], the answer is {"a": {"b": "}"}, "c": 2}. Good luck!') == {
        "a": {"b": "}"},
        "c": 2,
    }


@pytest.mark.parametrize(
    "text", ["", "no JSON here", '{"a": ', '{"a": NaN}', "[" * 100_000, "see [x] and {y}"]
)
def test_text_without_json_gives_none(text: str) -> None:
    assert extract_json(text) is None


def test_a_fence_inside_a_string_does_not_end_the_json() -> None:
    value = {"answer": "use ```python\nprint()\n``` here"}
    assert extract_json(f"Sure: {json.dumps(value)}") == value


@given(
    JSON_VALUES.filter(lambda value: isinstance(value, dict | list)), st.text("abc .:\n"), st.text("abc .:\n")
)
def test_any_object_or_array_is_found_between_words(value: object, before: str, after: str) -> None:
    assert extract_json(before + json.dumps(value) + after) == value


def test_the_engine_is_loaded_by_the_first_schema_only() -> None:
    script = (
        "import sys, dialoom.llm.json_schema as module\n"
        "print('jsonschema_rs' in sys.modules, module.JsonSchema(True).accepts(1))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["False", "True"]
