"""What a tool shows to people, as a card or as a question, is bounded before it is written."""

from collections.abc import Mapping

import pytest

from dialoom.agent import ReActAgent
from dialoom.llm import MockProvider
from dialoom.tools import ToolContext, ToolResult, tool
from tests.agent.tools import call

BILLION = 9
"""Levels of ten lists that share one list: a kilobyte that would be written as a gigabyte."""


def shared(levels: int) -> object:
    value: object = "x"
    for _ in range(levels):
        value = [value] * 10
    return value


class Dumped:
    """Writes itself as a value whose lists share one list."""

    def model_dump(self, *, mode: str) -> Mapping[str, object]:
        assert mode == "json"
        return {"type": "table", "rows": shared(BILLION)}


MANY = "it has more than 1000000 values; return fewer"
LONG = "262148 bytes are to be shown, at most 262144 are; show less"


@pytest.mark.parametrize(
    ("payload", "why"),
    [(shared(BILLION), MANY), (Dumped(), MANY), ({"deep": Dumped()}, MANY), (["x" * 262_144], LONG)],
    ids=["lists", "dumps itself", "deep", "long"],
)
async def test_a_question_that_is_too_much_to_be_asked_is_an_observation(payload: object, why: str) -> None:
    @tool
    async def ask(ctx: ToolContext) -> str:
        return str(ctx.ask(payload))

    model = MockProvider().queue_tool_calls(call("c1", "ask")).queue_text("Then not.")
    result = await ReActAgent(model, [ask]).run("Ask.")
    assert (result.answer, result.pending) == ("Then not.", ())
    (observed,) = [part.content for message in result.history for part in message.tool_results]
    assert why in observed


async def test_a_card_that_writes_itself_without_end_is_left_out_and_the_turn_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @tool
    async def show() -> ToolResult:
        return ToolResult(content="shown", card=Dumped())

    model = MockProvider().queue_tool_calls(call("c1", "show")).queue_text("There it is.")
    result = await ReActAgent(model, [show]).run("Show.")
    assert result.answer == "There it is."
    assert [part.content for message in result.history for part in message.tool_results] == ["shown"]
    assert "card of a tool cannot be kept" in caplog.text
    assert MANY in caplog.text
