"""The faces other programs know: chat completions, embeddings, AG-UI."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from dialoom.llm import FilePart, MockProvider, ProviderError, ReasoningDelta, TextDelta, Usage, UsageUpdate
from dialoom.llm.messages import ToolCall, assistant, system, tool_result, user
from dialoom.llm.mock import Gate
from dialoom.rag import HashEmbedder
from dialoom.server import Parts, Workbench
from dialoom.server.settings import ServerSettings
from dialoom.tools import Tool, tool
from tests.server.conftest import TOKEN, URL
from tests.server.live import agui, copied, kinds, served

CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
CHAT = "/v1/chat/completions"


def test_models_go_by_their_providers_name(client: TestClient) -> None:
    assert client.get("/v1/models").json() == {
        "data": [{"id": "mock:mock-model", "object": "model", "created": 0, "owned_by": "mock"}],
        "object": "list",
    }


def test_a_whole_answer_has_words_thoughts_calls_and_counts(
    client: TestClient, provider: MockProvider
) -> None:
    provider.queue_events(
        ReasoningDelta("Hm."),
        TextDelta("Hello"),
        *_usage(Usage(input_tokens=7, output_tokens=2)),
    )
    answer = client.post(CHAT, json={"model": "mock-model", "messages": [{"role": "user", "content": "Hi"}]})
    body = answer.json()
    assert body["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello", "reasoning_content": "Hm."},
            "finish_reason": "stop",
        }
    ]
    assert body["usage"] == {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    assert (body["object"], body["model"]) == ("chat.completion", "mock:mock-model")


def _usage(usage: Usage) -> tuple[Any, ...]:

    return (UsageUpdate(usage),)


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({"type": "text"}, (False, None)),
        ({"type": "json_object"}, (True, None)),
        ({"type": "json_schema", "json_schema": {"name": "city", "schema": CITY}}, (True, CITY)),
        ({"type": "json_schema"}, (True, None)),
    ],
)
def test_the_form_of_an_answer_that_is_asked_for_reaches_the_model(
    client: TestClient, provider: MockProvider, asked: object, wanted: object
) -> None:
    provider.queue_text("{}")
    said = {"messages": [{"role": "user", "content": "Where?"}], "response_format": asked}
    assert client.post(CHAT, json=said).status_code == 200
    options = provider.requests[0].options
    assert (options.json_mode, options.response_schema) == wanted


def test_everything_a_caller_brings_reaches_the_model(client: TestClient, provider: MockProvider) -> None:
    provider.queue_tool_call("c2", "weather", {"city": "Oslo"})
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city": "Bergen"}'},
    }
    broken = {"id": "c0", "type": "function", "function": {"name": "weather", "arguments": "{"}}
    answer = client.post(
        CHAT,
        json={
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "And"}, {"type": "text", "text": "Oslo?"}],
                },
                {"role": "assistant", "content": None, "tool_calls": [broken, call]},
                {"role": "tool", "tool_call_id": "c1", "content": "rain"},
            ],
            "tools": [{"type": "function", "function": {"name": "weather", "description": "Now"}}],
            "tool_choice": "required",
            "temperature": 0.5,
            "top_p": 0.9,
            "max_tokens": 5,
            "max_completion_tokens": 9,
            "stop": "END",
            "seed": 3,
            "parallel_tool_calls": False,
            "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": CITY}},
            "n": 1,
            "logprobs": False,
        },
    )
    request = provider.requests[0]
    asked = ToolCall(id="c1", name="weather", arguments={"city": "Bergen"}, raw='{"city": "Bergen"}')
    half = ToolCall(id="c0", name="weather", raw="{", problem="invalid_json")
    assert request.messages == (
        system("Be brief."),
        user("And\nOslo?"),
        assistant("", calls=(half, asked)),
        tool_result("c1", "rain"),
    )
    options = request.options
    assert (options.model, options.temperature, options.top_p, options.max_tokens) == (
        "mock-model",
        0.5,
        0.9,
        9,
    )
    assert (options.stop, options.seed, options.tool_choice) == (("END",), 3, "required")
    assert (options.parallel_tool_calls, options.response_schema) == (False, CITY)
    assert [each.name for each in options.tools] == ["weather"]
    choice = answer.json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"] == [
        {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
    ]


def test_one_tool_that_is_wanted_by_name_is_offered_alone(client: TestClient, provider: MockProvider) -> None:
    offered = [{"type": "function", "function": {"name": name}} for name in ("weather", "tide")]
    asked = {"messages": [{"role": "user", "content": "Hi"}], "tools": offered}

    def call(wanted: str) -> int:
        choice = {"type": "function", "function": {"name": wanted}}
        return client.post(CHAT, json={**asked, "tool_choice": choice}).status_code

    provider.queue_text("ok")
    assert (call("tide"), call("snow")) == (200, 422)
    (options,) = (each.options for each in provider.requests)
    assert ([each.name for each in options.tools], options.tool_choice) == (["tide"], "required")


def chunks(text: str) -> list[Any]:
    lines = [line[6:] for line in text.split("\n\n") if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_a_stream_adds_up_to_the_answer(client: TestClient, provider: MockProvider) -> None:
    provider.queue_events(ReasoningDelta("Hm."), TextDelta("Hel"), TextDelta("lo"))
    asked = {
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    answer = client.post(CHAT, json=asked)
    assert answer.headers["x-accel-buffering"] == "no"
    found = chunks(answer.text)
    deltas = [each["choices"][0]["delta"] for each in found[:-1]]
    assert deltas == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "Hm."},
        {"content": "Hel"},
        {"content": "lo"},
        {},
    ]
    assert found[-2]["choices"][0]["finish_reason"] == "stop"
    assert (found[-1]["choices"], found[-1]["usage"]["total_tokens"]) == ([], 0)

    provider.queue_tool_call("c1", "weather", {})
    found = chunks(client.post(CHAT, json={**asked, "stream_options": None}).text)
    assert found[1]["choices"][0]["delta"]["tool_calls"][0]["index"] == 0
    assert found[-1]["choices"][0]["finish_reason"] == "tool_calls"


def shown(url: str, role: str = "user") -> dict[str, object]:
    content = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    return {"messages": [{"role": role, "content": content}]}


def test_a_picture_in_a_message_reaches_the_model(client: TestClient, provider: MockProvider) -> None:
    provider.queue_text("A pixel.")
    assert client.post(CHAT, json=shown("data:image/png;base64,iVBORw==")).status_code == 200
    picture = FilePart(data=b"\x89PNG", media_type="image/png")
    assert provider.requests[0].messages == (user("What is it?", files=(picture,)),)


@pytest.mark.parametrize(
    ("words", "told"), [([], "image image/png, 4 bytes"), ([{"type": "text", "text": "A map."}], "A map.")]
)
def test_a_picture_that_a_tool_returned_reaches_the_model(
    client: TestClient, provider: MockProvider, words: list[object], told: str
) -> None:
    provider.queue_text("A pixel.")
    pixel = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}
    said = {"role": "tool", "tool_call_id": "c1", "content": [*words, pixel]}
    assert client.post(CHAT, json={"messages": [said]}).status_code == 200
    picture = FilePart(data=b"\x89PNG", media_type="image/png")
    assert provider.requests[0].messages == (tool_result("c1", told, files=(picture,)),)


@pytest.mark.parametrize(
    ("url", "role", "told"),
    [
        ("http://10.0.0.1/secret.png", "user", "nothing is fetched for a caller"),
        ("data:image/png,plain", "user", "nothing is fetched for a caller"),
        ("data:image/png;base64,***", "user", "is not in base64"),
        ("data:image/png;base64,", "user", "a file of 0 bytes"),
        ("data:png;base64,iVBORw==", "user", "'png' is no media type"),
        ("data:image/png;base64,iVBORw==", "assistant", "holds no pictures"),
    ],
)
def test_a_picture_that_is_elsewhere_or_none_is_refused(
    client: TestClient, url: str, role: str, told: str
) -> None:
    answer = client.post(CHAT, json=shown(url, role))
    assert (answer.status_code, told in answer.json()["error"]["message"]) == (422, True)


def test_a_provider_that_is_switched_off_is_offered_to_nobody(client: TestClient) -> None:
    client.put("/api/v1/settings", json={"disabledProviders": ["mock"]})
    assert client.get("/v1/models").json()["data"] == []
    said = {"messages": [{"role": "user", "content": "Hi"}]}
    named = client.post(CHAT, json={**said, "model": "mock-model"}).json()["error"]
    assert (named["code"], named["message"]) == (
        "model_not_found",
        "there is no model 'mock-model'; there are: none",
    )
    unnamed = client.post(CHAT, json=said).json()["error"]
    assert unnamed["message"] == "no model can be asked here; switch a provider on, or name one of: none"


def test_what_goes_wrong_is_said_as_those_clients_read_it(client: TestClient, provider: MockProvider) -> None:
    said = {"messages": [{"role": "user", "content": "Hi"}]}
    unknown = client.post(CHAT, json={**said, "model": "gpt-9"})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
    sound = [{"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}]
    refused = client.post(CHAT, json={"messages": [{"role": "user", "content": sound}]})
    assert (refused.status_code, refused.json()["error"]["type"]) == (422, "invalid_request_error")
    provider.queue_error(ProviderError("unavailable", "the server is down"))
    failed = client.post(CHAT, json=said)
    assert (failed.status_code, failed.json()["error"]["type"]) == (502, "server_error")
    provider.queue_error(ProviderError("unavailable", "the server is down"))
    streamed = client.post(CHAT, json={**said, "stream": True})
    assert (streamed.status_code, chunks(streamed.text)[-1]["error"]["message"]) == (
        200,
        "the server is down",
    )


def test_embeddings_come_as_numbers_or_as_bytes(settings: ServerSettings, parts: Parts) -> None:
    workbench = Workbench(settings, copied(parts, embedder=HashEmbedder(64)))
    with TestClient(workbench.app, base_url=URL, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        one = client.post("/v1/embeddings", json={"input": "wells"}).json()
        two = client.post(
            "/v1/embeddings", json={"input": ["wells", "井位"], "encoding_format": "base64", "dimensions": 64}
        ).json()
        other = client.post("/v1/embeddings", json={"input": "wells", "dimensions": 65})
    row = np.frombuffer(base64.b64decode(two["data"][0]["embedding"]), "<f4")
    assert np.allclose(row, one["data"][0]["embedding"])
    assert (len(row), [each["index"] for each in two["data"]]) == (64, [0, 1])
    assert (other.status_code, other.json()["error"]["message"]) == (
        422,
        "vectors here have 64 dimensions; leave dimensions out",
    )


async def test_an_agui_client_runs_a_thread_that_is_a_conversation(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:
    provider.queue_text("Hello", chunks=2)
    async with served(parts, tmp_path) as live:
        message = {"id": "m1", "role": "user", "content": [{"type": "text", "text": "Hi"}]}
        seen = await agui(live, messages=[message])
        spoken = [kind for kind in kinds(seen) if kind.isupper()]
        assert spoken == [
            "RUN_STARTED",
            "STEP_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "STEP_FINISHED",
            "RUN_FINISHED",
        ]
        assert {each["runId"] for each in seen if "runId" in each} == {"r1"}
        log = (await live.client.get("/api/v1/conversations/t1/entries")).json()["entries"]
        assert [each["content"] for each in log] == ["Hi", "Hello"]

        again = await agui(live, messages=[message])  # its answer got lost: nothing is said twice
        assert kinds(again) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
        assert [each["content"] for each in again[1]["messages"]] == ["Hi", "Hello"]
        assert kinds(await agui(live, runId="r2")) == kinds(again)  # somebody comes back, and it is over


async def test_an_agui_client_that_comes_late_joins_the_run(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:

    gate = Gate()
    provider.queue_events(TextDelta("one "), gate, TextDelta("two"))
    async with served(parts, tmp_path) as live, asyncio.TaskGroup() as group:
        first = group.create_task(agui(live, messages=[{"id": "m1", "role": "user", "content": "Count"}]))
        await gate.reached.wait()
        async with live.client.stream(
            "POST", "/agui/dialog", json={"threadId": "t1", "runId": "late", "messages": []}
        ) as late:
            lines = late.aiter_lines()
            prelude = [json.loads(line[6:]) async for line in _first(lines, 4)]
            gate.opened.set()
            rest = [json.loads(line[6:]) async for line in lines if line]
        assert kinds(prelude) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STEP_STARTED", "TEXT_MESSAGE_START"]
        last = prelude[1]["messages"][-1]
        said = [each["delta"] for each in rest if each["type"] == "TEXT_MESSAGE_CONTENT"]
        ids = {each["messageId"] for each in [*prelude, *rest] if "TEXT_MESSAGE" in each["type"]}
        assert (last["content"], said, ids, rest[-1]["type"]) == (
            "one ",
            ["two"],
            {last["id"]},
            "RUN_FINISHED",
        )
        assert (await first)[-1]["type"] == "RUN_FINISHED"


async def _first(lines: Any, count: int) -> Any:
    async for line in lines:
        if line:
            yield line
            count -= 1
        if not count:
            return


async def test_an_agui_client_answers_an_interrupt(
    parts: Parts, provider: MockProvider, tools: list[Tool], tmp_path: Path
) -> None:
    @tool(requires_approval=True)
    async def erase(name: str) -> str:
        """Erase a file."""
        return f"erased {name}"

    tools.append(erase)
    provider.queue_tool_call("c1", "erase", {"name": "a.txt"}).queue_text("Done.")
    async with served(parts, tmp_path) as live:
        seen = await agui(live, messages=[{"id": "m1", "role": "user", "content": "Erase a.txt"}])
        interrupt = seen[-1]["outcome"]["interrupts"][0]["id"]
        told = await agui(
            live, runId="r2", resume=[{"interruptId": interrupt, "payload": {"approved": True}}]
        )
        results = [each["content"] for each in told if each["type"] == "TOOL_CALL_RESULT"]
        assert (results, told[-1]["outcome"]) == (["erased a.txt"], {"type": "success"})
        provider.queue_text("Welcome.")
        last = await agui(live, runId="r3", messages=[{"id": "m2", "role": "user", "content": "Thanks"}])
        assert last[-1]["type"] == "RUN_FINISHED"
        late = await agui(live, runId="r4", messages=[{"id": "m2", "role": "user", "content": "Thanks"}])
        snapshot = late[1]["messages"]
        assert [each["role"] for each in snapshot] == [
            "user",
            "assistant",
            "activity",
            "tool",
            "assistant",
            "user",
            "assistant",
        ]
        assert snapshot[1]["toolCalls"][0]["function"]["name"] == "erase"


@pytest.mark.parametrize("thread", ["..", "a b", "", "x" * 65])
def test_an_agui_thread_is_named_as_a_conversation_is(client: TestClient, thread: str) -> None:
    answer = client.post("/agui/dialog", json={"threadId": thread, "runId": "r"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


@pytest.mark.parametrize(
    "asked",
    [
        {"messages": []},
        {"messages": [{"id": "1", "role": "user"}]},
        {"messages": [{"id": "1", "role": "user", "content": " "}]},
        {"messages": [{"id": "1", "role": "user", "content": [{"type": "binary", "mimeType": "image/png"}]}]},
        {"messages": [{"id": "1", "role": "user", "content": 7}]},
        {"resume": [{"interruptId": "x", "payload": {}}]},
    ],
)
def test_an_agui_call_that_asks_nothing_begins_no_conversation(
    client: TestClient, asked: dict[str, object]
) -> None:
    answer = client.post("/agui/dialog", json={"threadId": "t1", "runId": "r", **asked})
    assert answer.status_code in {404, 422}
    assert client.get("/api/v1/conversations").json()["items"] == []
