"""A tool remembers over restarts and asks people, through whoever runs it."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from dialoom.llm.messages import ToolCall
from dialoom.tools import ToolContext, ToolRegistry, ToolRun, tool
from tests.tools.calls import call, facts

T = TypeVar("T")


class Notebook:
    """A journal of one call, as an agent keeps it."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[object, str, str]] = []

    def once(self, key: str, effect: Callable[[], T]) -> T:
        if key not in self.kept:
            self.kept[key] = effect()
        return self.kept[key]

    async def aonce(self, key: str, effect: Callable[[], Awaitable[T]]) -> T:
        if key not in self.kept:
            self.kept[key] = await effect()
        return self.kept[key]

    def ask(self, payload: object, *, key: str, refused: str) -> Any:
        self.asked.append((payload, key, refused))
        return self.answers[key]


@pytest.fixture
def effects() -> list[str]:
    return []


@pytest.fixture
def paying(effects: list[str]) -> ToolRegistry:
    def pay() -> str:
        effects.append("paid")
        return "receipt"

    @tool
    def plainly(ctx: ToolContext) -> str:
        return ctx.once("pay", pay)

    @tool
    async def on_the_loop(ctx: ToolContext) -> str:
        async def apay() -> str:
            return pay()

        return await ctx.aonce("pay", apay)

    return ToolRegistry([plainly, on_the_loop])


@pytest.mark.parametrize("name", ["plainly", "on_the_loop"])
async def test_an_effect_happens_once_for_each_journal(
    name: str, paying: ToolRegistry, effects: list[str]
) -> None:
    run = ToolRun(journal=Notebook())
    for _ in range(2):
        assert (await paying.execute(call(name), run)).content == "receipt"
    assert effects == ["paid"]


@pytest.mark.parametrize("name", ["plainly", "on_the_loop"])
async def test_without_a_journal_an_effect_simply_happens(
    name: str, paying: ToolRegistry, effects: list[str]
) -> None:
    for _ in range(2):
        assert (await paying.execute(call(name))).content == "receipt"
    assert effects == ["paid", "paid"]


async def test_a_tool_gets_the_answer_to_what_it_asks() -> None:
    @tool
    async def book(ctx: ToolContext) -> str:
        return f"booked at {ctx.ask('which hour?')}"

    notebook = Notebook()
    notebook.answers["1/1"] = 12
    run = ToolRun(journal=notebook)
    assert (await ToolRegistry([book]).execute(call("book"), run)).content == "booked at 12"


def early(answer: object) -> object:
    if answer != 7:
        raise ValueError("too late")
    return answer


@pytest.mark.parametrize(
    ("schema", "wrong", "right", "refused"),
    [
        (int, "noon", 12, "the answer does not fit: Expected `int`, got `str`"),
        (list[int], [None], [12], "the answer does not fit: Expected `int`, got `null` - at `$[0]`"),
        (early, 12, 7, "the answer does not fit: too late"),
    ],
)
async def test_an_answer_that_does_not_fit_is_asked_for_again(
    schema: object, wrong: object, right: object, refused: str
) -> None:
    @tool
    async def book(ctx: ToolContext) -> object:
        return ctx.ask("which hour?", key="hour", schema=schema)

    notebook = Notebook()
    notebook.answers |= {"hour/1": wrong, "hour/2": right}
    result = await ToolRegistry([book]).execute(call("book"), ToolRun(journal=notebook))
    assert result.structured == right
    assert notebook.asked == [("which hour?", "hour/1", ""), ("which hour?", "hour/2", refused)]


async def test_a_tool_that_nobody_can_answer_is_told_so() -> None:
    @tool
    async def book(ctx: ToolContext) -> str:
        return f"booked at {ctx.ask('which hour?')}"

    assert facts(await ToolRegistry([book]).execute(call("book"))) == {
        "error": "UsageError: tool 'book' asks, but nobody can be asked here; run it by an agent",
        "tool": "book",
    }


async def test_a_refusal_says_what_execute_would_say_and_runs_nothing(paying: ToolRegistry) -> None:
    bad = [
        call("nobody"),
        call("plainly", x=1),
        ToolCall(id="c", name="plainly", raw="{", problem="invalid_json"),
    ]
    assert [paying.refusal(each) for each in bad] == [await paying.execute(each) for each in bad]
    assert paying.refusal(call("plainly")) is None
    assert paying.refusal(ToolCall(id="c", name="plainly")) is None
