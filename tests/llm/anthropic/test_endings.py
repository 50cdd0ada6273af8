"""How a question is put, refused, broken off and cancelled on the Messages wire."""

import asyncio
from typing import Any

import msgspec
import pytest

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.base.errors import UsageError
from dialoom.llm import (
    AnthropicProvider,
    ChatOptions,
    ChatResponse,
    MockProvider,
    OpenAIProvider,
    Provider,
    ProviderError,
    Retrying,
    RetryPolicy,
    TextDelta,
    chat,
    user,
)
from dialoom.llm.profile import ANTHROPIC_PROFILE, WireProfile, profile_of
from dialoom.net import Httpx2Transport
from dialoom.testing import ManualClock
from dialoom.testing.clock import settle
from dialoom.testing.wire import Hold, WireReply, WireServer, split_bytes
from tests.llm.anthropic.served import KEY, ask, begin, end, event, failure, served, streamed, whole, words
from tests.llm.scripted_transport import ScriptedTransport
from tests.llm.served import HELLO, SAID, SOON, read_all
from tests.llm.served import streamed as chunks

ANSWER = (begin(), words(0, "Hel", "lo"), end())


@pytest.mark.promise("llm-005", "llm-006")
async def test_the_key_and_the_version_are_sent_in_their_own_headers() -> None:
    async with served(streamed(*ANSWER)) as (server, provider):
        await chat(provider, HELLO, ChatOptions(extra_headers={"Anthropic-Beta": "x"}))
    headers = server.requests[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert (headers["anthropic-beta"], "authorization" in headers) == ("x", False)


async def test_a_token_and_another_version_are_headers_of_the_callers_own() -> None:
    headers = {"Authorization": "Bearer t-0123456789", "Anthropic-Version": "2030-01-01"}
    async with (
        WireServer([WireReply(status=401, body=(b'{"error":"bad t-0123456789"}',))]) as server,
        AnthropicProvider(server.url, headers=headers) as provider,
    ):
        with pytest.raises(ProviderError) as caught:
            await chat(provider, HELLO)
    sent = server.requests[0].headers
    assert (sent["authorization"], sent["anthropic-version"]) == ("Bearer t-0123456789", "2030-01-01")
    assert "x-api-key" not in sent
    assert "0123456789" not in str(caught.value)


@pytest.mark.promise("llm-018")
@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/", "/proxy", "/proxy/v1/"])
async def test_an_address_may_end_in_v1_and_in_a_slash_or_not(tail: str) -> None:
    reply = whole([{"type": "text", "text": "Hi"}])
    async with WireServer([reply]) as server, AnthropicProvider(server.url + tail, KEY) as provider:
        await chat(provider, HELLO)
    assert server.requests[0].path == ("/proxy" if "proxy" in tail else "") + "/v1/messages"


@pytest.mark.promise("llm-014")
async def test_events_in_pieces_and_over_several_lines_are_put_back_together() -> None:
    lines = b'event: content_block_delta\r\ndata: {"index":0,\r\ndata: "delta":{"text":"Hi"}}\r\n\r\n'
    body = b"".join((begin(), lines, end()))
    for size in (1, 3, 1000):
        answer = await ask(streamed(*split_bytes(body, range(size, len(body), size))))
        assert answer.text == "Hi"


ERRORS = [
    (400, "bad_request", {"type": "invalid_request_error", "message": "max_tokens: too many"}, False),
    (400, "context_window", {"type": "invalid_request_error", "message": "prompt is too long"}, False),
    (400, "quota", {"type": "invalid_request_error", "message": "Your credit balance is too low"}, False),
    (401, "auth", {"type": "authentication_error", "message": "invalid x-api-key"}, False),
    (402, "quota", {"type": "billing_error", "message": "x"}, False),
    (403, "auth", {"type": "permission_error", "message": "x"}, False),
    (404, "bad_request", {"type": "not_found_error", "message": "model: x"}, False),
    (413, "context_window", {"type": "request_too_large", "message": "x"}, False),
    (429, "rate_limit", {"type": "rate_limit_error", "message": "x"}, True),
    (500, "server_error", {"type": "api_error", "message": "x"}, True),
    (504, "timeout", {"type": "timeout_error", "message": "x"}, True),
    (529, "overloaded", {"type": "overloaded_error", "message": "x"}, True),
]  # fmt: skip
"""What Anthropic says instead of an answer: status, our kind, its words, whether asking again may help."""


@pytest.mark.promise("llm-017")
@pytest.mark.parametrize(("status", "kind", "told", "retryable"), ERRORS)
async def test_errors_have_their_kinds_and_those_that_may_pass_are_asked_again(
    status: int, kind: str, told: Any, retryable: bool
) -> None:
    refusal = WireReply(status=status, body=(msgspec.json.encode({"type": "error", "error": told}),))
    clock, waits = ManualClock(), []

    async def asked(*replies: WireReply) -> tuple[ChatResponse | ProviderError, int]:
        options = ChatOptions(retry=RetryPolicy(attempts=3, chance=lambda: 0.0))
        async with served(*replies, clock=clock) as (server, provider), asyncio.TaskGroup() as group:
            try:
                async with provider.stream(HELLO, options) as stream:
                    async for event in stream:
                        if isinstance(event, Retrying):
                            waits.append((event.kind, event.wait))
                            group.create_task(clock.advance(event.wait))
                    return stream.response, len(server.requests)
            except ProviderError as error:
                return error, len(server.requests)

    async with asyncio.timeout(SOON):
        passing, first_requests = await asked(refusal, streamed(*ANSWER))
        lasting, all_requests = await asked(refusal, refusal, refusal, streamed(*ANSWER))
    assert isinstance(lasting, ProviderError)
    assert (lasting.kind, lasting.status, lasting.retryable) == (kind, status, retryable)
    if retryable:
        assert isinstance(passing, ChatResponse)
        assert (passing.text, passing.attempts, first_requests, all_requests) == ("Hello", 2, 2, 3)
        assert waits == [(kind, 0.5), (kind, 0.5), (kind, 1.0)]
    else:
        assert isinstance(passing, ProviderError)
        assert (passing.kind, first_requests, all_requests, waits) == (kind, 1, 1, [])


@pytest.mark.parametrize(("status", "kind", "told", "retryable"), ERRORS)
async def test_an_error_is_the_same_before_and_within_an_answer(
    status: int, kind: str, told: Any, retryable: bool
) -> None:
    refused = await failure(
        WireReply(
            status=status,
            headers={"request-id": "req_1"},
            body=(msgspec.json.encode({"type": "error", "error": told}),),
        )
    )
    assert (refused.kind, refused.status, refused.retryable) == (kind, status, retryable)
    assert refused.request_id == "req_1"
    broken = await failure(streamed(begin(), words(0, "Half"), event("error", error=told)))
    assert (broken.kind, broken.retryable) == (kind, retryable)
    assert broken.partial is not None
    assert broken.partial.text == "Half"


async def test_an_error_told_in_other_ways_is_an_error_too() -> None:
    plain = await failure(streamed(begin(), b"event: error\ndata: worn out\n\n"))
    bare = await failure(streamed(begin(), b'data: {"error":{"message":"worn out"}}\n\n'))
    answer = await failure(WireReply(body=(b'{"type":"error","error":{"message":"worn out"}}',)))
    assert [error.kind for error in (plain, bare, answer)] == ["server_error"] * 3
    assert all("broke off its answer: worn out" in str(error) for error in (plain, bare, answer))


async def test_advice_is_about_this_wire() -> None:
    lost = await failure(WireReply(status=404, body=(b"not here",)))
    assert str(lost).endswith("the base url, which goes up to the path before /v1/messages")
    page = await failure(WireReply(body=(b"<html><title>Log in</title>",)))
    assert "an HTML page (Log in); check that the base url is one of a server with a messages" in str(page)
    other = await failure(WireReply(body=(b'{"type":"message"}',)))
    assert "JSON that is no answer" in str(other)


async def test_what_follows_the_end_of_an_answer_is_not_part_of_it() -> None:
    assert (await ask(streamed(b"".join((*ANSWER, words(1, " again")))))).text == "Hello"
    assert (await ask(streamed(begin(), words(0, "Hi"), end(), b"data: [DONE]\n\n"))).text == "Hi"


async def test_an_open_call_of_a_broken_answer_is_marked_and_an_open_block_is_not_kept() -> None:
    call = event(
        "content_block_start", index=0, content_block={"type": "tool_use", "id": "c", "name": "save"}
    )
    more = event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": '{"a'})
    sealed = event("content_block_start", index=1, content_block={"type": "redacted_thinking", "data": "x"})
    error = await failure(streamed(begin(), call, more, sealed, framing="close"))
    assert error.partial is not None
    (made,) = error.partial.tool_calls
    assert (made.name, made.raw, made.problem) == ("save", '{"a', "truncated")
    assert len(error.partial.parts) == 1


async def test_cancelling_closes_the_socket_and_ends_the_answer_once() -> None:
    hold, scope = Hold(), CancelScope()
    async with asyncio.timeout(SOON), served(streamed(begin(), words(0, "Hel"), hold)) as (server, provider):
        async with provider.stream(HELLO, ChatOptions(cancel=scope)) as stream:
            reading = asyncio.create_task(read_all(stream))
            await hold.reached.wait()
            while not stream.partial.parts:
                await settle()
            scope.cancel()
            with pytest.raises(Cancelled):
                await reading
            await server.client_left.wait()
            assert await read_all(stream) == []
        assert stream.partial.text == "Hel"


async def test_its_models_are_listed() -> None:
    listing = b'{"data":[{"type":"model","id":"claude-x","display_name":"X"}],"has_more":false}'
    async with served(WireReply(body=(listing,)), id="desk") as (server, provider):
        (model,) = await provider.models()
    assert (model.id, model.provider) == ("claude-x", "desk")
    assert server.requests[0].path == "/v1/models?limit=1000"


async def test_a_transport_that_was_lent_stays_open() -> None:
    async with WireServer([streamed(*ANSWER)] * 2) as server, Httpx2Transport() as transport:
        for _ in range(2):
            async with AnthropicProvider(server.url, transport=transport) as provider:
                await chat(provider, HELLO)
        assert not server.client_left.is_set()


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [("ftp://x", None, "is no http address"), ("http://host", "two words", "characters that no key has")],
)
def test_an_address_or_key_that_cannot_be_sent_is_refused_at_once(
    url: str, key: str | None, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        AnthropicProvider(url, key)


def test_a_provider_shows_its_address_and_never_its_key() -> None:
    provider = AnthropicProvider(api_key=f" {KEY}\n", headers={"authorization": f"Bearer {KEY}"})
    assert repr(provider) == "AnthropicProvider(anthropic at https://api.anthropic.com)"
    assert profile_of(provider) is ANTHROPIC_PROFILE
    other = WireProfile()
    assert profile_of(AnthropicProvider(profile=other)) is other


@pytest.mark.promise("llm-002", "llm-030")
async def test_one_program_runs_with_any_provider_and_any_transport() -> None:
    async def program(llm: Provider) -> list[str]:
        async with llm.stream([user("Hi")], ChatOptions(max_tokens=5)) as stream:
            return [event.text async for event in stream if isinstance(event, TextDelta)]

    openai = ScriptedTransport([chunks(*SAID)])
    anthropic = ScriptedTransport([streamed(*ANSWER)])
    said = [
        await program(MockProvider().queue_events(TextDelta("Hel"), TextDelta("lo"))),
        await program(OpenAIProvider("http://h/v1", transport=openai)),
        await program(AnthropicProvider("http://h", transport=anthropic)),
    ]
    assert said == [["Hel", "lo"]] * 3
    assert openai.requests[0].path == "/v1/chat/completions"
    assert anthropic.requests[0].path == "/v1/messages"
