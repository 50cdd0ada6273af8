"""What the settings of a config mean once a connection is made."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from dialoom.mcp import MCPClient, McpError, MCPHost, MCPOptions, MCPServerConfig, Transport, Variables
from tests.mcp.hostile import said, stdio
from tests.mcp.hostile_http import hostile_http
from tests.mcp.hostile_sse import hostile_sse


@pytest.mark.promise("mcpconfig-005", "mcpconfig-027", "mcpconfig-034")
async def test_a_child_gets_its_arguments_one_by_one_and_its_variables_on_top_of_ours(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("INHERITED", "from us")
    monkeypatch.setenv("OVER", "theirs")
    config = stdio("/my data/notes", "$HOME; echo `id`", "")
    config.set_environment({**config.environment, "ADDED": "${WORD} here", "OVER": "ours"})
    options = MCPOptions(variables=Variables(environment={"WORD": "put in"}))
    async with MCPClient(config, options) as client:
        argv = json.loads(said(await client.call_tool("argv")))
        told = json.loads(
            said(await client.call_tool("env", {"names": ["ADDED", "OVER", "INHERITED", "PATH"]}))
        )
    assert argv == ["/my data/notes", "$HOME; echo `id`", ""]
    assert told == {
        "ADDED": "put in here",
        "OVER": "ours",
        "INHERITED": "from us",
        "PATH": os.environ["PATH"],
    }
    assert config.environment["ADDED"] == "${WORD} here"


@pytest.mark.promise("mcpconfig-006", "mcpconfig-035")
async def test_sse_receives_events_and_sends_by_post_with_the_headers():
    async with hostile_sse() as server:
        config = MCPServerConfig(
            "remote", transport=Transport.SSE, url=server.url, headers={"X-Tenant": "acme"}
        )
        async with MCPClient(config) as client:
            await client.list_tools()
        assert {request.method for request in server.requests} == {"GET", "POST"}
        assert {request.headers.get("x-tenant") for request in server.requests} == {"acme"}


@pytest.mark.promise("mcpconfig-007", "mcpconfig-035")
@pytest.mark.parametrize("by_stream", [False, True])
async def test_streamable_http_does_all_on_one_endpoint_with_the_headers(by_stream: bool):
    async with hostile_http() as server:
        server.answers_by_stream = by_stream
        config = MCPServerConfig("remote", transport=Transport.STREAMABLE_HTTP, url=server.url)
        config.set_headers({"Authorization": "Bearer ${TOKEN}"})
        options = MCPOptions(variables=Variables(environment={"TOKEN": "t0ken"}))
        async with MCPClient(config, options) as client:
            assert [tool.name for tool in await client.list_tools()] == ["echo"]
            assert said(await client.call_tool("echo", {"n": 1})) == '{"n": 1}'
            await server.until_streams(1)
            changed = asyncio.Event()
            client.on_list_changed(lambda *_: changed.set())
            await server.push({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            async with asyncio.timeout(30):
                await changed.wait()
    # questions and answers, notices of the server and the end of the session: all at the one address
    assert {(request.method, request.path) for request in server.requests} == {
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
    }
    assert {request.headers.get("authorization") for request in server.requests} == {"Bearer t0ken"}
    for request in server.of("POST"):
        assert {"application/json", "text/event-stream"} <= set(request.headers["accept"].split(", "))


@pytest.mark.promise("mcpconfig-029", "mcpconfig-033")
async def test_a_server_starts_by_itself_when_it_is_first_used_or_never():
    never = stdio().set_name("never").set_enabled(False)
    configs = [stdio().set_name("at once"), stdio().set_name("later").set_auto_start(False), never]
    async with MCPHost(configs) as host:
        started = await host.settle(30)
        assert [(each.name, each.state) for each in started] == [("at once", "ready"), ("later", "idle")]
        assert said(await host["later"].call_tool("echo", {"n": 1})) == '{"n": 1}'
        assert host["later"].state == "ready"
        assert "never" not in host
    with pytest.raises(McpError, match="never"):
        await MCPClient(never).initialize()


async def test_an_unset_variable_is_named_and_nothing_is_started(tmp_path: Path):
    marker = tmp_path / "started"
    config = MCPServerConfig("peer", command="touch", arguments=[str(marker), "${NOT_SET}"])
    with pytest.raises(McpError, match="needs variable NOT_SET, which is not set"):
        await MCPClient(config).initialize()
    assert not marker.exists()
