"""What a server of the Messages wire says is read whole, in order, and never guessed at silently."""

from typing import Any

import pytest

from dialoom.llm import (
    ChatOptions,
    ChatResponse,
    Message,
    OpaquePart,
    Origin,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningPart,
    ResponseCompleted,
    ResponseStarted,
    TextDelta,
    TextPart,
    ToolCall,
    ToolCallDelta,
    ToolCallPart,
    ToolCallReady,
    ToolCallStarted,
    Usage,
    UsageUpdate,
    assistant,
    chat,
    user,
)
from tests.llm.anthropic.served import (
    ask,
    begin,
    block,
    call,
    end,
    event,
    failure,
    served,
    streamed,
    whole,
    words,
)
from tests.llm.served import HELLO, read_all

SEALED = '{"type":"redacted_thinking","data":"T1BBUVVF" , "z":1.50}'
THOUGHT = block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "need "},
    {"type": "thinking_delta", "thinking": "weather"},
    {"type": "signature_delta", "signature": "c2ln"},
    {"type": "signature_delta", "signature": "LTE="},
)


def arguments(piece: str) -> dict[str, Any]:
    return {"type": "input_json_delta", "partial_json": piece}


@pytest.mark.promise("llm-013", "llm-009")
async def test_an_answer_streams_as_events_and_ends_with_the_whole() -> None:
    reply = streamed(
        begin(),
        THOUGHT,
        words(1, "Let me ", "look."),
        call(2, "lookup", '{"city":', '"Rome"}'),
        end("tool_use"),
    )
    async with served(reply) as (_, provider), provider.stream(HELLO) as stream:
        events = await read_all(stream)
    rome = ToolCall(id="toolu_1", name="lookup", arguments={"city": "Rome"}, raw='{"city":"Rome"}')
    usage = Usage(input_tokens=12, output_tokens=9)
    assert events == [
        ResponseStarted(model="demo-claude", response_id="msg_1"),
        UsageUpdate(Usage(input_tokens=12, output_tokens=1)),
        ReasoningDelta("need "),
        ReasoningDelta("weather"),
        ReasoningEnded("c2lnLTE="),
        TextDelta("Let me "),
        TextDelta("look."),
        ToolCallStarted(index=0, id="toolu_1", name="lookup"),
        ToolCallDelta(index=0, arguments='{"city":'),
        ToolCallDelta(index=0, arguments='"Rome"}'),
        UsageUpdate(usage),
        ToolCallReady(index=0, call=rome),
        ResponseCompleted(stream.response),
    ]
    parts = (ReasoningPart("need weather", "c2lnLTE="), TextPart("Let me look."), ToolCallPart(rome))
    assert stream.response == ChatResponse(
        message=Message(
            role="assistant", parts=parts, origin=Origin("anthropic", "demo-claude"), usage=usage
        ),
        finish_reason="tool_calls",
        raw_finish_reason="tool_use",
        usage=usage,
        model="demo-claude",
        response_id="msg_1",
    )


@pytest.mark.promise("llm-011")
async def test_several_calls_of_one_answer_are_told_apart() -> None:
    answer = await ask(
        streamed(begin(), call(0, "a", '{"x":1}'), call(1, "b", id="toolu_2"), end("tool_use"))
    )
    assert [(each.id, each.name, each.arguments) for each in answer.tool_calls] == [
        ("toolu_1", "a", {"x": 1}),
        ("toolu_2", "b", {}),
    ]


async def test_an_id_the_conversation_knows_already_is_replaced_and_kept_beside() -> None:
    earlier = assistant("", calls=(ToolCall(id="toolu_1", name="a", arguments={}),))
    async with served(streamed(begin(), call(0, "a"), end("tool_use"))) as (_, provider):
        (again,) = (await chat(provider, [user("Hi"), earlier])).tool_calls
    assert again.id != "toolu_1"
    assert again.provider_id == "toolu_1"


async def test_a_sealed_thought_is_kept_letter_by_letter() -> None:
    start = (
        b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":%b}\n\n'
    )
    reply = streamed(
        begin(), start % SEALED.encode(), event("content_block_stop", index=0), words(1, "ok"), end()
    )
    answer = await ask(reply, id="desk")
    assert answer.message.parts == (OpaquePart("desk", SEALED), TextPart("ok"))


async def test_a_tool_the_server_runs_itself_is_no_call_for_us() -> None:
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
    reply = streamed(
        begin(),
        block(0, search, arguments('{"q":'), arguments('"x"}')),
        block(1, found),
        words(2, "Found it."),
        end("pause_turn"),
    )
    answer = await ask(reply)
    assert (answer.finish_reason, answer.raw_finish_reason, answer.tool_calls) == ("pause", "pause_turn", ())
    assert answer.message.parts == (
        OpaquePart(
            "anthropic", '{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"q":"x"}}'
        ),
        OpaquePart("anthropic", '{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]}'),
        TextPart("Found it."),
    )


async def test_what_later_versions_add_is_passed_over() -> None:
    reply = streamed(
        begin(),
        event("message_hint", x=1),
        event("ping"),
        b"data: {}\n\n",
        block(0, {"type": "mystery", "payload": 1}, {"type": "mystery_delta", "text": "not words"}),
        block(1, {"type": "text", "text": "o"}, {"type": "citations_delta", "citation": {}}),
        words(1, "k"),
        block(2, {"type": "server_tool_use"}, arguments('{"cut')),
        b'data: {"type":"content_block_start","index":3,"content_block":7}\n\n',
        event("content_block_stop", index=3),
        event("content_block_delta", index=9, delta=arguments("{}")),
        event("content_block_stop", index=9),
        end(),
    )
    assert (await ask(reply)).message.parts == (TextPart("ok"),)


@pytest.mark.promise("llm-016")
@pytest.mark.parametrize(
    ("told", "reason", "warnings"),
    [
        ("end_turn", "stop", ()),
        ("stop_sequence", "stop", ()),
        ("tool_use", "stop", ()),
        ("max_tokens", "length", ()),
        ("model_context_window_exceeded", "length", ()),
        ("refusal", "content_filter", ()),
        ("pause_turn", "pause", ()),
        ("tired", "stop", ("finish_unknown",)),
        (None, "stop", ("finish_inferred",)),
    ],
)
async def test_how_an_answer_ended_is_told_in_our_words(
    told: str | None, reason: str, warnings: tuple[str, ...]
) -> None:
    answer = await ask(streamed(begin(), words(0, "So"), end(told)))
    assert (answer.text, answer.finish_reason, answer.raw_finish_reason) == ("So", reason, told)
    assert answer.warnings == warnings


@pytest.mark.promise("llm-015")
@pytest.mark.parametrize(
    ("first", "last", "usage"),
    [
        (
            {"input_tokens": 7, "output_tokens": 1},
            {"output_tokens": 4},
            Usage(input_tokens=7, output_tokens=4),
        ),
        (
            {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20},
            {"output_tokens": 3, "cache_creation_input_tokens": None},
            Usage(input_tokens=125, output_tokens=3, cache_read_tokens=100, cache_write_tokens=20),
        ),
        ({"input_tokens": 0}, {"input_tokens": 8}, Usage(input_tokens=8)),
        ({"input_tokens": 8}, {"input_tokens": 0}, Usage(input_tokens=8)),
        ({}, {"output_tokens": 2}, Usage(output_tokens=2)),
        (None, {}, Usage()),
        ({"input_tokens": "many", "output_tokens": True}, {"output_tokens": -1}, Usage()),
    ],
)
async def test_the_prompt_is_counted_whole_and_totals_replace_each_other(
    first: Any, last: dict[str, Any], usage: Usage
) -> None:
    ending = event("message_delta", delta={"stop_reason": "end_turn"}, usage=last) + event("message_stop")
    answer = await ask(streamed(begin(usage=first), words(0, "Hi"), ending))
    assert answer.usage == usage


async def test_arguments_cut_by_the_limit_are_never_taken_for_whole() -> None:
    cut = await ask(streamed(begin(), call(0, "save", '{"path":"a","body":"fir'), end("max_tokens")))
    lost = await ask(
        whole([{"type": "tool_use", "id": "c", "name": "save", "input": {"path": "a"}}], "max_tokens")
    )
    for answer in (cut, lost):
        (made,) = answer.tool_calls
        assert (answer.finish_reason, made.arguments, made.problem) == ("length", None, "truncated")


async def test_arguments_may_come_whole_with_the_start_of_a_call() -> None:
    answer = await ask(streamed(begin(), call(0, "save", input={"path": "a"}), end("tool_use")))
    assert answer.tool_calls[0].arguments == {"path": "a"}


async def test_an_answer_that_was_not_asked_to_stream_is_read_the_same() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "toolu_1", "name": "a", "input": {"x": 1}},
    ]
    answer = await ask(whole(content, "tool_use", usage={"input_tokens": 3, "output_tokens": 4}))
    assert answer.message.parts == (
        ReasoningPart("hm", "s"),
        OpaquePart("anthropic", '{"type":"redacted_thinking","data":"x"}'),
        TextPart("Hi"),
        ToolCallPart(ToolCall(id="toolu_1", name="a", arguments={"x": 1}, raw='{"x":1}')),
    )
    assert (answer.finish_reason, answer.usage) == ("tool_calls", Usage(input_tokens=3, output_tokens=4))


async def test_a_thought_without_words_keeps_its_proof() -> None:
    sealed = block(0, {"type": "thinking", "thinking": ""}, {"type": "signature_delta", "signature": "s"})
    open_thought = block(1, {"type": "thinking", "thinking": "aloud"})
    answer = await ask(streamed(begin(), sealed, open_thought, THOUGHT, words(2, "ok"), end()))
    assert answer.message.parts == (
        ReasoningPart("", "s"),
        ReasoningPart("aloud"),
        ReasoningPart("need weather", "c2lnLTE="),
        TextPart("ok"),
    )


async def test_a_server_that_leaves_out_starts_stops_and_types_is_still_understood() -> None:
    delta = b'event: content_block_delta\ndata: {"index":0,"delta":{"text":"Hi"}}\n\n'
    answer = await ask(streamed(delta, end()))
    assert (answer.text, answer.model) == ("Hi", "")
    unstopped = block(0, {"type": "thinking", "thinking": "hm", "signature": "s"}, stop=False)
    never = block(1, {"type": "redacted_thinking", "data": "x"}, stop=False)
    answer = await ask(streamed(begin(), unstopped, never, end()))
    assert answer.message.parts == (
        ReasoningPart("hm", "s"),
        OpaquePart("anthropic", '{"type":"redacted_thinking","data":"x"}'),
    )
    reused = block(0, {"type": "text", "text": "a"}, stop=False) + block(0, {"type": "text", "text": "b"})
    assert (await ask(streamed(begin(), reused, end()))).text == "ab"


async def test_a_character_sent_in_two_halves_is_joined() -> None:
    delta = b'data: {"type":"content_block_delta","index":0,"delta":{%b}}\n\n'
    reply = streamed(
        begin(),
        delta % b'"text":"\\ud83d"',
        delta % b'"text":"\\ude00!"',
        delta % b'"thinking":"\\ud83d"',
        b'data: {"type":"content_block_start","index":2,"content_block":{"type":"x","y":"\\ud83d"}}\n\n',
        event("content_block_stop", index=2),
        end(),
    )
    assert (await ask(reply, id="a")).message.parts == (
        TextPart("😀!"),
        ReasoningPart("\ufffd"),
        OpaquePart("a", '{"type": "x", "y": "\ufffd"}'),
    )
    assert (await ask(streamed(begin(), delta % b'"text":"Hi\\ud83d"', end()))).text == "Hi\ufffd"


async def test_a_server_that_cut_the_prompt_is_warned_about() -> None:
    earlier = Message(role="assistant", parts=(TextPart("x"),), usage=Usage(input_tokens=4000))
    reply = streamed(begin(usage={"input_tokens": 100}), words(0, "Hi"), end())
    async with served(reply) as (_, provider):
        answer = await chat(provider, [user("long " * 4000), earlier, user("and?")], ChatOptions())
    assert answer.warnings == ("prompt_truncated_by_server",)


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (streamed(begin(), event("message_stop")), "empty_response", "the answer is empty"),
        (streamed(event("ping")), "empty_response", "the answer is empty"),
        (streamed(event("message_stop")), "empty_response", "the answer is empty"),
        (streamed(begin(), words(0, "Half")), "incomplete_stream", "ended its answer in the middle"),
        (streamed(begin(), b'data: {"type":\n\n'), "invalid_response", "sent what is no answer"),
        (streamed(b"data: " + b"[" * 5000 + b"\n\n"), "invalid_response", "sent what is no answer"),
        (streamed(b'data: {"x":"\\ud83d"\n\n'), "invalid_response", "sent what is no answer"),
        (whole([1, 2], None), "empty_response", "the answer is empty"),
    ],
)
async def test_what_is_no_whole_answer_is_an_error(reply: Any, kind: str, said: str) -> None:
    error = await failure(reply)
    assert error.kind == kind
    assert said in str(error)
