"""What a tool shows reaches a model that can see, and is told to one that cannot."""

from typing import Any

import msgspec
import pytest

from dialoom.llm import (
    AnthropicProvider,
    ChatOptions,
    FilePart,
    Message,
    MockProvider,
    OllamaProvider,
    OpenAIProvider,
    ProviderError,
    RetryPolicy,
    ToolCall,
    ToolModeProvider,
    Warned,
    WireProfile,
    assistant,
    chat,
    tool_result,
    user,
)
from dialoom.llm.anthropic.request import message_body
from dialoom.llm.message_size import character_count, token_estimate
from dialoom.llm.ollama.request import ollama_body
from dialoom.llm.openai.request import chat_body
from dialoom.llm.openai.responses_request import responses_body
from dialoom.llm.profile import ANTHROPIC_PROFILE, DEEPSEEK_PROFILE, DEFAULT_PROFILE, OPENAI_PROFILE
from dialoom.testing.wire import WireReply, WireServer
from tests.llm.served import SAID, streamed

PICTURE = FilePart(data=b"\x89PNG", media_type="image/png", name="cat.png")
PAPER = FilePart(data=b"%PDF-", media_type="application/pdf")
SPEECH = FilePart(data=b"ID3", media_type="audio/mpeg", name="a.mp3")
NOTHING = ChatOptions()
SOURCE = {"type": "base64", "media_type": "image/png", "data": PICTURE.base64}
CALLS = (ToolCall(id="a", name="look", arguments={}), ToolCall(id="b", name="count", arguments={}))
ROUND = [
    user("Look, and count."),
    assistant("", calls=CALLS),
    tool_result("a", "[a cat]", name="look", files=(PICTURE, PAPER)),
    tool_result("b", "3", name="count"),
]
NOT_SHOWN = "[not shown to you: image cat.png, image/png, 4 bytes]"


def chat_wire(messages: list[Message], profile: WireProfile = DEFAULT_PROFILE) -> Any:
    return msgspec.json.decode(chat_body(messages, NOTHING, profile))["messages"]


def messages_wire(messages: list[Message], profile: WireProfile = ANTHROPIC_PROFILE) -> Any:
    body = message_body(messages, NOTHING, profile=profile, provider="anthropic")
    return msgspec.json.decode(body)["messages"]


def responses_wire(messages: list[Message], profile: WireProfile = OPENAI_PROFILE) -> Any:
    return msgspec.json.decode(responses_body(messages, NOTHING, profile, provider="openai"))["input"]


def ollama_wire(messages: list[Message], profile: WireProfile = DEFAULT_PROFILE) -> Any:
    return msgspec.json.decode(ollama_body(messages, NOTHING, profile, num_ctx=None))["messages"]


def test_the_messages_wire_shows_it_inside_the_result() -> None:
    paper = {"type": "base64", "media_type": "application/pdf", "data": PAPER.base64}
    assert messages_wire(ROUND)[-1]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [
                {"type": "text", "text": "[a cat]"},
                {"type": "image", "source": SOURCE},
                {"type": "document", "source": paper},
            ],
        },
        {"type": "tool_result", "tool_use_id": "b", "content": "3"},
    ]


def test_the_messages_wire_gets_a_picture_of_a_failure_without_the_mark_that_refuses_one() -> None:
    failed = [*ROUND[:2], tool_result("a", "no such button", is_error=True, files=(PICTURE,))]
    shown, missing = messages_wire(failed)[-1]["content"]
    assert shown == {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": [{"type": "text", "text": "no such button"}, {"type": "image", "source": SOURCE}],
    }
    assert missing["is_error"] is True


def test_chat_completions_show_it_behind_all_results_of_the_round() -> None:
    profile = msgspec.structs.replace(OPENAI_PROFILE, tool_files=("image/png",))
    assert chat_wire([*ROUND, assistant("A cat.")], profile)[2:] == [
        {
            "role": "tool",
            "tool_call_id": "a",
            "content": "[a cat]\n[not shown to you: document application/pdf, 5 bytes]",
        },
        {"role": "tool", "tool_call_id": "b", "content": "3"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[what look returned to the call a]"},
                {"type": "image_url", "image_url": {"url": PICTURE.data_url}},
            ],
        },
        {"role": "assistant", "content": "A cat."},
    ]


def test_responses_take_it_as_the_output_of_the_call() -> None:
    assert responses_wire(ROUND)[-2:] == [
        {
            "type": "function_call_output",
            "call_id": "a",
            "output": [
                {"type": "input_image", "image_url": PICTURE.data_url},
                {"type": "input_file", "filename": "document", "file_data": PAPER.data_url},
                {"type": "input_text", "text": "[a cat]"},
            ],
        },
        {"type": "function_call_output", "call_id": "b", "output": "3"},
    ]


def test_ollama_takes_pictures_beside_the_result() -> None:
    everything = WireProfile(tool_files=("image/png", "application/pdf"))
    assert ollama_wire(ROUND, everything)[-2:] == [
        {
            "role": "tool",
            "content": "[a cat]\n[not shown to you: document application/pdf, 5 bytes]",
            "tool_name": "look",
            "tool_call_id": "a",
            "images": [PICTURE.base64],
        },
        {"role": "tool", "content": "3", "tool_name": "count", "tool_call_id": "b"},
    ]


@pytest.mark.parametrize("wire", [chat_wire, messages_wire, responses_wire, ollama_wire])
def test_a_model_that_cannot_see_reads_that_it_was_not_shown_it(wire: Any) -> None:
    blind = WireProfile(tool_files=())
    history = [*ROUND[:2], tool_result("a", "", files=(PICTURE, SPEECH)), ROUND[3]]
    told = f"{NOT_SHOWN}\n[not shown to you: audio a.mp3, audio/mpeg, 3 bytes]"
    in_words = [*ROUND[:2], tool_result("a", told), ROUND[3]]
    assert wire(history, blind) == wire(in_words, blind)
    assert history[2].files == (PICTURE, SPEECH)


def test_deepseek_is_sent_no_picture() -> None:
    assert NOT_SHOWN in chat_wire(ROUND, DEEPSEEK_PROFILE)[2]["content"]
    assert len(chat_wire(ROUND, DEEPSEEK_PROFILE)) == 4


def test_a_result_with_a_file_travels_as_json_and_an_older_one_is_read() -> None:
    message = ROUND[2]
    assert Message.from_json(message.to_json()) == Message.from_dict(message.to_dict()) == message
    assert message.files == (PICTURE, PAPER)
    assert "files" not in ROUND[3].to_json()
    assert "PNG" not in repr(message)


def test_it_takes_the_room_of_a_picture_in_a_history_and_no_characters() -> None:
    seen, plain = ROUND[2], tool_result("a", "[a cat]", name="look")
    assert character_count(seen) == character_count(plain)
    assert token_estimate(seen) - token_estimate(plain) == 2 * 1_500


async def test_tools_by_schema_show_it_with_the_result() -> None:
    llm = MockProvider().queue_text("A cat.")
    await chat(ToolModeProvider(llm, mode="off"), ROUND)
    asked = llm.requests[0].messages
    assert asked[2].text.startswith("Tool result: [a cat]\n[not shown to you: document")
    assert asked[2].files == (PICTURE,)


REFUSED = WireReply(
    status=400,
    headers={"content-type": "application/json"},
    body=(b'{"error":{"message":"image input is not supported, you need the mmproj"}}',),
)
ANTHROPIC_SAID = (
    b'data: {"type":"message_start","message":{"id":"m","model":"demo","content":[]}}\n\n'
    b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello"}}\n\n'
    b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'
    b'data: {"type":"message_stop"}\n\n'
)
OLLAMA_SAID = b'{"model":"demo","message":{"role":"assistant","content":"Hello"},"done":true}\n'


@pytest.mark.parametrize(
    ("made", "answer"),
    [
        (OpenAIProvider, streamed(*SAID)),
        (AnthropicProvider, streamed(ANTHROPIC_SAID)),
        (OllamaProvider, WireReply(headers={"content-type": "application/x-ndjson"}, body=(OLLAMA_SAID,))),
    ],
)
async def test_a_server_that_refuses_pictures_is_asked_without_them_and_remembered(
    made: Any, answer: WireReply
) -> None:
    async with WireServer([REFUSED, answer, answer]) as server, made(server.url) as provider:
        async with provider.stream(ROUND) as stream:
            events = [event async for event in stream]
        warned = next(event for event in events if isinstance(event, Warned))
        assert (warned.code, stream.response.text) == ("files_refused", "Hello")
        assert "what tools show was left out, because" in warned.message
        assert "files_refused" in stream.response.warnings
        again = await chat(provider, ROUND)
        assert (again.text, "files_refused" in again.warnings) == ("Hello", False)
        bodies = [request.body.decode() for request in server.requests]
    assert [PICTURE.base64 in body for body in bodies] == [True, False, False]
    assert [NOT_SHOWN in body for body in bodies] == [False, True, True]


async def test_a_refusal_that_looks_like_a_failure_is_not_tried_again() -> None:
    failed = msgspec.structs.replace(REFUSED, status=500)
    async with WireServer([failed, streamed(*SAID)]) as server, OpenAIProvider(server.url) as provider:
        assert (await chat(provider, ROUND)).warnings == ("files_refused",)
        assert len(server.requests) == 2


async def test_an_answer_that_breaks_off_is_not_followed_by_another() -> None:
    broken = streamed(SAID[0], b'data: {"error":{"message":"the image is gone"}}\n\n')
    async with WireServer([broken]) as server, OpenAIProvider(server.url) as provider:
        with pytest.raises(ProviderError, match="the image is gone") as caught:
            await chat(provider, ROUND)
        assert caught.value.partial is not None
        assert (caught.value.partial.text, len(server.requests)) == ("Hel", 1)


async def test_a_busy_server_is_shown_the_picture_again() -> None:
    async with (
        WireServer([WireReply(status=503), streamed(*SAID)]) as server,
        OpenAIProvider(server.url) as provider,
    ):
        answer = await chat(provider, ROUND, ChatOptions(retry=RetryPolicy(first_wait=0)))
        assert (answer.text, answer.warnings, answer.attempts) == ("Hello", (), 2)
        assert all(PICTURE.data_url in request.body.decode() for request in server.requests)


async def test_one_picture_that_is_refused_says_nothing_of_the_next() -> None:
    broken = msgspec.structs.replace(REFUSED, body=(b'{"error":{"message":"image is too small"}}',))
    replies = [broken, streamed(*SAID), streamed(*SAID)]
    async with WireServer(replies) as server, OpenAIProvider(server.url) as provider:
        assert (await chat(provider, ROUND)).warnings == ("files_refused",)
        await chat(provider, ROUND)
        assert PICTURE.data_url in server.requests[2].body.decode()


@pytest.mark.parametrize(
    ("status", "words", "history"),
    [
        (400, "temperature is out of range", ROUND),
        (401, "no key for images", ROUND),
        (400, "image input is not supported", [user("Look", files=(PICTURE,))]),
    ],
)
async def test_any_other_refusal_is_an_error_at_once(status: int, words: str, history: list[Message]) -> None:
    body = msgspec.json.encode({"error": {"message": words}})
    reply = WireReply(status=status, headers={"content-type": "application/json"}, body=(body,))
    async with WireServer([reply]) as server, OpenAIProvider(server.url) as provider:
        with pytest.raises(ProviderError, match=words):
            await chat(provider, history, ChatOptions(retry=RetryPolicy(attempts=1)))
        assert len(server.requests) == 1
