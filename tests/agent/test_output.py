"""An agent answers with a value of the type it was given."""

from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from dialoom.agent import (
    AgentFinished,
    AgentSettings,
    Allow,
    Block,
    Guards,
    ReActAgent,
)
from dialoom.base.errors import UsageError
from dialoom.llm import (
    MockProvider,
    ProviderError,
    Usage,
)
from tests.agent.tools import add, call


class Sum(msgspec.Struct):
    total: int


class Total(BaseModel):
    total: int


@pytest.mark.parametrize(
    ("wanted", "value"), [(Sum, Sum(5)), (Total, Total(total=5)), (dict[str, int], {"total": 5})]
)
async def test_the_answer_is_a_value_when_the_models_words_hold_one(wanted: Any, value: object) -> None:
    model = MockProvider().queue_tool_calls(call("c1", "add", a=2, b=3))
    model.queue_text('Here you are:\n```json\n{"total": 5}\n```')
    result = await ReActAgent(model, [add], system="Be exact.", output=wanted).run("2 + 3?")
    assert result.output == value
    assert result.finished
    prompt = model.requests[0].messages[0].text
    assert prompt.startswith("Be exact.\n\nGive your final answer as one JSON value and nothing else.")
    assert model.requests[0].options.response_schema is None, "the model may have to call first"
    model.assert_done()


async def test_an_answer_in_words_is_asked_for_once_more_as_a_value_and_repaired() -> None:
    model = MockProvider().queue_text("It is five.", usage=Usage(input_tokens=10))
    model.queue_text('{"total": "five"}', usage=Usage(input_tokens=20))
    model.queue_text('{"total": 5}', usage=Usage(input_tokens=30))
    stream = ReActAgent(model, output=Sum).run_stream("2 + 3?")
    events = [event async for event in stream]
    assert events[-1] == AgentFinished(answer="It is five.")
    result = stream.result
    assert (result.output, result.answer, result.usage.input_tokens) == (Sum(5), "It is five.", 60)
    assert model.requests[0].options.response_schema is not None, "without tools the server may hold it"
    restored = type(result).from_json(result.to_json())
    assert restored.output == {"total": 5}


async def test_an_answer_that_never_becomes_the_value_ends_the_turn_and_may_be_tried_again() -> None:
    model = MockProvider().queue_text("Five.").queue_text("Five!").queue_text("FIVE!")
    agent = ReActAgent(model, output=Sum)
    failed = await agent.run("2 + 3?")
    assert (failed.stop_reason, failed.output) == ("error", None)
    assert failed.error == "the answer is not the value asked for: $: the answer holds no JSON"
    model.queue_text('{"total": 5}')
    assert (await agent.resume(failed)).output == Sum(5)


async def test_a_provider_that_fails_while_it_is_asked_for_the_value_ends_the_turn() -> None:
    model = MockProvider().queue_text("Five.").queue_error(ProviderError("auth", "the key is not valid"))
    result = await ReActAgent(model, output=Sum).run("2 + 3?")
    assert (result.stop_reason, result.error) == ("error", "the key is not valid")


async def test_an_output_nobody_can_ask_for_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="no answer can be asked for as"):
        ReActAgent(MockProvider(), output=MockProvider)


async def test_a_guard_of_the_answer_looks_at_the_value_too() -> None:
    def no_fives(text: str) -> Any:
        return Block("no fives") if '"total"' in text else Allow()

    model = MockProvider().queue_text("Five.").queue_text('{"total": 5}')
    agent = ReActAgent(model, output=Sum, settings=AgentSettings(guards=Guards(output=(no_fives,))))
    result = await agent.run("2 + 3?")
    assert (result.stop_reason, result.output) == ("blocked", None)
    assert result.error == "blocked by no_fives: no fives"


async def test_the_words_of_a_turn_without_its_value_are_still_the_answer() -> None:
    model = (
        MockProvider().queue_text("It is five.").queue_error(ProviderError("auth", "the key is not valid"))
    )
    assert (await ReActAgent(model, output=Sum).run("2 + 3?")).answer == "It is five."
