"""A second peer, written by others: every wire, and what goes wrong on it."""

import asyncio
from typing import Any

import pytest

from dialoom.llm import (
    AnthropicProvider,
    ChatOptions,
    OllamaProvider,
    OpenAIEmbeddings,
    OpenAIProvider,
    Provider,
    ProviderError,
    RetryPolicy,
    TextDelta,
    ToolSpec,
    WireProfile,
    chat,
    chat_structured,
    tool_result,
    user,
)
from dialoom.llm.events import Retrying
from dialoom.llm.retry import ONCE
from tests.peers.aimock import aimock

__all__ = ["aimock"]

pytestmark = pytest.mark.timeout(120)

KEY = "sk-test-0123456789"
HELLO = "Hello from the mock server, dear tester."
CALCULATOR = ToolSpec(
    name="calculator", parameters={"type": "object", "properties": {"expression": {"type": "string"}}}
)
WIRES = ["chat", "responses", "messages", "ollama"]
BOUND = 60.0


def open_wire(wire: str, root: str) -> Provider:
    match wire:
        case "messages":
            return AnthropicProvider(root, KEY)
        case "ollama":
            return OllamaProvider(root, num_ctx=4096)
        case _:
            api = "responses" if wire == "responses" else "chat"
            return OpenAIProvider(f"{root}/v1", KEY, profile=WireProfile(api=api))


async def ask(root: str, wire: str, text: str, **options: Any) -> Any:
    provider = open_wire(wire, root)
    try:
        asked = ChatOptions(model="gpt-4o-mini", **{"retry": ONCE, **options})
        return await asyncio.wait_for(chat(provider, [user(text)], asked), BOUND)
    finally:
        await provider.aclose()


@pytest.mark.parametrize("wire", WIRES)
async def test_a_plain_answer_comes_by_every_wire(aimock: str, wire: str) -> None:
    answer = await ask(aimock, wire, "Say hi.")
    assert (answer.text, answer.finish_reason) == (HELLO, "stop")


@pytest.mark.parametrize("wire", WIRES)
async def test_a_tool_is_called_and_its_result_answered_by_every_wire(aimock: str, wire: str) -> None:
    options = ChatOptions(model="gpt-4o-mini", tools=(CALCULATOR,), retry=ONCE)
    question = user("What is 7*8")
    provider = open_wire(wire, aimock)
    called = await asyncio.wait_for(chat(provider, [question], options), BOUND)
    (call,) = called.tool_calls
    assert (call.name, call.arguments, called.finish_reason) == (
        "calculator",
        {"expression": "7*8"},
        "tool_calls",
    )
    history = [question, called.message, tool_result(call.id, "56", name="calculator")]
    answer = await asyncio.wait_for(chat(provider, history, options), BOUND)
    assert answer.text == "7*8 is 56."
    await provider.aclose()


@pytest.mark.parametrize("wire", WIRES)
async def test_two_calls_come_with_the_words_before_them(aimock: str, wire: str) -> None:
    answer = await ask(aimock, wire, "two tools", tools=(ToolSpec(name="get_weather"),))
    assert answer.text == "Let me look."
    assert [call.arguments for call in answer.tool_calls] == [{"city": "Paris"}, {"city": "Rome"}]
    assert len({call.id for call in answer.tool_calls}) == 2


@pytest.mark.parametrize("wire", WIRES)
async def test_thoughts_are_told_apart_from_the_answer(aimock: str, wire: str) -> None:
    answer = await ask(aimock, wire, "reason please")
    assert answer.text == "Then I answer."
    assert answer.reasoning == "First I think."


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("text", "kind", "status"),
    [("rate me", "rate_limit", 429), ("server down", "server_error", 500), ("overload", "overloaded", 529)],
)
async def test_a_refusal_has_its_kind(aimock: str, wire: str, text: str, kind: str, status: int) -> None:
    with pytest.raises(ProviderError) as caught:
        await ask(aimock, wire, text)
    assert (caught.value.kind, caught.value.status, caught.value.retryable) == (kind, status, True)
    assert caught.value.retry_after == (1.0 if text == "rate me" else None)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("wire", ["chat", "ollama"])
async def test_a_cut_answer_is_an_error_that_keeps_what_had_come(aimock: str, wire: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await ask(aimock, wire, "cut me")
    assert caught.value.kind == "incomplete_stream"
    assert caught.value.partial is not None
    assert caught.value.partial.text.startswith("This answer will")


@pytest.mark.parametrize("wire", ["responses", "messages"])
async def test_an_answer_cut_before_its_first_word_is_a_lost_connection(aimock: str, wire: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await ask(aimock, wire, "cut me")
    assert (caught.value.kind, caught.value.retryable, caught.value.partial) == ("connection", True, None)


async def test_a_cut_answer_can_be_taken_back_and_asked_for_again(aimock: str) -> None:
    again = RetryPolicy(attempts=2, first_wait=0.01, on_interrupt="restart")
    options = ChatOptions(model="gpt-4o-mini", retry=again)
    events: list[Any] = []
    async with OpenAIProvider(f"{aimock}/v1", KEY) as provider:
        with pytest.raises(ProviderError, match="ask again"):
            async with provider.stream([user("cut me")], options) as stream:
                async for event in stream:
                    events.append(event)  # noqa: PERF401 - what came before the error is looked at
    (restart,) = (event for event in events if isinstance(event, Retrying))
    assert restart.restarts


@pytest.mark.parametrize("wire", WIRES)
async def test_a_slow_answer_arrives_piece_by_piece(aimock: str, wire: str) -> None:
    provider = open_wire(wire, aimock)
    async with asyncio.timeout(BOUND):
        async with provider.stream([user("slow one")], ChatOptions(model="gpt-4o-mini")) as stream:
            pieces = [event.text async for event in stream if isinstance(event, TextDelta)]
    await provider.aclose()
    assert len(pieces) > 1
    assert "".join(pieces) == "A slow answer that trickles."


async def test_a_value_is_read_out_of_an_answer(aimock: str) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "temp_c": {"type": "integer"}}}
    async with OpenAIProvider(f"{aimock}/v1", KEY) as provider:
        result = await asyncio.wait_for(
            chat_structured(
                provider, [user("json please")], schema, options=ChatOptions(model="gpt-4o-mini")
            ),
            BOUND,
        )
    assert result.value == {"city": "Paris", "temp_c": 21}


async def test_texts_become_vectors(aimock: str) -> None:
    async with OpenAIEmbeddings(f"{aimock}/v1", KEY, model="text-embedding-3-small") as embeddings:
        found = await asyncio.wait_for(embeddings.embed(["a", "b"]), BOUND)
    assert len(found.vectors) == 2
    assert len(found.vectors[0]) == len(found.vectors[1]) > 0
