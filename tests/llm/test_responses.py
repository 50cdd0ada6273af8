"""The Responses wire: what is sent, and what is read however little a server says."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.llm import (
    Assembly,
    ChatOptions,
    ChatResponse,
    Message,
    OpaquePart,
    OpenAIProvider,
    Origin,
    ProviderError,
    ReasoningPart,
    RefusalPart,
    ResponseStarted,
    TextDelta,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolSpec,
    Usage,
    WireProfile,
    assistant,
    chat,
    system,
    tool_result,
    user,
)
from dialoom.llm.openai.responses_decoder import ResponsesDecoder
from dialoom.llm.openai.responses_request import responses_body
from dialoom.llm.retry import ONCE
from dialoom.llm.wire.broken import AnswerFailedError, MalformedChunkError
from dialoom.llm.wire.draft import AnswerDraft
from dialoom.llm.wire.prompt_size import PromptSize
from dialoom.net import SseEvent
from dialoom.testing.wire import WireReply, WireServer
from tests.llm.recorded_replies import recorded_replies
from tests.llm.served import streamed

RESPONSES = WireProfile(api="responses")
ASKED = [user("What is 7*8?")]
CALL = ToolCall(id="c1", name="look", arguments={"x": 1}, raw='{"x":1}')


def sent(*messages: Message, profile: WireProfile = RESPONSES, **options: Any) -> Any:
    body = responses_body(messages, ChatOptions(**options), profile, provider="openai")
    return msgspec.json.decode(body)


async def ask(*replies: WireReply) -> ChatResponse:
    async with (
        WireServer(replies) as server,
        OpenAIProvider(f"{server.url}/v1", "sk-1", profile=RESPONSES) as llm,
    ):
        answer = await chat(llm, ASKED, ChatOptions(retry=ONCE))
        assert server.requests[0].path == "/v1/responses"
        return answer


def told(kind: str, **fields: Any) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode({"type": f"response.{kind}", **fields})


def ended(kind: str = "completed", **fields: Any) -> bytes:
    return told(kind, response={"id": "r1", "model": "m", "status": kind, **fields})


BEGUN = told("created", response={"id": "r1", "model": "m"})


def test_a_conversation_is_sent_as_items() -> None:
    opaque = OpaquePart("openai", '{"type":"reasoning","id":"rs","encrypted_content":"x"}')
    foreign = OpaquePart("anthropic", '{"type":"thinking"}')
    said = Message(
        role="assistant",
        parts=(ReasoningPart("hm"), opaque, foreign, TextPart("Look: "), TextPart(""), ToolCallPart(CALL)),
    )
    refused = Message(role="assistant", parts=(RefusalPart("No."),))
    assert sent(system("Be brief."), *ASKED, said, tool_result("c1", "56\ud83d"), refused) == {
        "input": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is 7*8?"},
            {"type": "reasoning", "id": "rs", "encrypted_content": "x"},
            {"role": "assistant", "content": "Look: "},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"x":1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "56\ufffd"},
            {"role": "assistant", "content": "No."},
        ],
        "stream": True,
        "store": False,
    }


def test_every_option_of_this_wire_has_its_field() -> None:
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    profile = WireProfile(
        api="responses", streaming=False, replay_reasoning="always", system_role="developer"
    )
    assert sent(
        system("S"),
        profile=profile,
        model="m",
        max_tokens=5,
        temperature=0.5,
        top_p=0.9,
        stop=("x",),
        seed=3,
        tools=(ToolSpec(name="look", description="Look."),),
        tool_choice="required",
        parallel_tool_calls=False,
        response_schema=schema,
        extra_body={"user": "u"},
    ) == {
        "model": "m",
        "input": [{"role": "developer", "content": "S"}],
        "stream": False,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 5,
        "temperature": 0.5,
        "top_p": 0.9,
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}},
        "tools": [
            {
                "type": "function",
                "name": "look",
                "description": "Look.",
                "parameters": {"type": "object", "properties": {}},
            }
        ],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "user": "u",
    }
    with pytest.raises(UsageError, match="the request cannot be written as JSON"):
        sent(extra_body={"x": object()})


RECORDED = {
    "aimock_responses_stream": ("Hello from the mock server, dear tester.", "stop", []),
    "llamacpp_responses": (
        "Hello there! Welcome to our creative AI platform. What can I do for you",
        "stop",
        [],
    ),
    "llamacpp_responses_stream": ("👀🌟👍🌟🌻", "stop", []),
    "llamacpp_responses_tools_stream": ("", "tool_calls", [{"expression": "7*8"}]),
}


@pytest.mark.parametrize("name", RECORDED)
async def test_what_real_servers_send_is_understood_however_it_is_cut(name: str) -> None:
    answers = [await ask(reply) for reply in recorded_replies(name)]
    assert all(answer == answers[0] for answer in answers)
    answer = answers[0]
    text, reason, arguments = RECORDED[name]
    assert (answer.text, answer.finish_reason) == (text, reason)
    assert [call.arguments for call in answer.tool_calls] == arguments
    assert answer.usage.output_tokens is not None
    assert answer.response_id


async def test_a_start_that_is_said_twice_is_one_start() -> None:
    (*_, reply) = recorded_replies("llamacpp_responses_stream")
    async with (
        WireServer([reply]) as server,
        OpenAIProvider(f"{server.url}/v1", profile=RESPONSES) as llm,
        llm.stream(ASKED) as stream,
    ):
        events = [event async for event in stream]
    assert sum(isinstance(event, ResponseStarted) for event in events) == 1
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "👀🌟👍🌟🌻"


async def test_what_was_streamed_is_not_said_again_and_what_was_not_is_said_once() -> None:
    spoken = {"type": "message", "id": "m1", "content": [{"type": "output_text", "text": "Hello"}]}
    silent = {"type": "message", "id": "m2", "content": [{"type": "output_text", "text": " there"}]}
    refused = {"type": "message", "id": "m3", "content": [{"type": "refusal", "refusal": "No."}]}
    call = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "look", "arguments": '{"x":1}'}
    answer = await ask(
        streamed(
            BEGUN,
            told("output_text.delta", item_id="m1", delta="Hel"),
            told("output_text.delta", item_id="m1", delta="lo"),
            told("output_item.done", item=spoken),
            told("output_item.done", item=silent),
            told("output_item.done", item=call),
            ended(output=[spoken, silent, call, refused]),
        )
    )
    assert (answer.text, answer.message.refusal) == ("Hello there", "No.")
    assert answer.tool_calls == (CALL,)
    assert answer.finish_reason == "tool_calls"


async def test_calls_without_ids_or_indexes_of_their_items_stay_apart() -> None:
    opened = [
        told(
            "output_item.added",
            output_index=place,
            item={"type": "function_call", "id": f"f{place}", "call_id": f"c{place}", "name": "look"},
        )
        for place in (0, 1)
    ]
    answer = await ask(
        streamed(
            BEGUN,
            *opened,
            told("function_call_arguments.delta", item_id="f1", delta="{"),
            told("function_call_arguments.delta", output_index=0, delta='{"x":'),
            told("function_call_arguments.delta", item_id="f0", delta="1}"),
            told("function_call_arguments.delta", delta="}"),
            told("function_call_arguments.done", item_id="f0", arguments='{"x":1}'),
            ended(),
        )
    )
    assert [(call.id, call.arguments) for call in answer.tool_calls] == [("c0", {"x": 1}), ("c1", {})]


async def test_thoughts_are_shown_and_the_sealed_ones_kept_to_go_back() -> None:
    sealed = {"type": "reasoning", "id": "rs1", "summary": [], "encrypted_content": "gAAA"}
    plain = {"type": "reasoning", "id": "rs2", "summary": [{"type": "summary_text", "text": "Late."}]}
    search = {"type": "web_search_call", "id": "ws1", "status": "completed"}
    answer = await ask(
        streamed(
            BEGUN,
            told("reasoning_summary_part.added", item_id="rs1", summary_index=0),
            told("reasoning_summary_text.delta", item_id="rs1", delta="First."),
            told("reasoning_summary_part.added", item_id="rs1", summary_index=1),
            told("reasoning_text.delta", item_id="rs1", delta="Second."),
            told("output_item.done", item=sealed),
            told("output_item.done", item=plain),
            told("output_item.done", item=search),
            told("output_text.delta", item_id="m1", delta="Done."),
            ended(),
        )
    )
    assert answer.reasoning == "First.\n\nSecond.Late."
    kept = [msgspec.json.decode(part.block) for part in answer.message.parts if isinstance(part, OpaquePart)]
    assert kept == [sealed, search]
    again = sent(*ASKED, answer.message, user("Go on."))["input"]
    assert [item for item in again if item.get("type") in {"reasoning", "web_search_call"}] == [
        sealed,
        search,
    ]


@pytest.mark.parametrize(
    ("end", "reason", "raw"),
    [
        (
            ended("incomplete", incomplete_details={"reason": "max_output_tokens"}),
            "length",
            "max_output_tokens",
        ),
        (
            ended("incomplete", incomplete_details={"reason": "content_filter"}),
            "content_filter",
            "content_filter",
        ),
        (ended(), "stop", "completed"),
        (told("completed", response={"id": "r1"}) + b"data: [DONE]\n\n", "stop", "completed"),
    ],
)
async def test_the_end_has_its_reason(end: bytes, reason: str, raw: str) -> None:
    answer = await ask(streamed(BEGUN, told("output_text.delta", delta="Hi"), end))
    assert (answer.text, answer.finish_reason, answer.raw_finish_reason) == ("Hi", reason, raw)


async def test_a_refusal_is_told_apart_and_counts_are_read() -> None:
    usage = {
        "input_tokens": 9,
        "output_tokens": 5,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 3},
    }
    answer = await ask(streamed(BEGUN, told("refusal.delta", item_id="m1", delta="No."), ended(usage=usage)))
    assert (answer.message.refusal, answer.finish_reason) == ("No.", "content_filter")
    assert answer.usage == Usage(input_tokens=9, output_tokens=5, cache_read_tokens=4, reasoning_tokens=3)


async def test_a_character_cut_in_two_is_joined_and_one_left_over_is_replaced() -> None:
    halves = (
        rb'data: {"type":"response.output_text.delta","delta":"a\ud83d"}' + b"\n\n",
        rb'data: {"type":"response.output_text.delta","delta":"\ude00b\ud83d"}' + b"\n\n",
    )
    answer = await ask(streamed(BEGUN, *halves, ended()))
    assert answer.text == "a😀b\ufffd"


@pytest.mark.parametrize(
    ("pieces", "kind", "partial"),
    [
        ((BEGUN, told("output_text.delta", delta="Half")), "incomplete_stream", "Half"),
        (
            (BEGUN, ended("failed", error={"code": "rate_limit_exceeded", "message": "slow"})),
            "rate_limit",
            "",
        ),
        ((BEGUN, ended("failed")), "server_error", ""),
        ((b'data: {"type":"error","code":"server_error","message":"died"}\n\n',), "server_error", ""),
        ((b'data: {"error":{"message":"died"}}\n\n',), "server_error", ""),
        ((b"data: [1]\n\n",), "invalid_response", ""),
        ((b"data: {nonsense\n\n",), "invalid_response", ""),
        ((b'{"object":"other"}',), "invalid_response", ""),
    ],
)
async def test_a_failure_has_its_kind(pieces: tuple[bytes, ...], kind: str, partial: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await ask(streamed(*pieces))
    assert caught.value.kind == kind
    assert (caught.value.partial.text if caught.value.partial else "") == partial


async def test_a_call_cut_at_the_limit_must_not_be_run() -> None:
    call = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "look"}
    answer = await ask(
        streamed(
            BEGUN,
            told("output_item.added", item=call),
            told("function_call_arguments.delta", item_id="f1", delta='{"x'),
            ended("incomplete", incomplete_details={"reason": "max_output_tokens"}),
        )
    )
    assert (answer.tool_calls[0].problem, answer.finish_reason) == ("truncated", "length")


CHARS = 'ab0"\\{}[]:, \n\u2028你😀'
"""Few characters but telling ones; the tables of all of them take a fresh checkout seconds to make."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(CHARS, max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "item", "delta", "response", "output", "id", "content", "text", "item_id"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
KINDS = st.sampled_from(
    ["created", "output_text.delta", "output_item.added", "output_item.done", "completed", "other"]
)


@given(
    st.lists(
        st.tuples(KINDS, st.dictionaries(st.sampled_from(["item", "delta", "response", "item_id"]), JSON))
    )
)
def test_no_event_breaks_the_decoder(said: list[tuple[str, dict[str, Any]]]) -> None:
    prompt = PromptSize.of(b"", [])
    draft = AnswerDraft(Assembly(), Origin("openai", "m"), prompt=prompt, new_id=lambda: "1")
    decoder = ResponsesDecoder(draft)
    for kind, fields in said:
        data = msgspec.json.encode({"type": f"response.{kind}", **fields}).decode()
        try:
            decoder.feed(SseEvent("message", data, "", None))
        except (AnswerFailedError, MalformedChunkError):
            return
    decoder.partial()


def test_plain_assistant_words_go_back_as_they_were() -> None:
    assert sent(*ASKED, assistant("56"))["input"][1] == {"role": "assistant", "content": "56"}
