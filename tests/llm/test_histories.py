"""Any history becomes a body that its server accepts, on every wire, and stays as it is."""

import copy
from typing import Any

import msgspec
from hypothesis import given

from dialoom.llm import ChatOptions, Message, TextPart, ToolCall, ToolCallPart, assistant, tool_result
from dialoom.llm.ollama.request import ollama_body
from dialoom.llm.openai.request import chat_body
from dialoom.llm.openai.responses_request import responses_body
from dialoom.llm.pairing import NOT_RUN
from dialoom.llm.profile import DEFAULT_PROFILE
from tests.llm.histories import histories

NOTHING = ChatOptions()


def function_calls(sent: list[Any]) -> list[Any]:
    """Check what a list of chat messages says of calls, and return the calls."""
    waiting: list[str] = []
    found: list[Any] = []
    for message in sent:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert waiting == []
        made = message.get("tool_calls", [])
        waiting = [call["id"] for call in made]
        assert len(set(waiting)) == len(waiting)
        found += made
    assert waiting == []
    return found


def check_chat_completions(history: list[Message]) -> None:
    sent = msgspec.json.decode(chat_body(history, NOTHING, DEFAULT_PROFILE))["messages"]
    waiting: list[str] = []
    for message in sent:
        content, role = message["content"], message["role"]
        if role == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert not waiting
            waiting = [call["id"] for call in message.get("tool_calls", ())]
        assert isinstance(content, str) or (role == "user" and content) or message.get("tool_calls")
    assert not waiting
    for call in function_calls(sent):
        assert call["function"]["name"]
        assert isinstance(msgspec.json.decode(call["function"]["arguments"]), dict)


def check_responses(history: list[Message]) -> None:
    body = responses_body(history, NOTHING, DEFAULT_PROFILE, provider="openai")
    waiting: list[str] = []
    for item in msgspec.json.decode(body)["input"]:
        match item.get("type"):
            case "function_call":
                assert item["call_id"] not in waiting
                waiting.append(item["call_id"])
            case "function_call_output":
                waiting.remove(item["call_id"])
            case _:
                assert "role" not in item or item["content"] is not None
    assert waiting == []


def check_ollama(history: list[Message]) -> None:
    sent = msgspec.json.decode(ollama_body(history, NOTHING, DEFAULT_PROFILE, num_ctx=None))["messages"]
    for message in sent:
        assert isinstance(message["content"], str)
        assert "images" not in message or message["role"] in {"user", "tool"}
    assert all(isinstance(call["function"]["arguments"], dict) for call in function_calls(sent))


@given(histories)
def test_each_call_is_answered_once_and_words_are_of_the_right_kind(history: list[Message]) -> None:
    before = copy.deepcopy(history)
    check_chat_completions(history)
    check_responses(history)
    check_ollama(history)
    assert history == before


def test_two_calls_that_were_given_one_id_each_keep_their_own_result() -> None:
    calls = tuple(ToolCall(id="c", name=name, arguments={}) for name in ("add", "two words", ""))
    history = [assistant("", calls=calls), tool_result("c", "1"), tool_result("c", "2")]
    sent = msgspec.json.decode(chat_body(history, NOTHING, DEFAULT_PROFILE))["messages"]
    made = [(call["id"], call["function"]["name"]) for call in sent[0]["tool_calls"]]
    assert made == [("c", "add"), ("c_2", "two_words"), ("c_3", "unnamed")]
    assert [(message["tool_call_id"], message["content"]) for message in sent[1:]] == [
        ("c", "1"),
        ("c_2", "2"),
        ("c_3", NOT_RUN),
    ]


def test_nobody_but_a_model_calls_tools() -> None:
    asked = Message(role="user", parts=(ToolCallPart(ToolCall(id="c", name="add")), TextPart("Hm?")))
    sent = msgspec.json.decode(chat_body([asked], NOTHING, DEFAULT_PROFILE))["messages"]
    assert sent == [{"role": "user", "content": "Hm?"}]
