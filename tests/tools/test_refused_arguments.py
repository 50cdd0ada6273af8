"""Signatures no model could fill are refused at once, arguments that do not fit when they come."""

from collections.abc import Callable
from typing import Any

import pydantic
import pytest

from dialoom.base.errors import UsageError
from dialoom.llm.json_schema import Violation
from dialoom.tools import ArgumentsError, ToolContext, ToolRegistry, tool
from tests.tools.calls import call, facts
from tests.tools.shapes import Address, Line, Point


def unhinted(value) -> None: ...


def many(*values: int) -> None: ...


def rest(**values: int) -> None: ...


def by_place(value: int, /) -> None: ...


def unknown(value: "Nowhere") -> None: ...  # noqa: F821 - that is the point


def odd(value: complex) -> None: ...


def slots(__slots__: int) -> None: ...


def nested(value: "list[Nowhere]") -> None: ...  # noqa: F821 - that is the point


def two_contexts(a: ToolContext, b: ToolContext) -> None: ...


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (unhinted, "parameter 'value' of tool 'unhinted' has no type hint; add one"),
        (many, "tool 'many' takes *values: int; models name each argument, so name each parameter"),
        (rest, "tool 'rest' takes **values: int; models name each argument, so name each parameter"),
        (by_place, "tool 'by_place' takes value: int; models name each argument, so name each parameter"),
        (
            unknown,
            (
                "the type hints of tool 'unknown' cannot be read: name 'Nowhere' is not defined; "
                "define the types at the top of its module"
            ),
        ),
        (
            odd,
            (
                "parameter 'value' of tool 'odd' has a type that JSON cannot carry: "
                "type <class 'complex'> is not supported"
            ),
        ),
        (
            slots,
            (
                "the parameters of tool 'slots' cannot be used: "
                "'__slots__' in __slots__ conflicts with class variable"
            ),
        ),
        (
            nested,
            (
                "the type hints of tool 'nested' cannot be read: name 'Nowhere' is not defined; "
                "define the types at the top of its module"
            ),
        ),
        (two_contexts, "tool 'two_contexts' takes the context twice; keep one of a, b"),
    ],
)
def test_a_signature_no_model_could_fill_is_refused(function: Callable[..., None], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        tool(function)
    assert str(caught.value) == problem


def test_two_types_of_one_name_are_refused() -> None:
    other = pydantic.create_model("Point", z=(int, ...))
    holder = pydantic.create_model("Holder", point=(other, ...))

    def between(a: Point, b: Any) -> None: ...

    between.__annotations__["b"] = holder
    with pytest.raises(UsageError, match="tool 'between' takes two types called Point; rename one of them"):
        tool(between)


async def test_arguments_that_are_not_checked_before_are_still_decoded_strictly() -> None:
    @tool
    def order(line: Line, to: Address | None = None, counts: dict[int, int] | None = None) -> None: ...

    registry = ToolRegistry([order])
    registry.set_validate_arguments(False)
    line = {"sku": "a", "qty": 1}

    async def violations(**arguments: object) -> object:
        return facts(await registry.execute(call("order", **arguments)))["violations"]

    assert await violations(line={"sku": "a", "qty": 0}) == [
        {"path": "$.line.qty", "message": "Expected `int` >= 1"}
    ]
    assert await violations(line=line, extra=1) == [
        {"path": "$", "message": "Object contains unknown field `extra`"}
    ]
    assert await violations(line=line, to={"street": "E"}) == [
        {"path": "$.to", "message": "street: String should have at least 2 characters"}
    ]
    assert await violations(line=line, counts={"a": 1}) == [
        {"path": "$.counts", "message": "Expected `int`, got `str`"}
    ]


async def test_a_model_type_of_another_library_says_what_is_wrong_in_its_own_words() -> None:
    class Even:
        """Not pydantic, but with the same two methods."""

        @classmethod
        def model_json_schema(cls, *, ref_template: str) -> dict[str, Any]:
            return {"type": "integer"}

        @classmethod
        def model_validate(cls, value: object) -> "Even":
            if value == 2:
                return cls()
            raise ValueError("odd")

    def halve(n: Any) -> str:
        return f"half of {type(n).__name__}"

    halve.__annotations__["n"] = Even
    subject = tool(halve)
    assert (await ToolRegistry([subject]).execute(call("halve", n=2))).content == "half of Even"
    odd_one = await ToolRegistry([subject]).execute(call("halve", n=3))
    assert facts(odd_one)["violations"] == [{"path": "$.n", "message": "odd"}]


def test_an_arguments_error_lists_its_violations_in_one_line() -> None:
    error = ArgumentsError((Violation("$.a", "is odd"), Violation("$.b", "is even")))
    assert str(error) == "$.a: is odd; $.b: is even"
