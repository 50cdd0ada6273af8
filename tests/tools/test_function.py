"""`@tool`: a function's signature and docstring become what a model sees, its arguments what it asks for."""

import functools
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from dialoom.base.errors import UsageError
from dialoom.llm.json_schema import JsonSchema
from dialoom.tools import ToolContext, ToolOptions, ToolRegistry, ToolRun, tool
from dialoom.tools.tool import Tool
from tests.tools.calls import call, facts
from tests.tools.shapes import Address, Circle, Color, Line, Point, Size, Square


def schema_of(function: Callable[..., object]) -> dict[str, Any]:
    schema = dict(tool(function).parameters_schema())
    JsonSchema(schema)
    return schema


def property_of(annotation: object) -> object:
    """The schema of one parameter of that type."""

    def probe(value: Any) -> None: ...

    probe.__annotations__["value"] = annotation
    return schema_of(probe)["properties"]["value"]


@pytest.mark.promise("agent-001")
def test_a_function_becomes_a_tool_with_a_schema_of_its_parameters() -> None:
    @tool
    def stock(sku: str, depot: Literal["north", "south"] = "north", *, days: int = 1) -> int:
        """Units on hand."""
        return len(sku) + days

    (spec,) = ToolRegistry([stock]).specs()
    assert (spec.name, spec.description) == ("stock", "Units on hand.")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "sku": {"type": "string"},
            "depot": {"enum": ["north", "south"], "default": "north"},
            "days": {"type": "integer", "default": 1},
        },
        "required": ["sku"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (object, {}),
        (dict[str, object], {"type": "object"}),
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Literal["a", 1], {"enum": [1, "a"]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (Path, {"type": "string"}),
        (PurePosixPath | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (Color, {"$ref": "#/$defs/Color"}),
        (list[Point], {"type": "array", "items": {"$ref": "#/$defs/Point"}}),
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
        (
            Annotated[int, msgspec.Meta(ge=1, description="n")],
            {"type": "integer", "minimum": 1, "description": "n"},
        ),
        (
            Annotated[str, pydantic.Field(min_length=2, pattern="^a", description="n")],
            {"type": "string", "minLength": 2, "pattern": "^a", "description": "n"},
        ),
        (
            Annotated[list[int], pydantic.Field(max_length=3)],
            {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
        ),
    ],
)
def test_each_type_has_its_schema(annotation: object, schema: object) -> None:
    assert property_of(annotation) == schema


async def test_a_path_comes_as_one() -> None:
    @tool
    def count(path: Path, also: list[PurePosixPath] | None = None) -> list[str]:
        return [type(each).__name__ for each in (path, *(also or ()))]

    registry = ToolRegistry([count])
    result = await registry.execute(call("count", path="notes/a.txt", also=["b"]))
    assert result.structured == [type(Path()).__name__, "PurePosixPath"]
    refused = await registry.execute(call("count", path=5))
    assert facts(refused)["error"] == "invalid_arguments"


def test_nested_types_are_defined_once() -> None:
    def order(lines: list[Line], size: Size, to: Address, at: Point | None = None) -> None: ...

    schema = schema_of(order)
    assert schema["properties"] == {
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
        "size": {"$ref": "#/$defs/Size"},
        "to": {"$ref": "#/$defs/Address"},
        "at": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}], "default": None},
    }
    assert sorted(schema["$defs"]) == ["Address", "Line", "Point", "Size"]
    assert schema["$defs"]["Point"] == {
        "title": "Point",
        "description": "A place on the plan.",
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "number", "default": 0.5}},
        "required": ["x"],
    }


def test_parameters_are_described_by_the_docstring_unless_by_their_type() -> None:
    def stock(sku: str, depot: Annotated[str, "a town"], days: int, note: str) -> None:
        """Units on hand.  sku: article number.

        Args:
            depot: not this
            days: how far ahead
        """

    tool_ = tool(stock)
    properties = tool_.parameters_schema()["properties"]
    assert {name: each.get("description") for name, each in properties.items()} == {
        "sku": "article number.",
        "depot": "a town",
        "days": "how far ahead",
        "note": None,
    }
    assert tool_.description == "Units on hand."


async def test_arguments_arrive_as_the_types_of_the_signature() -> None:
    seen: list[object] = []

    @tool
    def order(
        lines: list[Line], size: Size, to: Address, *, at: Point, color: Color, tags: set[str], on: date
    ) -> None:
        seen.extend([lines, size, to, at, color, tags, on])

    await ToolRegistry([order]).execute(
        call(
            "order",
            lines=[{"sku": "a", "qty": 1, "parts": [{"sku": "b", "qty": 2}]}],
            size={"width": 1},
            to={"street": "Elm", "others": [{"street": "Oak"}]},
            at={"x": 1, "y": 2},
            color="red",
            tags=["x"],
            on="2026-11-30",
        )
    )
    assert seen == [
        [Line(sku="a", qty=1, parts=[Line(sku="b", qty=2)])],
        {"width": 1},
        Address(street="Elm", others=[Address(street="Oak")]),
        Point(1, 2.0),
        Color.RED,
        {"x"},
        date(2026, 11, 30),
    ]


async def test_a_union_of_classes_becomes_the_one_that_knows_the_given_fields() -> None:
    seen: list[object] = []

    @tool
    def draw(shapes: list[Circle | Square], label: Circle | Address | None = None) -> None:
        seen.extend([*shapes, label])

    center = {"x": 1}
    shapes = [{"center": center}, {"center": center, "side": 2}, {"center": center, "radius": 3}]
    await run_quietly(draw, shapes=shapes, label={"street": "Elm"})
    await run_quietly(draw, shapes=[])
    assert seen == [
        Circle(Point(1)),
        Square(Point(1), 2.0),
        Circle(Point(1), 3.0),
        Address(street="Elm"),
        None,
    ]
    properties = draw.parameters_schema()["properties"]
    assert properties == {
        "shapes": {
            "type": "array",
            "items": {"anyOf": [{"$ref": "#/$defs/Circle"}, {"$ref": "#/$defs/Square"}]},
        },
        "label": {
            "anyOf": [
                {"anyOf": [{"$ref": "#/$defs/Circle"}, {"$ref": "#/$defs/Address"}]},
                {"type": "null"},
            ],
            "default": None,
        },
    }


async def run_quietly(subject: Tool, /, **arguments: object) -> None:
    result = await ToolRegistry([subject]).execute(call(subject.name, **arguments))
    assert not result.is_error, result.content


async def test_what_fits_no_type_of_a_union_is_told() -> None:
    @tool
    def measure(shape: Annotated[Circle | Square | list[int] | set[str], "what"]) -> None: ...

    registry = ToolRegistry([measure])
    registry.set_validate_arguments(False)
    result = await registry.execute(call("measure", shape={"center": 1}))
    assert facts(result)["violations"] == [
        {"path": "$.shape", "message": "fits none of Circle, Square, list[int], set[str]"}
    ]


async def test_defaults_are_the_functions_own() -> None:
    @tool
    def greet(name: str = "you", times: int = None, at: Point = Point(1), marks: list[str] = []) -> object:  # noqa: B006, B008, RUF013 - as people write it
        return [name, times, at, marks]

    assert await ToolRegistry([greet]).execute(call("greet")) == await ToolRegistry([greet]).execute(
        call("greet", name="you", times=None)
    )
    assert greet.parameters_schema()["properties"] == {
        "name": {"type": "string", "default": "you"},
        "times": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "at": {"$ref": "#/$defs/Point", "default": {"x": 1, "y": 0.5}},
        "marks": {"type": "array", "items": {"type": "string"}, "default": []},
    }


def test_a_default_of_none_allows_null_whatever_the_hint() -> None:
    def find(limit: Annotated[int, "at most"] = None, near: int | None = None, like: Any = None) -> None: ...  # noqa: RUF013 - as people write it

    nullable = {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    assert schema_of(find)["properties"] == {
        "limit": nullable | {"description": "at most"},
        "near": nullable,
        "like": {"default": None},
    }


def test_a_default_that_json_cannot_carry_is_left_out_of_the_schema() -> None:
    def wait(seconds: float = 1j) -> None: ...

    assert schema_of(wait)["properties"] == {"seconds": {"type": "number"}}


async def test_whole_numbers_may_come_as_floats_anywhere() -> None:
    @tool
    def add(numbers: list[int], extra: dict[str, int], factor: int) -> int:
        return (sum(numbers) + sum(extra.values())) * factor

    result = await ToolRegistry([add]).execute(call("add", numbers=[1.0, 2], extra={"a": 3.0}, factor=2.0))
    assert result.content == "12"


async def test_the_context_is_given_to_the_tool_and_hidden_from_the_model() -> None:
    @tool
    async def whoami(greeting: str, ctx: ToolContext) -> str:
        """Say who calls."""
        return f"{greeting} {ctx.deps} {ctx.run_id} {ctx.call_id} {ctx.tool_name} {ctx.stop_requested}"

    assert whoami.parameters_schema()["properties"] == {"greeting": {"type": "string"}}
    run = ToolRun(run_id="run_1", deps="Ada")
    result = await ToolRegistry([whoami]).execute(call("whoami", greeting="hi"), run)
    assert result.content == "hi Ada run_1 call_whoami whoami False"


async def test_an_optional_context_is_given_too() -> None:
    @tool
    def named(ctx: ToolContext | None = None) -> str:
        return ctx.tool_name if ctx else "nobody"

    assert (await ToolRegistry([named]).execute(call("named"))).content == "named"
    assert named() == "nobody"


def test_a_tool_called_like_the_function_is_the_function() -> None:
    @tool
    def double(n: int) -> int:
        """Twice the number."""
        return 2 * n

    assert double(4) == 8
    assert (double.__name__, double.__doc__) == ("double", "Twice the number.")


def test_options_are_fields_of_the_decorator() -> None:
    @tool(name="pay-out", requires_approval=True, timeout=3.5, idempotent=True, max_result_chars=99)
    def pay(amount: float) -> None: ...

    assert pay.name == "pay-out"
    assert pay.options == ToolOptions(
        requires_approval=True, timeout=3.5, idempotent=True, max_result_chars=99
    )


async def test_methods_partials_and_callable_objects_are_tools_too() -> None:
    class Shop:
        def __init__(self, name: str) -> None:
            self.name = name

        def sign(self, text: str) -> str:
            return f"{self.name}: {text}"

        async def __call__(self, text: str) -> str:
            return self.sign(text)

    def power(base: int, exponent: int) -> int:
        return base**exponent

    shop = Shop("Elm")
    bound, object_, square = tool(shop.sign), tool(shop), tool(functools.partial(power, exponent=2))
    registry = ToolRegistry([bound, object_, square])
    assert registry.names() == ("sign", "Shop", "power")
    answers = [
        await registry.execute(each)
        for each in (call("sign", text="a"), call("Shop", text="b"), call("power", base=3))
    ]
    assert [answer.content for answer in answers] == ["Elm: a", "Elm: b", "9"]


def test_a_method_without_its_object_is_refused_with_what_to_write() -> None:
    class Shop:
        def sign(self, text: str) -> str:
            return text

    with pytest.raises(UsageError, match=r"'sign' is a method; make a tool of it on an object, as in tool\("):
        tool(Shop.sign)


def test_a_field_for_a_default_is_refused_for_the_function_would_be_given_it() -> None:
    def stock(days: int = pydantic.Field(5, description="ahead")) -> int:
        return days

    with pytest.raises(UsageError) as caught:
        tool(stock)
    assert str(caught.value) == (
        "parameter 'days' of tool 'stock' has a Field for its default, which its function would get;"
        " put it into the type, as in days: Annotated[int, Field(...)] = 5"
    )


@pytest.mark.parametrize("given", ["stock", 5])
def test_what_cannot_be_called_is_no_tool(given: Any) -> None:
    with pytest.raises(UsageError) as caught:
        tool(given)
    assert str(caught.value) == f"@tool was given {given!r}; write @tool, or @tool(name=...)"


def test_options_without_sense_are_refused() -> None:
    with pytest.raises(
        UsageError, match="a tool has timeout 0; give seconds above 0, or None for the policy's"
    ):
        ToolOptions(timeout=0)
    with pytest.raises(UsageError, match="a tool has max_result_chars 0; give at least 1"):
        ToolOptions(max_result_chars=0)


async def test_types_may_be_named_before_they_are_defined() -> None:
    @tool
    def total(lines: "list[Line]", more: list["Line"]) -> int:
        return sum(line.qty for line in [*lines, *more])

    line = {"sku": "a", "qty": 2}
    assert (await ToolRegistry([total]).execute(call("total", lines=[line], more=[line]))).content == "4"


def test_importing_tools_loads_neither_pydantic_nor_the_schema_engine() -> None:
    script = (
        "import sys, dialoom.tools; print([m for m in ('pydantic', 'jsonschema_rs') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"
