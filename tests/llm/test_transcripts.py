"""Exchanges recorded from real servers (see transcripts/README.md), replayed whole and in small pieces."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dialoom.llm import (
    AnthropicProvider,
    ChatOptions,
    ChatResponse,
    OpenAIEmbeddings,
    OpenAIProvider,
    ProviderError,
    ReasoningPart,
    TextPart,
    Usage,
    chat,
    user,
)
from dialoom.testing.wire import WireReply, WireServer, split_bytes
from tests.llm.served import ASK_ONCE, HELLO, KEY

FOLDER = Path(__file__).with_name("transcripts")
SDK_TAKES_CUT_ARGUMENTS = "llamacpp_anthropic_tools"
CUTS = (1, 7, 1_000_000)

ANSWERS = {
    "aimock_anthropic_stream": ("stop", 0),
    "aimock_anthropic_thinking_stream": ("stop", 0),
    "aimock_anthropic_tools_stream": ("tool_calls", 2),
    "aimock_chat_reasoning_stream": ("stop", 0),
    "aimock_chat_stream_usage": ("stop", 0),
    "aimock_tools_two_stream": ("tool_calls", 2),
    "llamacpp_anthropic": ("stop", 0),
    "llamacpp_anthropic_stream": ("stop", 0),
    "llamacpp_anthropic_tool_result": ("tool_calls", 1),
    "llamacpp_anthropic_tools": ("length", 1),
    "llamacpp_anthropic_tools_auto_stream": ("tool_calls", 1),
    "llamacpp_anthropic_tools_stream": ("tool_calls", 1),
    "llamacpp_chat": ("stop", 0),
    "llamacpp_chat_stream_length": ("length", 0),
    "llamacpp_chat_stream_usage": ("stop", 0),
    "llamacpp_json_object": ("length", 0),
    "llamacpp_json_schema": ("stop", 0),
    "llamacpp_json_schema_stream": ("stop", 0),
    "llamacpp_logprobs_stream": ("length", 0),
    "llamacpp_tool_result_turn": ("stop", 0),
    "llamacpp_tools_auto": ("tool_calls", 1),
    "llamacpp_tools_auto_stream": ("tool_calls", 1),
    "llamacpp_tools_parallel_stream": ("tool_calls", 1),
    "llamacpp_tools_required": ("tool_calls", 1),
    "llamacpp_tools_required_stream": ("tool_calls", 1),
    "llamacpp_tools_truncated_stream": ("length", 1),
}
FAILURES: dict[str, tuple[str, int | None, float | None]] = {
    "aimock_429": ("rate_limit", 429, 1.0),
    "aimock_anthropic_529": ("overloaded", 529, None),
    "aimock_cut_stream": ("incomplete_stream", None, None),
    "llamacpp_anthropic_err_401": ("auth", 401, None),
    "llamacpp_err_401": ("auth", 401, None),
    "llamacpp_err_404": ("bad_request", 404, None),
    "llamacpp_err_badjson": ("bad_request", 400, None),
    "llamacpp_err_ctx": ("context_window", 400, None),
    "llamacpp_err_nomessages": ("bad_request", 400, None),
    "llamacpp_err_schema": ("bad_request", 400, None),
    "llamacpp_tools_err500_peg_format": ("server_error", 500, None),
    "llamacpp_tools_named_choice_err500": ("server_error", 500, None),
    "llamacpp_tools_stream_midstream_error": ("server_error", None, None),
    "llmock_anthropic_401": ("auth", 401, None),
    "llmock_anthropic_429": ("rate_limit", 429, 1.0),
    "llmock_anthropic_500": ("server_error", 500, None),
    "llmock_anthropic_529": ("overloaded", 529, 1.0),
    "llmock_anthropic_disconnect": ("incomplete_stream", None, None),
    "llmock_anthropic_malformed": ("invalid_response", None, None),
    "llmock_anthropic_truncate": ("incomplete_stream", None, None),
    "llmock_openai_401": ("auth", 401, None),
    "llmock_openai_429": ("rate_limit", 429, 1.0),
    "llmock_openai_500": ("server_error", 500, None),
    "llmock_openai_529": ("overloaded", 529, 1.0),
    "llmock_openai_disconnect": ("incomplete_stream", None, None),
    "llmock_openai_malformed": ("invalid_response", None, None),
    "llmock_openai_truncate": ("incomplete_stream", None, None),
}
LEFT_OUT = re.compile(r"\[([^\[\]]*), \.\.\. 576 numbers \.\.\.\]")
"""Where a vector was shortened for the record."""
OTHERS = {
    "llamacpp_anthropic_count_tokens",
    "llamacpp_chat_stream_rawchunked",
    "llamacpp_completions_stream",
    "llamacpp_embeddings",
    "llamacpp_embeddings_off",
}
"""What is no answer of a model, or kept with its framing; each has a test of its own."""


def asked(name: str) -> Any:
    """The JSON of the recorded request."""
    sent = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").partition("### response\n")[0]
    return json.loads(sent[sent.index("{") :])


def answered(name: str) -> bytes:
    """The recorded response, with all its bytes."""
    return (FOLDER / f"{name}.txt").read_bytes().partition(b"### response\n")[2]


def replies(name: str) -> Iterator[WireReply]:
    """The recorded response, once for each size of its pieces."""
    head, _, body = answered(name).replace(b"\r\n", b"\n").partition(b"\n\n")
    status, *lines = head.decode().split("\n")
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    framing = {"transfer-encoding", "content-length", "connection", "keep-alive"}
    headers = {name: value for name, value in fields.items() if name.lower() not in framing}
    for size in CUTS:
        pieces = split_bytes(body, range(size, len(body), size))
        yield WireReply(status=int(status.split()[1]), headers=headers, body=pieces)


def as_official_sdks_read() -> dict[str, dict[str, Any]]:
    """What `openai` 3.57 and `anthropic` 2.14 made of the same answers, where they were right."""
    return json.loads((FOLDER / "as_official_sdks_read.json").read_text(encoding="utf-8"))


async def outcomes(name: str) -> list[Any]:
    found = []
    made = AnthropicProvider if "anthropic" in name else OpenAIProvider
    for reply in replies(name):
        async with WireServer([reply]) as server, made(server.url, KEY) as provider:
            try:
                found.append(await chat(provider, HELLO, ASK_ONCE))
            except ProviderError as error:
                found.append(error)
    return found


def read(answer: ChatResponse) -> dict[str, Any]:
    return {
        "text": answer.text,
        "reasoning": answer.reasoning,
        "calls": [[call.id, call.name, call.arguments] for call in answer.tool_calls],
        "end": answer.raw_finish_reason,
        "model": answer.model,
        "id": answer.response_id,
        "tokens": [answer.usage.input_tokens, answer.usage.output_tokens],
    }


@pytest.mark.parametrize("name", ANSWERS)
async def test_a_real_answer_is_understood_however_it_is_cut(name: str) -> None:
    answers = await outcomes(name)
    reason, calls = ANSWERS[name]
    assert all(answer == answers[0] for answer in answers)
    answer: ChatResponse = answers[0]
    assert (answer.finish_reason, len(answer.tool_calls)) == (reason, calls)
    assert answer.text or answer.tool_calls
    if name != SDK_TAKES_CUT_ARGUMENTS:
        assert read(answer) == as_official_sdks_read()[name]
    problems = {call.problem for call in answer.tool_calls}
    assert problems == ({"truncated"} if reason == "length" and calls else {None} if calls else set())


@pytest.mark.parametrize("name", FAILURES)
async def test_a_real_failure_has_its_kind_however_it_is_cut(name: str) -> None:
    errors = await outcomes(name)
    assert [(e.kind, e.status, e.retry_after) for e in errors] == [FAILURES[name]] * len(CUTS)
    assert len({e.partial.text if e.partial else "" for e in errors}) == 1


async def test_real_anthropic_answers_hold_every_part() -> None:
    thought = (await outcomes("aimock_anthropic_thinking_stream"))[0]
    assert thought.message.parts == (
        ReasoningPart("First I think.", signature="aimock-placeholder-signature"),
        TextPart("Then I answer."),
    )
    called = (await outcomes("aimock_anthropic_tools_stream"))[0]
    assert called.text == "Let me look."
    assert [call.arguments for call in called.tool_calls] == [{"city": "Paris"}, {"city": "Rome"}]
    counted = (await outcomes("llamacpp_anthropic_stream"))[0]
    assert counted.usage == Usage(input_tokens=24, output_tokens=17, cache_read_tokens=23)


async def test_a_real_count_of_tokens_is_read_however_it_is_cut() -> None:
    name = "llamacpp_anthropic_count_tokens"
    for reply in replies(name):
        async with WireServer([reply]) as server, AnthropicProvider(server.url, KEY) as provider:
            assert await provider.count_tokens([user("Say hi.")], ChatOptions(model="local")) == 24
        (request,) = server.requests
        sent = [{"role": "user", "content": [{"type": "text", "text": "Say hi."}]}]
        assert (request.path, request.json()) == (
            "/v1/messages/count_tokens",
            {**asked(name), "messages": sent},
        )


@pytest.mark.parametrize("size", CUTS)
async def test_the_framing_of_a_real_stream_is_read_however_its_bytes_come(size: int) -> None:
    response = answered("llamacpp_chat_stream_rawchunked")
    assert b"\r\n0\r\n\r\n" in response

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for at in range(0, len(response), size):
            writer.write(response[at : at + size])
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with OpenAIProvider(f"http://127.0.0.1:{port}/v1", KEY) as provider:
            answer = await chat(provider, HELLO, ASK_ONCE)
    said = (
        "Hello! I'm here to help with any math or science-related questions. What can I help you with today?"
    )
    assert (answer.text, answer.finish_reason) == (said, "stop")


async def test_text_completions_are_refused_for_what_they_are() -> None:
    for error in await outcomes("llamacpp_completions_stream"):
        assert error.kind == "invalid_response"
        assert "sent what is no answer: text completions, which are no chat; check that" in str(error)


async def test_real_vectors_are_read_however_they_are_cut() -> None:
    name = "llamacpp_embeddings"
    for reply in replies(name):
        told = b"".join(piece for piece in reply.body if isinstance(piece, bytes)).decode()
        shown = [json.loads(f"[{numbers}]") for numbers in LEFT_OUT.findall(told)]
        full = LEFT_OUT.sub(lambda row: f"[{row[1]}{', 0.5' * 572}]", told)
        size = max(map(len, reply.body))
        pieces = split_bytes(full.encode(), range(size, len(full), size))
        served = WireReply(headers=reply.headers, body=pieces)
        async with (
            WireServer([served]) as server,
            OpenAIEmbeddings(f"{server.url}/v1", "secret", model="local") as embeddings,
        ):
            found = await embeddings.embed(["hello", "goodbye"])
        assert server.requests[0].json() == asked(name)
        assert [vector[:4] for vector in found.vectors] == shown
        assert ([len(vector) for vector in found.vectors], found.usage) == ([576, 576], Usage(input_tokens=3))


async def test_a_real_server_without_vectors_says_so() -> None:
    for reply in replies("llamacpp_embeddings_off"):
        async with (
            WireServer([reply]) as server,
            OpenAIEmbeddings(f"{server.url}/v1", KEY, model="local") as embeddings,
        ):
            with pytest.raises(ProviderError, match="does not support embeddings") as caught:
                await embeddings.embed(["hello", "world"])
        assert (caught.value.kind, caught.value.status, len(server.requests)) == ("server_error", 501, 1)


def test_every_transcript_is_replayed() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == ANSWERS.keys() | FAILURES.keys() | OTHERS
