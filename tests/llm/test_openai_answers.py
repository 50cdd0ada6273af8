"""Answers over a real socket: whatever the wire does, each is understood or refused with its reason."""

import asyncio
from typing import Any

import msgspec
import pytest

from dialoom.llm import (
    ChatOptions,
    ChatResponse,
    Message,
    OpenAIProvider,
    Origin,
    ReasoningDelta,
    ReasoningPart,
    ResponseCompleted,
    ResponseStarted,
    TextDelta,
    TextPart,
    ToolCall,
    Usage,
    UsageUpdate,
    Warned,
    WireProfile,
    chat,
)
from dialoom.testing import ManualClock
from dialoom.testing.wire import Hold, WireReply, WireServer
from tests.llm.served import (
    DONE,
    HELLO,
    KEY,
    SAID,
    SOON,
    ask,
    chunk,
    failure,
    read_all,
    served,
    sse,
    streamed,
)


@pytest.mark.promise("llm-003", "llm-019", "llm-020", "llm-023")
async def test_an_answer_streams_as_typed_events_and_ends_whole() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    pieces = (
        chunk({"role": "assistant", "reasoning": "hm"}),
        *SAID[:3],
        sse({"choices": [], "usage": usage}),
        DONE,
    )
    options = ChatOptions(model="demo", extra_headers={"X-Team": "a"})
    async with served(streamed(*pieces)) as (server, provider), provider.stream(HELLO, options) as stream:
        events = await read_all(stream)
    counted = Usage(input_tokens=9, output_tokens=4, cache_read_tokens=5, reasoning_tokens=2)
    whole = ChatResponse(
        message=Message(
            role="assistant",
            parts=(ReasoningPart("hm"), TextPart("Hello")),
            origin=Origin("openai", "demo"),
            usage=counted,
        ),
        finish_reason="stop",
        raw_finish_reason="stop",
        usage=counted,
        model="demo",
        response_id="cc-1",
    )
    assert events == [
        ResponseStarted(model="demo", response_id="cc-1"),
        ReasoningDelta("hm"),
        TextDelta("Hel"),
        TextDelta("lo"),
        UsageUpdate(counted),
        ResponseCompleted(whole),
    ]
    assert stream.response == whole
    (sent,) = server.requests
    assert (sent.method, sent.path) == ("POST", "/v1/chat/completions")
    assert (sent.headers["authorization"], sent.headers["x-team"]) == (f"Bearer {KEY}", "a")
    assert sent.json()["model"] == "demo"


@pytest.mark.promise("llm-021")
async def test_a_server_that_cannot_stream_answers_with_its_words_in_one_piece() -> None:
    whole = {"choices": [{"message": {"content": "Hello there"}, "finish_reason": "stop"}]}
    reply = WireReply(body=(msgspec.json.encode(whole),))
    quiet = WireProfile(streaming=False)
    async with served(reply, profile=quiet) as (server, provider), provider.stream(HELLO) as stream:
        events = await read_all(stream)
    assert events == [ResponseStarted(), TextDelta("Hello there"), ResponseCompleted(stream.response)]
    assert server.requests[0].json()["stream"] is False


@pytest.mark.promise("llm-024", "llm-025")
async def test_arguments_that_are_no_json_leave_the_rest_of_the_answer_as_it_is() -> None:
    def called(at: int, call_id: str, arguments: str) -> bytes:
        function = {"name": "look", "arguments": arguments}
        return chunk({"tool_calls": [{"index": at, "id": call_id, "function": function}]})

    pieces = (SAID[0], called(0, "a", "{city: Rome}"), called(1, "b", '{"city":"Bern"}'), DONE)
    answer = await ask(streamed(*pieces))
    assert answer.text == "Hel"
    assert answer.tool_calls == (
        ToolCall(id="a", name="look", raw="{city: Rome}", problem="invalid_json"),
        ToolCall(id="b", name="look", arguments={"city": "Bern"}, raw='{"city":"Bern"}'),
    )


async def test_two_questions_share_one_connection() -> None:
    async with WireServer([streamed(*SAID)] * 2) as server, OpenAIProvider(f"{server.url}/v1") as provider:
        for _ in range(2):
            assert (await chat(provider, HELLO)).text == "Hello"
        assert not server.client_left.is_set()
        assert "authorization" not in server.requests[0].headers


async def test_an_answer_that_was_whole_needs_no_proper_end() -> None:
    for end in ("cut", "reset"):
        hold = Hold()
        hold.opened.set()
        answer = await ask(streamed(*SAID[:3], hold, end=end))
        assert (answer.text, answer.finish_reason) == ("Hello", "stop")


async def test_token_counts_that_never_come_are_not_waited_for_long() -> None:
    clock, hold = ManualClock(), Hold()
    async with served(streamed(*SAID[:3], hold), clock=clock) as (_, provider), asyncio.timeout(SOON):
        task = asyncio.create_task(chat(provider, HELLO))
        await hold.reached.wait()
        while not task.done():
            await clock.advance(1)
    assert task.result().text == "Hello"


async def test_a_last_event_without_its_blank_line_counts_when_it_is_whole() -> None:
    assert (await ask(streamed(SAID[0], SAID[1], b"data: [DONE]", framing="close"))).text == "Hello"
    assert (await ask(streamed(SAID[0], SAID[1], SAID[2].rstrip(), framing="close"))).finish_reason == "stop"
    error = await failure(streamed(SAID[0], SAID[1][:-20], framing="close"))
    assert (error.kind, error.partial and error.partial.text) == ("incomplete_stream", "Hel")


@pytest.mark.parametrize(
    ("reason", "ours", "warned"),
    [
        ("length", "length", ()),
        ("MAX_TOKENS", "length", ()),
        ("content_filter", "content_filter", ()),
        ("eos", "stop", ()),
        ("weariness", "stop", ("finish_unknown",)),
        (None, "stop", ("finish_inferred",)),
    ],
)
async def test_the_servers_reason_becomes_one_of_ours(
    reason: str | None, ours: str, warned: tuple[str, ...]
) -> None:
    answer = await ask(streamed(SAID[0], *([chunk(finish=reason)] if reason else []), DONE))
    assert (answer.finish_reason, answer.raw_finish_reason, answer.warnings) == (ours, reason, warned)


async def test_a_warning_is_an_event_before_the_end() -> None:
    async with served(streamed(SAID[0], DONE)) as (_, provider), provider.stream(HELLO) as stream:
        events = await read_all(stream)
    said = "the server never said why the answer ended; taken as finished"
    assert events[-2] == Warned(code="finish_inferred", message=said)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("error", "server_error"),
        ("insufficient_system_resource", "overloaded"),
        ("abort", "incomplete_stream"),
    ],
)
async def test_a_reason_that_means_failure_is_one(reason: str, kind: str) -> None:
    error = await failure(streamed(SAID[0], chunk(finish=reason), DONE))
    assert (error.kind, error.partial and error.partial.text) == (kind, "Hel")
    assert f"(finish reason '{reason}')" in str(error)


@pytest.mark.parametrize(
    "pieces",
    [
        (DONE,),
        (),
        (b"\n \n",),
        (chunk({"role": "assistant", "content": ""}), DONE),
        (b'{"id":"x","choices":[]}',),
    ],
)
async def test_no_answer_at_all_is_an_error_worth_repeating(pieces: tuple[bytes, ...]) -> None:
    error = await failure(streamed(*pieces))
    assert (error.kind, error.retryable, error.partial) == ("empty_response", True, None)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html><title>Welcome</title></html>", "an HTML page (Welcome)"),
        (b'{"choices":', "sent what is no answer"),
        (b'{"hello":1}', "JSON that is no answer"),
        (b"[1]", "sent what is no answer"),
        (SAID[0] + b"data: {not json}\n\n", "sent what is no answer"),
        (SAID[0] + b'data: {"choices":7}\n\n', "sent what is no answer"),
        (SAID[0] + b'data: {"choices":"\\ud83d', "sent what is no answer"),
        (SAID[0] + b'data: {"choices":"\\ud83d"}\n\n', "sent what is no answer"),
        (SAID[0] + b'data: {"choices":"\\ud83d}\n\n', "sent what is no answer"),
        (SAID[0] + b'data: {"x":' + b"[" * 100_000 + b"\n\n", "sent what is no answer"),
    ],
)  # fmt: skip
async def test_what_is_no_answer_is_an_error_of_one_line(body: bytes, said: str) -> None:
    error = await failure(WireReply(body=(body,)))
    if body.endswith(b"\\ud83d"):
        assert error.kind == "incomplete_stream"
        return
    assert (error.kind, error.retryable) == ("invalid_response", False)
    assert said in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 500


async def test_a_byte_order_mark_before_json_and_a_list_of_parts_are_understood() -> None:
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "Yes"},
        "odd",
    ]
    message = {"role": "assistant", "content": content}
    body = msgspec.json.encode({"id": "x", "choices": [{"message": message, "finish_reason": "stop"}]})
    answer = await ask(WireReply(body=(b"\xef\xbb\xbf", b" ", body)), profile=WireProfile(streaming=False))
    assert (answer.text, answer.reasoning) == ("Yes", "hm")


async def test_other_choices_and_empty_ones_are_passed_over() -> None:
    other = sse({"choices": [None, {"index": 1, "delta": {"content": "other"}}]})
    usage = {"prompt_tokens": True, "completion_tokens": -1, "prompt_cache_hit_tokens": 3.0}
    moonshot = sse({"choices": [{"index": "0", "delta": {}, "finish_reason": "stop", "usage": usage}]})
    answer = await ask(streamed(SAID[0], other, moonshot, DONE))
    assert (answer.text, answer.usage) == ("Hel", Usage(cache_read_tokens=3))


async def test_a_character_escaped_in_two_chunks_is_joined_and_half_a_one_is_marked() -> None:
    halves = (
        b'data: {"id":"\\ud83d","model":"m\\ud83d","choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"\\ude00","reasoning":"\\ud83d"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"\\ud83d"},"finish_reason":"stop"}]}\n\n',
    )
    answer = await ask(streamed(*halves, DONE))
    assert (answer.text, answer.reasoning) == ("a😀\ufffd", "\ufffd")
    assert (answer.model, answer.response_id) == ("m\ufffd", "\ufffd")
    tagged = await ask(streamed(*halves, DONE), profile=WireProfile(think_tags=("<t>", "</t>")))
    assert tagged.text == "a😀\ufffd"


async def test_calls_may_come_as_objects_with_numbers_for_ids_and_a_null_between() -> None:
    calls = [
        None,
        {"id": 7, "function": {"name": "f", "arguments": {"x": "é"}}},
        {"index": "0"},
        {"function": None},
    ]
    answer = await ask(streamed(chunk({"tool_calls": calls}), chunk(finish="tool_calls"), DONE))
    (call,) = answer.tool_calls
    assert call == ToolCall(id="7", name="f", arguments={"x": "é"}, raw='{"x":"é"}')


async def test_an_answer_cut_within_a_call_keeps_the_call_and_forbids_it() -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": '{"x":'}}
    error = await failure(streamed(chunk({"content": "Wait"}), chunk({"tool_calls": [call]})))
    assert error.partial is not None
    assert error.partial.text == "Wait"
    assert error.partial.tool_calls == (ToolCall(id="c1", name="f", raw='{"x":', problem="truncated"),)


@pytest.mark.parametrize("end", ["cut", "reset"])
async def test_a_lost_connection_in_an_answer_is_an_incomplete_stream(end: Any) -> None:
    hold = Hold()
    hold.opened.set()
    error = await failure(streamed(SAID[0], hold, end=end))
    assert (error.kind, error.retryable, error.partial and error.partial.text) == (
        "incomplete_stream",
        True,
        "Hel",
    )


async def test_a_lost_connection_before_the_answer_is_a_connection_error() -> None:
    error = await failure(streamed(end="cut"))
    assert (error.kind, error.retryable, error.partial) == ("connection", True, None)


@pytest.mark.parametrize(
    ("event", "kind", "said"),
    [
        (b"event: error\ndata: out of luck\n\n", "server_error", "out of luck"),
        (
            b'event: error\ndata: {"error":{"message":"full","type":"overloaded_error"}}\n\n',
            "overloaded",
            "full",
        ),
        (sse({"error": {"message": "too much", "code": 429}}), "rate_limit", "too much"),
        (
            sse({"error": {"code": 400, "message": "m", "type": "exceed_context_size_error"}}),
            "context_window",
            "m",
        ),
        (sse({"error": {"metadata": 1}}), "server_error", "without a word"),
    ],
)
async def test_an_error_within_the_stream_is_sorted_like_any_other(
    event: bytes, kind: str, said: str
) -> None:
    error = await failure(streamed(SAID[0], event))
    assert (error.kind, error.partial and error.partial.text) == (kind, "Hel")
    assert f"broke off its answer: {said}" in str(error)


async def test_an_empty_error_field_is_no_error() -> None:
    assert (await ask(streamed(sse({"error": None}), sse({"error": {}}), *SAID))).text == "Hello"
