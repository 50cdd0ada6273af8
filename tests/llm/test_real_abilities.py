"""A real model calls tools, fills schemas, embeds and is examined; what it says in words is never judged."""

import asyncio
from math import sqrt

import msgspec
import pytest

from dialoom.llm import (
    ChatOptions,
    EmbeddingOptions,
    OpenAIEmbeddings,
    OpenAIProvider,
    ResponseStarted,
    Timeouts,
    ToolModeProvider,
    ToolSpec,
    WireProfile,
    chat,
    chat_structured,
    diagnose,
    tool_result,
    user,
)
from dialoom.llm.doctor import DoctorLimits
from dialoom.llm.tool_modes import ToolMode
from tests.local_model import LocalModel

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(300)]

CALM = ChatOptions(
    temperature=0,
    seed=7,
    max_tokens=60,
    timeouts=Timeouts(first_event=100, idle=100, total=120),
    extra_body={"cache_prompt": False},
)
CALCULATOR = ToolSpec(
    name="calculator",
    description="Evaluate an arithmetic expression such as 12*3",
    parameters={
        "type": "object",
        "properties": {"expression": {"type": "string", "pattern": r"^[0-9]{1,4} ?[*+-] ?[0-9]{1,4}$"}},
        "required": ["expression"],
        "additionalProperties": False,
    },
)
FORCED = msgspec.structs.replace(CALM, tools=(CALCULATOR,), tool_choice="required")
PAIRS = ((7, 8), (12, 34), (81, 9))
FULL_MATCHES = 2  # of three: a small model copies the numbers, and one slip is its own


class Weather(msgspec.Struct):
    city: str
    degrees: int
    sunny: bool


@pytest.mark.parametrize("mode", ["native", "schema"])
async def test_a_calculation_is_called_for_in_both_modes(local_model: LocalModel, mode: ToolMode) -> None:
    right = 0
    async with OpenAIProvider(local_model.base_url) as inner:
        provider = ToolModeProvider(inner, mode=mode)
        for one, two in PAIRS:
            answer = await chat(provider, [user(f"Please call calculator for {one}*{two}.")], FORCED)
            (call,) = answer.tool_calls
            assert (answer.finish_reason, call.name, call.problem) == ("tool_calls", "calculator", None)
            right += (call.arguments or {}).get("expression") == f"{one}*{two}"
    assert right >= FULL_MATCHES


async def test_a_result_goes_back_and_is_answered_in_words(local_model: LocalModel) -> None:
    question = user("Please call calculator for 7*8.")
    async with OpenAIProvider(local_model.base_url) as provider:
        modes: tuple[ToolMode, ...] = ("native", "schema")
        for mode in modes:
            asked = ToolModeProvider(provider, mode=mode)
            called = await chat(asked, [question], FORCED)
            (call,) = called.tool_calls
            history = [question, called.message, tool_result(call.id, "56", name=call.name)]
            briefly = msgspec.structs.replace(FORCED, tool_choice="none", max_tokens=12)
            answer = await chat(asked, history, briefly)
            assert answer.text
            assert answer.tool_calls == ()


async def test_an_answer_fits_its_type(local_model: LocalModel) -> None:
    async with OpenAIProvider(local_model.base_url) as provider:
        result = await chat_structured(
            provider, [user("It is 21 degrees in Paris. Answer in JSON.")], Weather, options=CALM
        )
    assert result.ok, result.violations
    assert isinstance(result.value, Weather)
    assert (result.mode, result.rounds) == ("native", 1)


async def test_texts_become_vectors_that_tell_them_apart(local_model: LocalModel) -> None:
    texts = [
        "The cat sleeps on the sofa.",
        "A cat is sleeping on the couch.",
        "Invoices are due in thirty days.",
    ]
    options = EmbeddingOptions(max_texts=2)
    async with OpenAIEmbeddings(local_model.base_url, model="local", options=options) as embeddings:
        found = await embeddings.embed(texts)
    cat, couch, invoice = found.vectors
    assert {len(vector) for vector in found.vectors} == {576}
    assert similarity(cat, couch) > similarity(cat, invoice)


def similarity(one: list[float], two: list[float]) -> float:
    dot = sum(a * b for a, b in zip(one, two, strict=True))
    return dot / sqrt(sum(a * a for a in one) * sum(b * b for b in two))


async def test_four_questions_at_once_are_each_answered_as_if_alone(local_model: LocalModel) -> None:
    options = msgspec.structs.replace(CALM, max_tokens=12)
    async with OpenAIProvider(local_model.base_url) as provider:
        alone = await chat(provider, [user("Say hello.")], options)
        together = await asyncio.gather(*(chat(provider, [user("Say hello.")], options) for _ in range(4)))
    assert [answer.text for answer in together] == [alone.text] * 4


async def test_the_other_wire_of_the_same_server_answers_too(local_model: LocalModel) -> None:
    profile = WireProfile(api="responses")
    async with OpenAIProvider(local_model.base_url, profile=profile) as provider:
        async with provider.stream([user("Say hello.")], CALM) as stream:
            events = [event async for event in stream]
        called = await chat(provider, [user("Please call calculator for 7*8.")], FORCED)
    assert sum(isinstance(event, ResponseStarted) for event in events) == 1
    assert stream.response.text
    assert stream.response.usage.output_tokens
    assert [call.name for call in called.tool_calls] == ["calculator"]


async def test_the_doctor_finds_what_the_server_can_do(local_model: LocalModel) -> None:
    limits = DoctorLimits(prompt_tokens=500, probe_seconds=100)
    report = await diagnose(local_model.base_url, local_model.name, limits=limits)
    verdicts = {finding.probe: finding.verdict for finding in report.findings}
    assert report.ok
    assert (verdicts["json schema"], verdicts["long prompts"], verdicts["embeddings"]) == ("yes",) * 3
    assert report.context_window == local_model.context_window
    assert report.profile.structured_mode == "native"
