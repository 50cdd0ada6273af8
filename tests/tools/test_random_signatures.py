"""What a random signature's schema allows is decoded; whatever else is sent gets an answer."""

import inspect
import json
from collections.abc import Callable
from dataclasses import make_dataclass
from enum import Enum
from typing import Any, Literal

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialoom.llm.messages import ToolCall
from dialoom.tools import FunctionTool, ToolRegistry, ToolResult, tool

SCALARS = st.sampled_from(
    [int, float, bool, str, None, Literal["a", "b", 3], Enum("Suit", {"A": "x", "B": "y"}), Any]
)
HASHABLE = st.sampled_from([int, str, Literal["a", "b"]])


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda kind: list[kind]),
        HASHABLE.map(lambda kind: set[kind]),
        inner.map(lambda kind: dict[str, kind]),
        inner.map(lambda kind: kind | None if kind not in {None, Any} else kind),
        st.lists(inner, min_size=1, max_size=3).map(lambda kinds: tuple[tuple(kinds)]),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: make_dataclass("Made", zip("abc", kinds, strict=False))
        ),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: msgspec.defstruct("Struct", list(zip("abc", kinds, strict=False)))
        ),
    )


ANNOTATIONS = st.recursive(SCALARS, containers, max_leaves=5)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
ANYTHING = st.recursive(
    JSON_VALUES
    | st.floats()
    | st.binary(max_size=3)
    | st.builds(object)
    | st.text(st.characters(categories=["Cs"]), max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def tools(draw: st.DrawFn) -> "FunctionTool[..., str]":
    """A tool with up to three parameters of random types, some with a default of None."""
    parameters = [
        inspect.Parameter(
            f"p{place}",
            inspect.Parameter.KEYWORD_ONLY,
            annotation=annotation,
            default=draw(st.sampled_from([None, inspect.Parameter.empty])),
        )
        for place, annotation in enumerate(draw(st.lists(ANNOTATIONS, max_size=3)))
    ]

    def subject(**values: object) -> str:
        return ",".join(values)

    subject.__signature__ = inspect.Signature(parameters)
    return tool(subject)


def matching(schema: Any, definitions: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a schema as we write it allows."""
    if "$ref" in schema:
        return matching(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    if "anyOf" in schema:
        return st.one_of([matching(each, definitions) for each in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    build: dict[str, Callable[[], st.SearchStrategy[Any]]] = {
        "integer": lambda: st.integers(-(2**63), 2**63 - 1) | st.integers(-1000, 1000).map(float),
        "number": lambda: st.floats(allow_nan=False, allow_infinity=False) | st.integers(-1000, 1000),
        "boolean": st.booleans,
        "string": lambda: st.text(max_size=5),
        "null": st.none,
        "array": lambda: matching_array(schema, definitions),
        "object": lambda: matching_object(schema, definitions),
    }
    return build[schema["type"]]() if "type" in schema else JSON_VALUES


def matching_array(schema: Any, definitions: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "prefixItems" in schema:
        return st.tuples(*(matching(each, definitions) for each in schema["prefixItems"])).map(list)
    items = matching(schema.get("items", {}), definitions)
    unique = (
        (lambda value: json.dumps(float(value) if not isinstance(value, str) else value))
        if schema.get("uniqueItems")
        else None
    )
    return st.lists(items, max_size=3, unique_by=unique)


def matching_object(schema: Any, definitions: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "properties" not in schema:
        return st.dictionaries(
            st.text(max_size=3), matching(schema.get("additionalProperties", {}), definitions), max_size=3
        )
    properties = {name: matching(each, definitions) for name, each in schema["properties"].items()}
    required = schema.get("required", [])
    return st.fixed_dictionaries(
        {name: properties[name] for name in required},
        optional={name: each for name, each in properties.items() if name not in required},
    )


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(subject=tools(), data=st.data())
async def test_arguments_that_the_schema_allows_reach_the_function(
    subject: "FunctionTool[..., str]", data: st.DataObject
) -> None:
    schema: Any = subject.parameters_schema()
    arguments = data.draw(matching(schema, schema.get("$defs", {})))
    registry = ToolRegistry([subject])
    assert registry.validate("subject", arguments) == ()
    result = await registry.execute(ToolCall(id="c", name="subject", arguments=arguments))
    assert result == ToolResult(content=",".join(name for name in schema["properties"] if name in arguments))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    subject=tools(),
    arguments=st.dictionaries(st.sampled_from(["p0", "p1", "x"]), ANYTHING),
    check=st.booleans(),
)
async def test_any_arguments_get_an_answer(
    subject: "FunctionTool[..., str]", arguments: Any, check: bool
) -> None:
    registry = ToolRegistry([subject])
    registry.set_validate_arguments(check)
    result = await registry.execute(ToolCall(id="c", name="subject", arguments=arguments))
    assert isinstance(result, ToolResult)
    if result.is_error:
        assert msgspec.json.decode(result.content)["error"] == "invalid_arguments"


async def test_half_a_character_is_an_argument_that_does_not_fit() -> None:
    """Found by the test above: msgspec cannot look up a lone surrogate in a Literal."""

    @tool
    def pick(side: Literal["left", "right"]) -> str:
        """Pick a side."""
        return side

    registry = ToolRegistry([pick])
    registry.set_validate_arguments(False)
    result = await registry.execute(ToolCall(id="c", name="pick", arguments={"side": "\ud800"}))
    assert msgspec.json.decode(result.content)["error"] == "invalid_arguments"
