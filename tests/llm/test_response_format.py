"""A form for the answer, and how much is thought first, in the words of each wire."""

from typing import Any, Literal

import msgspec
import pytest

from dialoom.base.errors import UsageError
from dialoom.llm import ChatOptions, user
from dialoom.llm.anthropic.request import message_body
from dialoom.llm.ollama.request import ollama_body
from dialoom.llm.openai.request import chat_body
from dialoom.llm.openai.responses_request import responses_body
from dialoom.llm.profile import ANTHROPIC_PROFILE, DEFAULT_PROFILE

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CLOSED = {**CITY, "additionalProperties": False}


def sent(schema: Any) -> Any:
    body = chat_body([user("Where?")], ChatOptions(response_schema=schema), DEFAULT_PROFILE)
    return msgspec.json.decode(body).get("response_format")


@pytest.mark.promise("llm-035")
def test_a_response_schema_becomes_a_response_format() -> None:
    assert sent({**CITY, "title": "A place!"}) == {
        "type": "json_schema",
        "json_schema": {"name": "A_place", "schema": {**CITY, "title": "A place!"}},
    }
    assert sent(None) is None


def test_a_schema_that_leaves_nothing_open_is_asked_for_strictly() -> None:
    assert sent(CLOSED) == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": CLOSED, "strict": True},
    }


@pytest.mark.parametrize(
    "schema",
    [
        {**CLOSED, "required": []},
        {**CLOSED, "additionalProperties": {"type": "string"}},
        {**CLOSED, "properties": {"city": CITY}},
        {"anyOf": [CLOSED, CITY]},
    ],
)
def test_a_schema_with_anything_open_is_not(schema: dict[str, Any]) -> None:
    assert "strict" not in sent(schema)["json_schema"]


def test_a_schema_that_contains_itself_is_the_callers_mistake() -> None:
    circle: dict[str, Any] = dict(CLOSED)
    circle["properties"] = {"city": circle}
    with pytest.raises(UsageError, match="the request cannot be written as JSON"):
        sent(circle)


def test_any_json_is_asked_for_in_the_words_of_each_wire_and_a_schema_goes_first() -> None:
    asked, question = ChatOptions(json_mode=True), [user("Where?")]
    chat = msgspec.json.decode(chat_body(question, asked, DEFAULT_PROFILE))
    responses = msgspec.json.decode(responses_body(question, asked, DEFAULT_PROFILE, provider="openai"))
    ollama = msgspec.json.decode(ollama_body(question, asked, DEFAULT_PROFILE, num_ctx=None))
    assert chat["response_format"] == {"type": "json_object"}
    assert responses["text"] == {"format": {"type": "json_object"}}
    assert ollama["format"] == "json"
    both = msgspec.json.decode(
        chat_body(question, ChatOptions(json_mode=True, response_schema=CITY), DEFAULT_PROFILE)
    )
    assert both["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(("level", "word", "think"), [("low", "low", "low"), ("off", "none", False)])
def test_how_much_is_thought_is_asked_for_in_the_words_of_each_wire(
    level: Literal["low", "off"], word: str, think: object
) -> None:
    asked, question = ChatOptions(reasoning=level), [user("Why?")]
    chat = msgspec.json.decode(chat_body(question, asked, DEFAULT_PROFILE))
    responses = msgspec.json.decode(responses_body(question, asked, DEFAULT_PROFILE, provider="openai"))
    ollama = msgspec.json.decode(ollama_body(question, asked, DEFAULT_PROFILE, num_ctx=None))
    assert (chat["reasoning_effort"], responses["reasoning"], ollama["think"]) == (
        word,
        {"effort": word},
        think,
    )


def test_claude_thinks_as_much_as_is_asked_for_beside_a_schema_where_it_takes_one() -> None:
    def sent_of(**fields: Any) -> Any:
        native = msgspec.structs.replace(ANTHROPIC_PROFILE, structured_mode="native")
        body = message_body([user("Why?")], ChatOptions(**fields), profile=native, provider="anthropic")
        found = msgspec.json.decode(body)
        return found.get("thinking"), found.get("output_config")

    schema = {"format": {"type": "json_schema", "schema": CITY}}
    assert sent_of() == (None, None)
    assert sent_of(reasoning="off") == ({"type": "disabled"}, None)
    assert sent_of(reasoning="high") == ({"type": "adaptive"}, {"effort": "high"})
    assert sent_of(reasoning="low", response_schema=CITY) == (
        {"type": "adaptive"},
        {"effort": "low", **schema},
    )
