"""Messages as Anthropic's API has them: what reaches the model, and how answers and refusals are said."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from dialoom.llm import FilePart, MockProvider, ProviderError, ReasoningDelta, TextDelta
from dialoom.llm.messages import ToolCall, assistant, system, tool_result, user

MESSAGES = "/v1/messages"


def lines(text: str) -> list[Any]:
    return [json.loads(each.split("data: ", 1)[1]) for each in text.split("\n\n") if "data: " in each]


def test_messages_reach_the_model_in_the_order_it_needs(client: TestClient, provider: MockProvider) -> None:
    provider.queue_events(ReasoningDelta("Hm."), TextDelta("Rain."))
    call = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "rain"}]}
    answer = client.post(
        MESSAGES,
        json={
            "model": "mock-model",
            "max_tokens": 9,
            "system": [{"type": "text", "text": "Be brief."}],
            "temperature": 0.5,
            "stop_sequences": ["END"],
            "tools": [{"name": "weather"}],
            "messages": [
                {"role": "user", "content": "Oslo?"},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}, call]},
                {"role": "user", "content": [{"type": "text", "text": "So?"}, result]},
                {"role": "assistant", "content": "Well"},
                {"role": "user", "content": []},
            ],
        },
    )
    asked = ToolCall(id="c1", name="weather", arguments={"city": "Oslo"}, raw='{"city":"Oslo"}')
    assert provider.requests[0].messages == (
        system("Be brief."),
        user("Oslo?"),
        assistant("", calls=(asked,)),
        tool_result("c1", "rain"),
        user("So?"),
        assistant("Well"),
        user(""),
    )
    options = provider.requests[0].options
    assert (options.max_tokens, options.temperature, options.stop) == (9, 0.5, ("END",))
    body = answer.json()
    assert body["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": ""},
        {"type": "text", "text": "Rain."},
    ]
    assert (body["stop_reason"], body["role"]) == ("end_turn", "assistant")


def test_a_stream_of_messages_opens_and_closes_each_block(client: TestClient, provider: MockProvider) -> None:
    said = {"max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    provider.queue_events(ReasoningDelta("Hm"), TextDelta("Hel"), TextDelta("lo"))
    found = lines(client.post(MESSAGES, json=said).text)
    assert [each["type"] for each in found] == [
        "message_start", "content_block_start", "content_block_delta", "content_block_stop",
        "content_block_start", "content_block_delta", "content_block_delta", "content_block_stop",
        "message_delta", "message_stop",
    ]  # fmt: skip
    assert [each["index"] for each in found if "index" in each] == [0, 0, 0, 1, 1, 1, 1]
    provider.queue_tool_call("c1", "weather", {"city": "Oslo"})
    found = lines(client.post(MESSAGES, json=said).text)
    assert found[2]["delta"] == {"type": "input_json_delta", "partial_json": '{"city":"Oslo"}'}
    assert found[-2]["delta"]["stop_reason"] == "tool_use"
    provider.queue_error(ProviderError("unavailable", "the server is down"))
    failed = lines(client.post(MESSAGES, json=said).text)
    assert failed[-1] == {
        "type": "error",
        "error": {"type": "api_error", "message": "the server is down", "code": "provider"},
    }


@pytest.mark.parametrize(
    ("asked", "choice", "names"),
    [
        ({"type": "auto"}, "auto", ["rain", "wind"]),
        ({"type": "any", "disable_parallel_tool_use": True}, "required", ["rain", "wind"]),
        ({"type": "tool", "name": "wind"}, "required", ["wind"]),
        ({"type": "none"}, "none", ["rain", "wind"]),
    ],
)
def test_the_choice_of_a_tool_in_messages_reaches_the_model(
    client: TestClient, provider: MockProvider, asked: dict[str, object], choice: str, names: list[str]
) -> None:
    provider.queue_text("Rain.")
    tools = [{"name": "rain"}, {"name": "wind"}]
    said = {"max_tokens": 9, "messages": [{"role": "user", "content": "Oslo?"}], "tools": tools}
    assert client.post(MESSAGES, json={**said, "tool_choice": asked}).status_code == 200
    options = provider.requests[0].options
    assert (options.tool_choice, [each.name for each in options.tools]) == (choice, names)
    assert options.parallel_tool_calls is (False if choice == "required" and len(names) == 2 else None)
    missing = client.post(MESSAGES, json={**said, "tool_choice": {"type": "tool", "name": "snow"}})
    assert (missing.status_code, missing.json()["error"]["code"]) == (422, "usage")


def test_what_goes_wrong_is_said_as_each_client_reads_it(client: TestClient, stranger: TestClient) -> None:
    said = {"model": "no-such", "max_tokens": 9, "messages": [{"role": "user", "content": "Oslo?"}]}
    words = "sign in: open the link the server printed, or send its token as bearer"
    assert stranger.post(MESSAGES, json=said).json() == {
        "type": "error",
        "error": {"type": "authentication_error", "message": words, "code": "signed_out"},
    }
    assert client.post(MESSAGES, json=said).json()["error"]["type"] == "not_found_error"
    assert client.post(MESSAGES, json={}).json()["error"]["type"] == "invalid_request_error"
    assert stranger.get("/v1/models").json() == {
        "error": {"message": words, "type": "invalid_request_error", "code": "signed_out", "param": None}
    }
    assert client.get("/v1/responses").json()["error"]["code"] == "not_found"


def picture(data: str, kind: str = "base64") -> dict[str, object]:
    return {"type": "image", "source": {"type": kind, "media_type": "image/png", "data": data}}


def test_a_picture_in_messages_reaches_the_model(client: TestClient, provider: MockProvider) -> None:
    provider.queue_text("A pixel.")
    said = [{"role": "user", "content": [picture("iVBORw=="), {"type": "text", "text": "What is it?"}]}]
    assert client.post(MESSAGES, json={"max_tokens": 9, "messages": said}).status_code == 200
    shown = FilePart(data=b"\x89PNG", media_type="image/png")
    assert provider.requests[0].messages == (user("What is it?", files=(shown,)),)


def test_a_picture_that_a_tool_returned_reaches_the_model(client: TestClient, provider: MockProvider) -> None:
    provider.queue_text("A pixel.")
    words = {"type": "text", "text": "A map."}
    results = [
        {"type": "tool_result", "tool_use_id": "c1", "content": [words, picture("iVBORw==")]},
        {"type": "tool_result", "tool_use_id": "c2", "content": [picture("iVBORw==")]},
    ]
    said = [{"role": "user", "content": results}]
    assert client.post(MESSAGES, json={"max_tokens": 9, "messages": said}).status_code == 200
    shown = FilePart(data=b"\x89PNG", media_type="image/png")
    assert provider.requests[0].messages == (
        tool_result("c1", "A map.", files=(shown,)),
        tool_result("c2", "image image/png, 4 bytes", files=(shown,)),
    )


def test_messages_that_cannot_be_are_refused(client: TestClient) -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "x"}
    call = {"type": "tool_use", "id": "c1", "name": "weather"}
    for role, block, told in (
        ("assistant", result, "no tool results"),
        ("assistant", picture("iVBORw=="), "no pictures"),
        ("user", call, "no tool calls"),
        ("user", picture("***"), "not in base64"),
        ("user", picture("iVBORw==", kind="url"), "url"),
    ):
        answer = client.post(
            MESSAGES, json={"max_tokens": 9, "messages": [{"role": role, "content": [block]}]}
        )
        assert (answer.status_code, told in answer.json()["error"]["message"]) == (422, True)
