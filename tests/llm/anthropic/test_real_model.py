"""A real model behind the Messages wire: how the answer arrives is judged, never what it says."""

import pytest

from dialoom.llm import (
    AnthropicProvider,
    ChatOptions,
    ProviderError,
    ResponseCompleted,
    ResponseStarted,
    TextDelta,
    Timeouts,
    ToolSpec,
    assistant,
    chat,
    system,
    tool_result,
    user,
)
from tests.llm.served import read_all
from tests.local_model import LocalModel

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(180)]

PATIENT = Timeouts(first_event=60, idle=60, total=120)
CALM = ChatOptions(temperature=0, max_tokens=24, timeouts=PATIENT, extra_body={"cache_prompt": False})
CALCULATOR = ToolSpec(
    name="calculator",
    description="Evaluate an arithmetic expression such as 12*3",
    parameters={
        "type": "object",
        "properties": {"expression": {"type": "string"}},
        "required": ["expression"],
        "additionalProperties": False,
    },
)


async def test_the_deltas_add_up_to_an_answer_with_its_counts(local_model: LocalModel) -> None:
    question = [system("Be brief."), user("Say hello.")]
    async with AnthropicProvider(local_model.root) as provider, provider.stream(question, CALM) as stream:
        events = await read_all(stream)
    answer = stream.response
    assert isinstance(events[0], ResponseStarted)
    assert events[-1] == ResponseCompleted(answer)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == answer.text != ""
    assert answer.finish_reason in {"stop", "length"}
    assert answer.usage.input_tokens
    assert answer.usage.output_tokens


async def test_a_tool_is_called_and_its_result_goes_back(local_model: LocalModel) -> None:
    question = user("Please call calculator for 7*8.")
    options = ChatOptions(temperature=0, max_tokens=64, timeouts=PATIENT, tools=(CALCULATOR,))
    async with AnthropicProvider(local_model.root) as provider:
        asked = await chat(provider, [question], options)
        (call,) = asked.tool_calls
        history = [question, assistant("", calls=(call,)), tool_result(call.id, "56"), user("So?")]
        answer = await chat(provider, history, CALM)
    assert (asked.finish_reason, call.name, call.problem) == ("tool_calls", "calculator", None)
    assert call.arguments is not None
    assert set(call.arguments) == {"expression"}
    assert answer.text


async def test_too_long_a_prompt_is_a_full_context_window(local_model: LocalModel) -> None:
    async with AnthropicProvider(local_model.root) as provider:
        with pytest.raises(ProviderError) as caught:
            await chat(provider, [user("word " * 20_000)], CALM)
    assert (caught.value.kind, caught.value.retryable) == ("context_window", False)
