"""A marked secret stands in no store of a server, no event, no answer of its API and no page of it."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dialoom.agent import AGENT_TYPES
from dialoom.dialog import Center, Stores
from dialoom.llm import Model, OpenAIProvider
from dialoom.mcp import BearerAuth
from dialoom.mcp.tool_source import MCPToolSource
from dialoom.server import Parts
from dialoom.stores import SqliteCheckpointStore, SqliteConversationStore
from dialoom.testing.wire import WireReply, WireRequest, WireServer
from tests.llm.test_secrets import everything_is_logged
from tests.mcp.hostile import http
from tests.mcp.hostile_http import HostileHttp, Refusal, hostile_http
from tests.server.live import BOUND, Live, following, served

KEY = "sk-ant-marker-0123456789abcdef"
HEADER = "team-marker-abcdef0123456789"
TOLD = f'{{"jsonrpc": "2.0", "id": null, "error": {{"code": -1, "message": "bad key {HEADER}"}}}}'.encode()


def model(request: WireRequest, tools: HostileHttp) -> WireReply:
    """Calls the tool, which is refused, then fails and repeats the key it was asked with."""
    assert request.headers["authorization"] == f"Bearer {KEY}"
    if request.method == "GET":
        return WireReply(body=(b'{"data": [{"id": "m"}]}',))
    asked: Any = request.json()
    if asked["messages"][-1]["role"] == "tool" or "tools" not in asked:
        error = {"error": {"message": f"bad key {KEY}", "type": KEY, "code": KEY}}
        return WireReply(status=401, headers={"x-request-id": KEY}, body=(msgspec.json.encode(error),))
    (tool,) = [
        each["function"]["name"] for each in asked["tools"] if each["function"]["name"].endswith("echo")
    ]
    tools.refusals.append(Refusal(500, {}, TOLD))
    call = {"id": "c1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
    chunk = {
        "choices": [
            {"index": 0, "delta": {"tool_calls": [{"index": 0, **call}]}, "finish_reason": "tool_calls"}
        ]
    }
    body = b"data: " + msgspec.json.encode(chunk) + b"\n\ndata: [DONE]\n\n"
    return WireReply(headers={"content-type": "text/event-stream"}, body=(body,))


async def everything_served(live: Live, conversation: str) -> dict[str, str]:
    """Every page and every answer to GET that the API's own description names, by its path."""
    document = (await live.client.get("/openapi.json")).json()
    paths = [
        path for path, calls in document["paths"].items() if "get" in calls and not path.endswith("events")
    ]
    known = [path.replace("{id}", conversation).replace("{thread}", conversation) for path in paths]
    pages = ["/", f"/c/{conversation}", "/plain", f"/plain/{conversation}", "/metrics", "/openapi.json"]
    formats = [
        f"/api/v1/conversations/{conversation}/export?format={each}" for each in ("json", "md", "html")
    ]
    whole = [path for path in known if "{" not in path]
    return {path: (await live.client.get(path)).text for path in (*whole, *pages, *formats)}


@pytest.mark.slow
async def test_a_run_whose_model_and_tool_server_repeat_their_secrets_keeps_and_shows_none_of_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    everything_is_logged(caplog)
    with (
        SqliteConversationStore(tmp_path / "conversations.sqlite") as store,
        SqliteCheckpointStore(tmp_path / "checkpoints", types=AGENT_TYPES) as checkpoints,
    ):
        async with (
            asyncio.timeout(BOUND),
            hostile_http() as tools,
            WireServer(lambda request: model(request, tools)) as server,
            OpenAIProvider(f"{server.url}/v1", KEY) as provider,
        ):
            config = http(tools.url, headers={"X-Key": HEADER}, auth=BearerAuth(token=HEADER))

            def center(stores: Stores) -> Center:
                return (
                    Center(stores, tool_source=MCPToolSource())
                    .add_provider(provider, models=[Model(id="m", provider="openai")])
                    .add_mcp(config)
                )

            parts = Parts(store=store, checkpoints=checkpoints, center=center)
            async with served(parts, tmp_path / "data") as live:
                conversation = await live.begin()
                async with following(live, f"/api/v1/conversations/{conversation}/events") as events:
                    said = await live.client.post(
                        f"/api/v1/conversations/{conversation}/messages", json={"text": "Echo."}
                    )
                    assert said.status_code == 202, said.text
                    told = await events.until("RUN_ERROR")
                shown = await everything_served(live, conversation)
            assert [request.headers["x-key"] for request in tools.of("tools/call")] == [HEADER]
            assert [request.method for request in server.requests].count("POST") == 2
    assert len(shown) > 25
    assert "Echo." in shown[f"/api/v1/conversations/{conversation}/entries"]
    kept = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any(b"Echo." in held for held in kept.values())
    assert [name for name, held in kept.items() if b"marker" in held] == []
    assert [path for path, text in shown.items() if "marker" in text] == []
    assert "marker" not in str(told)
    assert "marker" not in caplog.text
    assert any(record.levelno == logging.DEBUG for record in caplog.records)
