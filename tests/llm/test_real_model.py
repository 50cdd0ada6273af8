"""A real model on a real server: what it says is never judged, how the answer arrives always."""

import asyncio

import msgspec
import pytest

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.llm import (
    ChatOptions,
    ModelRequest,
    ModelSettings,
    OpenAIProvider,
    ProviderError,
    ResponseCompleted,
    ResponseStarted,
    SourcePart,
    TextDelta,
    Timeouts,
    ToolSpec,
    UsageUpdate,
    chat,
    choose_model,
    open_provider,
    user,
)
from dialoom.net import HttpRequest, Httpx2Transport
from tests.local_model import LocalModel

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(180)]

CALM = ChatOptions(
    temperature=0,
    seed=7,
    max_tokens=24,
    timeouts=Timeouts(first_event=60, idle=60, total=120),
    extra_body={"cache_prompt": False},
)
SLOT_FREE_SECONDS = 1.0


def calm(**changes: object) -> ChatOptions:
    return msgspec.structs.replace(CALM, **changes)


async def test_a_whole_answer_comes_with_its_token_counts(local_model: LocalModel) -> None:
    async with OpenAIProvider(local_model.base_url) as provider:
        answer = await chat(provider, [user("Say hello.")], CALM)
    assert answer.text
    assert answer.model == "local"
    assert answer.usage.input_tokens is not None
    assert answer.usage.output_tokens is not None
    assert 0 < answer.usage.output_tokens <= 24
    assert answer.message.usage == answer.usage


async def test_the_deltas_add_up_to_the_message(local_model: LocalModel) -> None:
    async with OpenAIProvider(local_model.base_url) as provider:
        async with provider.stream([user("Name three rivers.")], CALM) as stream:
            events = [event async for event in stream]
        again = await chat(provider, [user("Name three rivers.")], CALM)
    deltas = [event.text for event in events if isinstance(event, TextDelta)]
    assert isinstance(events[0], ResponseStarted)
    assert isinstance(events[-1], ResponseCompleted)
    assert any(isinstance(event, UsageUpdate) for event in events)
    assert len(deltas) > 1
    assert "".join(deltas) == stream.response.text == again.text


async def test_an_answer_that_reaches_its_limit_says_length(local_model: LocalModel) -> None:
    async with OpenAIProvider(local_model.base_url) as provider:
        answer = await chat(provider, [user("Tell me a long story about the sea.")], calm(max_tokens=8))
    assert answer.finish_reason == "length"
    assert answer.usage.output_tokens == 8


async def test_sources_reach_the_model_as_text_it_can_read(local_model: LocalModel) -> None:
    source = SourcePart(index=1, id="a", title="Rivers", text="The Rhine flows through Basel.")
    async with OpenAIProvider(local_model.base_url) as provider:
        plain = await chat(provider, [user("Which river?")], CALM)
        sourced = await chat(provider, [user("Which river?", sources=(source,))], CALM)
    assert (sourced.usage.input_tokens or 0) > (plain.usage.input_tokens or 0)


async def test_a_tool_call_arrives_with_arguments_that_can_be_run(local_model: LocalModel) -> None:
    calculator = ToolSpec(
        name="calculator",
        description="Evaluate an arithmetic expression",
        parameters={
            "type": "object",
            "properties": {"expression": {"type": "string"}},
            "required": ["expression"],
        },
    )
    options = calm(tools=(calculator,), tool_choice="required", max_tokens=64)
    async with OpenAIProvider(local_model.base_url) as provider:
        answer = await chat(provider, [user("Please call calculator for 7*8.")], options)
    (call,) = answer.tool_calls
    assert answer.finish_reason == "tool_calls"
    assert call.name == "calculator"
    assert call.problem is None
    assert set(call.arguments or {}) == {"expression"}


async def test_cancelling_frees_the_model_at_once(local_model: LocalModel) -> None:
    scope = CancelScope()
    async with Httpx2Transport() as transport:
        provider = OpenAIProvider(local_model.base_url, transport=transport)
        with pytest.raises(Cancelled):
            async with provider.stream(
                [user("Count to a thousand.")], calm(max_tokens=2000, cancel=scope)
            ) as stream:
                async for event in stream:
                    if isinstance(event, TextDelta):
                        scope.cancel()
        assert stream.partial.text
        await asyncio.wait_for(slot_is_free(transport, local_model), SLOT_FREE_SECONDS)


async def test_leaving_the_stream_early_frees_the_model_too(local_model: LocalModel) -> None:
    async with Httpx2Transport() as transport:
        provider = OpenAIProvider(local_model.base_url, transport=transport)
        async with provider.stream([user("Count to a thousand.")], calm(max_tokens=2000)) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
        await asyncio.wait_for(slot_is_free(transport, local_model), SLOT_FREE_SECONDS)


async def test_a_prompt_larger_than_the_window_is_an_error_of_its_own(local_model: LocalModel) -> None:
    prompt = "word " * (local_model.context_window + 500)
    async with OpenAIProvider(local_model.base_url) as provider:
        with pytest.raises(ProviderError) as caught:
            await chat(provider, [user(prompt)], CALM)
    assert (caught.value.kind, caught.value.status, caught.value.retryable) == ("context_window", 400, False)
    assert "shorten the conversation" in str(caught.value)


async def test_a_server_without_a_named_model_is_asked_for_one(local_model: LocalModel) -> None:
    async with Httpx2Transport() as transport:
        request = ModelRequest(flags=ModelSettings(base_url=local_model.base_url))
        choice = await choose_model(request, transport)
        answer = await chat(
            open_provider(choice, transport), [user("Hi")], calm(model=choice.model, max_tokens=4)
        )
    assert choice.label == "openai:local"
    assert choice.steps[-1].why == "the first chat model it lists, local"
    assert answer.text


async def slot_is_free(transport: Httpx2Transport, model: LocalModel) -> None:
    """Ask the server, again and again, until no slot is at work."""
    request = HttpRequest(method="GET", url=f"{model.root}/slots")
    while True:
        async with transport.request(request) as response:
            slots = msgspec.json.decode(await response.aread(1_000_000))
        if not any(slot["is_processing"] for slot in slots):
            return
