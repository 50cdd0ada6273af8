"""A real model in the loop: what it says is never judged, how the turn goes always."""

from typing import Annotated

import msgspec
import pytest

from dialoom.agent import (
    AgentFinished,
    AgentLimits,
    AgentResult,
    AgentSettings,
    Approve,
    ReActAgent,
    ToolFinished,
    ToolStarted,
)
from dialoom.llm import ChatOptions, OpenAIProvider, TextDelta, Timeouts, ToolModeProvider
from dialoom.tools import tool
from tests.local_model import LocalModel

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(300)]

PAIRS = ((7, 8), (12, 34), (81, 9))
SETTINGS = AgentSettings(
    limits=AgentLimits(tool_calls=1),  # left alone, this model would call until the rounds are used up
    options=ChatOptions(
        temperature=0,
        seed=7,
        max_tokens=60,
        tool_choice="required",
        timeouts=Timeouts(first_event=100, idle=100, total=120),
        extra_body={"cache_prompt": False},
    ),
)
Expression = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,4} ?[*+-] ?[0-9]{1,4}$")]


@tool
async def calculator(expression: Expression) -> int:
    """Evaluate an arithmetic expression such as 12*3."""
    for sign in "*+-":
        left, found, right = expression.partition(sign)
        if found:
            one, two = int(left), int(right)
            return {"*": one * two, "+": one + two, "-": one - two}[sign]
    raise ValueError(expression)


@tool(name="calculator", requires_approval=True)
async def careful_calculator(expression: Expression) -> int:
    """Evaluate an arithmetic expression such as 12*3."""
    return await calculator(expression)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
async def test_the_calculator_loop_completes_in_schema_mode(
    local_model: LocalModel, pair: tuple[int, int]
) -> None:
    async with OpenAIProvider(local_model.base_url) as inner:
        agent = ReActAgent(ToolModeProvider(inner, mode="schema"), [calculator], settings=SETTINGS)
        stream = agent.run_stream(f"Please call calculator for {pair[0]}*{pair[1]}.")
        events = [event async for event in stream]
    result = stream.result
    assert (result.stop_reason, result.error) == ("finished", None)
    assert result.answer
    started = [event for event in events if isinstance(event, ToolStarted)]
    finished = [event for event in events if isinstance(event, ToolFinished)]
    assert [each.call.name for each in started] == ["calculator"] * len(started)
    assert len(finished) == len(started) >= 1
    assert not any(each.is_error for each in finished)
    assert events[-1] == AgentFinished(answer=result.answer)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).endswith(result.answer)
    assert result.usage.input_tokens
    assert result.usage.output_tokens


async def test_an_approval_of_a_real_models_call_goes_on_from_json(local_model: LocalModel) -> None:
    async with OpenAIProvider(local_model.base_url) as inner:
        provider = ToolModeProvider(inner, mode="schema")
        agent = ReActAgent(provider, [careful_calculator], settings=SETTINGS)
        waiting = await agent.run("Please call calculator for 7*8.")
        assert waiting.stop_reason == "needs_approval"
        again = ReActAgent(provider, [careful_calculator], settings=SETTINGS)
        kept = AgentResult.from_json(waiting.to_json())
        result = await again.resume(kept, {each.id: Approve() for each in kept.pending})
    assert (result.stop_reason, result.error) == ("finished", None)
    (first,) = [part for message in result.history for part in message.tool_results]
    assert first.content.isdigit()
