"""A schema for the answer goes to the server in the form OpenAI accepts."""

from typing import Any

import msgspec
import pytest

from dialoom.base.errors import UsageError
from dialoom.llm import ChatOptions, user
from dialoom.llm.ollama.request import ollama_body
from dialoom.llm.openai.request import chat_body
from dialoom.llm.openai.responses_request import responses_body
from dialoom.llm.profile import DEFAULT_PROFILE

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
