"""Pictures, recordings and documents go to a model in the form that each wire has for them."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dialoom.base.errors import UsageError
from dialoom.llm import ChatOptions, FilePart, Message, user
from dialoom.llm.anthropic.request import message_body
from dialoom.llm.files import MAX_FILE_BYTES
from dialoom.llm.limited import expected_tokens
from dialoom.llm.message_size import character_count, token_estimate
from dialoom.llm.ollama.request import ollama_body
from dialoom.llm.openai.request import chat_body
from dialoom.llm.openai.responses_request import responses_body
from dialoom.llm.profile import ANTHROPIC_PROFILE, DEFAULT_PROFILE
from dialoom.llm.wire.prompt_size import PromptSize

PICTURE = FilePart(data=b"\x89PNG", media_type="image/png", name="cat.png")
PAPER = FilePart(data=b"%PDF-", media_type="application/pdf")
SPEECH = FilePart(data=b"ID3", media_type="audio/mpeg", name="a.mp3")
NOTHING = ChatOptions()


def base64(data: bytes) -> str:
    return b64encode(data).decode()


def chat_wire(message: Message) -> Any:
    return msgspec.json.decode(chat_body([message], NOTHING, DEFAULT_PROFILE))["messages"][0]["content"]


def responses_wire(message: Message) -> Any:
    body = responses_body([message], NOTHING, DEFAULT_PROFILE, provider="openai")
    return msgspec.json.decode(body)["input"][0]["content"]


def messages_wire(message: Message) -> Any:
    body = message_body([message], NOTHING, profile=ANTHROPIC_PROFILE, provider="anthropic")
    return msgspec.json.decode(body)["messages"][0]["content"]


def ollama_wire(message: Message) -> Any:
    return msgspec.json.decode(ollama_body([message], NOTHING, DEFAULT_PROFILE, num_ctx=None))["messages"][0]


def test_chat_completions_take_pictures_recordings_and_documents() -> None:
    assert chat_wire(user("What is it?", files=(PICTURE, SPEECH, PAPER))) == [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64(PICTURE.data)}"}},
        {"type": "input_audio", "input_audio": {"data": base64(SPEECH.data), "format": "mp3"}},
        {
            "type": "file",
            "file": {
                "filename": "document",
                "file_data": f"data:application/pdf;base64,{base64(PAPER.data)}",
            },
        },
        {"type": "text", "text": "What is it?"},
    ]
    assert len(chat_wire(Message(role="user", parts=(PICTURE,)))) == 1
    assert chat_wire(user("Only words")) == "Only words"


def test_responses_take_them_too() -> None:
    wav = FilePart(data=b"RIFF", media_type="audio/x-wav")
    assert responses_wire(user("What is it?", files=(PICTURE, wav, PAPER))) == [
        {"type": "input_image", "image_url": f"data:image/png;base64,{base64(PICTURE.data)}"},
        {"type": "input_audio", "input_audio": {"data": base64(b"RIFF"), "format": "wav"}},
        {
            "type": "input_file",
            "filename": "document",
            "file_data": f"data:application/pdf;base64,{base64(PAPER.data)}",
        },
        {"type": "input_text", "text": "What is it?"},
    ]
    assert len(responses_wire(Message(role="user", parts=(PICTURE,)))) == 1
    assert responses_wire(user("Only words")) == "Only words"


def test_the_messages_wire_takes_pictures_and_pdf_and_refuses_what_it_has_no_room_for() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": base64(PICTURE.data)}
    paper = {"type": "base64", "media_type": "application/pdf", "data": base64(PAPER.data)}
    assert messages_wire(user("What is it?", files=(PICTURE, PAPER))) == [
        {"type": "image", "source": source},
        {"type": "document", "source": paper},
        {"type": "text", "text": "What is it?"},
    ]
    with pytest.raises(UsageError, match="the messages wire takes no audio/mpeg; ask a model of another"):
        messages_wire(user("What is it?", files=(SPEECH,)))
    assert messages_wire(Message(role="assistant", parts=(PICTURE, *user("a").parts)))[0]["type"] == "text"


def test_ollama_takes_pictures() -> None:
    assert ollama_wire(user("What is it?", files=(PICTURE,))) == {
        "role": "user",
        "content": "What is it?",
        "images": [base64(PICTURE.data)],
    }
    with pytest.raises(UsageError, match="Ollama's own wire takes no application/pdf"):
        ollama_wire(user("What is it?", files=(PAPER,)))


def test_a_message_with_a_file_travels_as_json_and_shows_none_of_it() -> None:
    message = user("What is it?", files=(PICTURE,))
    assert Message.from_json(message.to_json()) == Message.from_dict(message.to_dict()) == message
    assert message.files == (PICTURE,)
    assert repr(PICTURE) == "FilePart(image/png, 4 bytes)"
    assert PICTURE.__rich_repr__() == [("media_type", "image/png"), ("bytes", 4)]


def test_a_file_takes_room_in_a_history_but_no_characters() -> None:
    plain, seen = user("Hm?"), user("Hm?", files=(PICTURE,))
    assert character_count(seen) == character_count(plain)
    assert token_estimate(seen) - token_estimate(plain) == 1_500
    assert expected_tokens([seen], NOTHING) - expected_tokens([plain], NOTHING) == 1_500
    large = user("Hm?", files=(FilePart(data=bytes(3_000), media_type="image/png"),))
    body = chat_body([large], NOTHING, DEFAULT_PROFILE)
    assert PromptSize.of(body, [large]).sent_bytes < 300


def test_a_file_is_read_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "猫.png"
    path.write_bytes(b"\x89PNG")
    assert FilePart.read(path) == FilePart(data=b"\x89PNG", media_type="image/png", name="猫.png")
    assert (PICTURE.kind, SPEECH.kind, PAPER.kind) == ("image", "audio", "document")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("cat", b"x", "cannot be told from its name; give FilePart a media_type"),
        ("none.png", None, "cannot read .*none.png: No such file"),
        ("empty.png", b"", "a file of 0 bytes cannot be sent"),
        ("nul\0.png", None, "cannot read "),
    ],
)
def test_a_file_that_cannot_be_sent_is_named(
    tmp_path: Path, name: str, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=reason):
        FilePart.read(f"{tmp_path}/{name}")


def test_a_part_that_is_too_large_or_of_no_kind_is_refused() -> None:
    with pytest.raises(UsageError, match=f"a file of {MAX_FILE_BYTES + 1} bytes cannot be sent"):
        FilePart(data=bytes(MAX_FILE_BYTES + 1), media_type="image/png")
    with pytest.raises(UsageError, match="'png' is no media type; write one like image/png"):
        FilePart(data=b"x", media_type="png")
