"""How long a question is can be asked before it is put."""

import asyncio

import msgspec
import pytest

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.base.errors import UsageError
from dialoom.llm import AnthropicProvider, ChatOptions, ProviderError, RetryPolicy, ToolSpec, system, user
from dialoom.testing.wire import Hold, WireReply, WireServer

KEY = "sk-ant-test-0123456789"
QUESTION = [system("Be brief."), user("Hello")]
COUNTED = WireReply(body=(b'{"input_tokens": 2095, "note": "ignored"}',))
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 2048}, "metadata": {}}
NOW = RetryPolicy(first_wait=0.0)


async def test_the_whole_question_is_counted_and_no_other_field_sent() -> None:
    options = ChatOptions(
        model="claude", tools=(ToolSpec(name="look"),), temperature=0.5, reasoning="low", extra_body=BUDGET
    )
    async with WireServer([COUNTED]) as server, AnthropicProvider(server.url, KEY) as provider:
        assert await provider.count_tokens(QUESTION, options) == 2095
    (request,) = server.requests
    assert (request.path, request.headers["x-api-key"]) == ("/v1/messages/count_tokens", KEY)
    assert request.json()["thinking"] == BUDGET["thinking"]
    assert sorted(request.json()) == ["messages", "model", "output_config", "system", "thinking", "tools"]


async def test_a_busy_server_is_asked_again() -> None:
    replies = [WireReply(status=529), COUNTED]
    async with WireServer(replies) as server, AnthropicProvider(server.url, KEY) as provider:
        assert await provider.count_tokens(QUESTION, ChatOptions(retry=NOW)) == 2095
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"input_tokens": -1}', b'{"input_tokens": "9"}', b"\xff", b"["]
)
async def test_what_is_no_count_is_an_error(body: bytes) -> None:
    async with WireServer([WireReply(body=(body,))]) as server, AnthropicProvider(server.url) as provider:
        with pytest.raises(ProviderError, match="sent no count of tokens; check that the base url") as caught:
            await provider.count_tokens(QUESTION)
    assert (caught.value.kind, len(server.requests)) == ("invalid_response", 1)


async def test_a_server_that_cannot_count_says_so() -> None:
    reply = WireReply(status=404, body=(msgspec.json.encode({"error": {"message": "no such path"}}),))
    async with WireServer([reply]) as server, AnthropicProvider(server.url) as provider:
        with pytest.raises(ProviderError, match="answered 404: no such path"):
            await provider.count_tokens(QUESTION)


async def test_counting_can_be_cancelled() -> None:
    scope, hold = CancelScope(), Hold()
    async with (
        WireServer([WireReply(body=(hold,))]) as server,
        AnthropicProvider(server.url) as provider,
        asyncio.timeout(60),
    ):
        task = asyncio.create_task(provider.count_tokens(QUESTION, ChatOptions(cancel=scope)))
        await hold.reached.wait()
        scope.cancel()
        with pytest.raises(Cancelled):
            await task


async def test_what_are_no_messages_is_refused_before_anything_is_sent() -> None:
    async with AnthropicProvider("http://127.0.0.1:9") as provider:
        with pytest.raises(UsageError, match="give a list of messages"):
            await provider.count_tokens("Hello")  # pyright: ignore[reportArgumentType] - the mistake
