"""Ollama's own wire: a context window of the caller's size, and lines read however they are cut."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.llm import (
    ChatOptions,
    ChatResponse,
    Message,
    ProviderError,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolSpec,
    Usage,
    WireProfile,
    assistant,
    chat,
    system,
    tool_result,
    user,
)
from dialoom.llm.ollama import OllamaProvider
from dialoom.llm.ollama.lines import JsonLines
from dialoom.llm.ollama.request import ollama_body
from dialoom.llm.profile import DEFAULT_PROFILE
from dialoom.llm.retry import ONCE
from dialoom.net import EventTooLargeError, Httpx2Transport
from dialoom.net.sse import MAX_LINE_BYTES
from dialoom.testing.wire import WireReply, WireServer, split_bytes
from tests.llm.recorded_replies import recorded_replies

ASKED = [user("Say hi.")]
CALL = ToolCall(id="c1", name="look", arguments={"x": 1}, raw='{"x":1}')
TOOL = ToolSpec(name="look", description="Look.")


def line(message: dict[str, Any] | None = None, **fields: Any) -> bytes:
    return msgspec.json.encode({"model": "m", "message": message or {}, "done": False, **fields}) + b"\n"


def said(text: str) -> bytes:
    return line({"role": "assistant", "content": text})


def end(reason: str = "stop", **fields: Any) -> bytes:
    return line({"role": "assistant", "content": ""}, done=True, done_reason=reason, **fields)


def sent(*messages: Message, num_ctx: int | None = None, **options: Any) -> Any:
    body = ollama_body(messages, ChatOptions(**options), DEFAULT_PROFILE, num_ctx=num_ctx)
    return msgspec.json.decode(body)


async def ask(*pieces: bytes, messages: list[Message] = ASKED, **reply: Any) -> ChatResponse:
    async with (
        WireServer([WireReply(body=pieces, **reply)]) as server,
        OllamaProvider(server.url, num_ctx=2048) as llm,
    ):
        answer = await chat(llm, messages, ChatOptions(model="m", retry=ONCE))
        assert server.requests[0].path == "/api/chat"
        return answer


def test_a_conversation_is_sent_with_its_window() -> None:
    history = [
        system("Be brief."),
        *ASKED,
        assistant("Look:", calls=(CALL,)),
        tool_result("c1", "done\ud83d", name="look"),
        user("And?"),
    ]
    assert sent(*history, num_ctx=8192, model="m") == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Say hi."},
            {
                "role": "assistant",
                "content": "Look:",
                "tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": {"x": 1}}}],
            },
            {"role": "tool", "content": "done\ufffd", "tool_name": "look", "tool_call_id": "c1"},
            {"role": "user", "content": "And?"},
        ],
        "stream": True,
        "options": {"num_ctx": 8192},
    }


def test_every_option_of_this_wire_has_its_field() -> None:
    schema = {"type": "object"}
    body = sent(
        *ASKED,
        max_tokens=5,
        temperature=0.0,
        top_p=0.9,
        seed=3,
        stop=("x",),
        tools=(TOOL,),
        response_schema=schema,
        extra_body={"keep_alive": "5m", "options": {"num_gpu": 0, "seed": 4}},
    )
    parameters = {"type": "object", "properties": {}}
    assert {name: body[name] for name in body if name != "messages"} == {
        "stream": True,
        "format": schema,
        "tools": [
            {
                "type": "function",
                "function": {"name": "look", "description": "Look.", "parameters": parameters},
            }
        ],
        "options": {
            "num_predict": 5,
            "temperature": 0.0,
            "top_p": 0.9,
            "seed": 4,
            "stop": ["x"],
            "num_gpu": 0,
        },
        "keep_alive": "5m",
    }
    assert "tools" not in sent(*ASKED, tools=(TOOL,), tool_choice="none")
    assert "options" not in sent(*ASKED)
    whole = ollama_body(ASKED, ChatOptions(), WireProfile(streaming=False), num_ctx=None)
    assert msgspec.json.decode(whole)["stream"] is False
    with pytest.raises(UsageError, match="the request cannot be written as JSON"):
        sent(extra_body={"x": object()})


async def test_what_a_server_sent_is_understood_however_it_is_cut() -> None:
    for reply in recorded_replies("aimock_ollama_chat_stream"):
        async with WireServer([reply]) as server, OllamaProvider(f"{server.url}/v1/") as llm:
            answer = await chat(llm, ASKED, ChatOptions(model="llama3.2"))
        assert answer.text == "Hello from the mock server, dear tester."
        assert (answer.model, answer.finish_reason, answer.raw_finish_reason) == ("llama3.2", "stop", "stop")


async def test_thoughts_words_calls_and_counts_are_told_apart() -> None:
    called = {"function": {"index": 0, "name": "look", "arguments": {"x": 1}}}
    answer = await ask(
        line({"thinking": "hm"}),
        said("Let me"),
        line({"tool_calls": [called, {"id": "b", "function": {"name": "wait", "arguments": "{}"}}]}),
        line({"tool_calls": [called]}),
        end(prompt_eval_count=9, eval_count=4) + said("after the end nothing counts"),
    )
    assert (answer.reasoning, answer.text, answer.finish_reason) == ("hm", "Let me", "tool_calls")
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [
        ("look", {"x": 1}),
        ("wait", {}),
        ("look", {"x": 1}),
    ]
    assert len({call.id for call in answer.tool_calls}) == 3
    assert answer.usage == Usage(input_tokens=9, output_tokens=4)


async def test_an_answer_in_one_piece_is_an_answer() -> None:
    answer = await ask(line({"content": "Hi"}, done=True, done_reason="length").rstrip(b"\n"))
    assert (answer.text, answer.finish_reason) == ("Hi", "length")


async def test_a_prompt_that_the_server_cut_is_warned_about() -> None:
    before = msgspec.structs.replace(assistant("ok"), usage=Usage(input_tokens=4000))
    history = [user("word " * 20_000), before, *ASKED]
    answer = await ask(said("Hi"), end(prompt_eval_count=2000, eval_count=1), messages=history)
    assert answer.warnings == ("prompt_truncated_by_server",)


@pytest.mark.parametrize(
    ("pieces", "kind", "partial"),
    [
        ((said("Half"),), "incomplete_stream", "Half"),
        ((said("Half"), b'{"model": "m", "mess'), "incomplete_stream", "Half"),
        ((said("Half"), b'{"error":"model runner stopped"}\n'), "server_error", "Half"),
        ((b"<html><title>Proxy</title></html>",), "invalid_response", ""),
        ((b"[1]\n",), "invalid_response", ""),
        ((b"",), "empty_response", ""),
    ],
)
async def test_a_failure_has_its_kind(pieces: tuple[bytes, ...], kind: str, partial: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await ask(*(piece for piece in pieces if piece))
    assert caught.value.kind == kind
    assert (caught.value.partial.text if caught.value.partial else "") == partial


async def test_a_model_that_is_not_there_is_to_be_pulled() -> None:
    with pytest.raises(ProviderError, match="model 'm' not found; pull the model, or check the base url"):
        await ask(b'{"error":"model \'m\' not found"}', status=404)


async def test_the_models_of_a_server_are_listed() -> None:
    listing = WireReply(body=(b'{"models":[{"name":"llama3.2:3b"},{"name":"nomic-embed-text"}]}',))
    async with Httpx2Transport() as transport, WireServer([listing]) as server:
        llm = OllamaProvider(server.url, transport=transport)
        assert [model.id for model in await llm.models()] == ["llama3.2:3b", "nomic-embed-text"]
        await llm.aclose()
        assert server.requests[0].path == "/api/tags"
        assert repr(llm) == f"OllamaProvider(ollama at {server.url}, num_ctx=None)"
        assert llm.profile == DEFAULT_PROFILE


def test_a_window_without_room_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="num_ctx is 0"):
        OllamaProvider(num_ctx=0)


CHARS = 'ab0"\\{}[]:, \n\u2028你😀'
"""Few characters but telling ones; the tables of all of them take a fresh checkout seconds to make."""
LINES = st.lists(
    st.dictionaries(st.text(CHARS, max_size=3), st.text(CHARS, max_size=5), max_size=2), max_size=5
)


@given(LINES, st.lists(st.integers(0, 200), max_size=6), st.booleans())
def test_lines_are_the_same_however_they_are_cut(lines: list[Any], cuts: list[int], ended: bool) -> None:
    body = b"\n".join(msgspec.json.encode(each) for each in lines) + b"\n" * ended
    reader = JsonLines()
    events = [event for piece in split_bytes(body, cuts) for event in reader.feed(piece)] + reader.finish()
    assert [json.loads(event.data) for event in events] == lines


def test_a_line_without_end_is_refused() -> None:
    reader = JsonLines()
    with pytest.raises(EventTooLargeError):
        reader.feed(b"x" * (MAX_LINE_BYTES + 1))
    assert not JsonLines().streamed


async def test_events_come_as_they_are_said() -> None:
    async with (
        WireServer([WireReply(body=(line({"thinking": "a"}), said("b"), end()))]) as server,
        OllamaProvider(server.url) as llm,
        llm.stream(ASKED) as stream,
    ):
        events = [event async for event in stream]
    assert events[1:3] == [ReasoningDelta("a"), TextDelta("b")]
