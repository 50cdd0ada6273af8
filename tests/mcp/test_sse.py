"""Servers of the older remote way, and finding out that a server is one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dialoom.mcp import BearerAuth, MCPClient, McpError, Transport
from tests.mcp.hostile import http, said
from tests.mcp.hostile_http import Refusal
from tests.mcp.hostile_sse import HostileSse, hostile_sse


@asynccontextmanager
async def served(**settings: Any) -> AsyncIterator[tuple[HostileSse, MCPClient]]:
    async with asyncio.timeout(60), hostile_sse() as server:
        client = MCPClient(http(server.url, **settings).set_transport(Transport.SSE))
        try:
            yield server, client
        finally:
            await client.close()


async def test_messages_are_posted_where_the_server_says_and_answered_on_its_stream() -> None:
    async with served(auth=BearerAuth(token="token-1"), headers={"X-Tenant": "acme"}) as (server, client):
        assert (await client.initialize()).protocol == "2025-11-25"
        assert said(await client.call_tool("echo", {"n": 1})) == '{"n": 1}'
        assert len(said(await client.call_tool("big", {"bytes": 2_000_000}))) == 2_000_000
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer token-1"}
    assert {request.headers["x-tenant"] for request in server.requests} == {"acme"}


async def test_a_post_that_fails_costs_its_request_only() -> None:
    async with served() as (server, client):
        await client.initialize()
        server.refusals.append(Refusal(503, {"retry-after": "3"}))
        with pytest.raises(McpError) as failed:
            await client.call_tool("echo")
        assert (failed.value.kind, failed.value.facts.retry_after) == ("status", 3.0)
        server.refusals.append(Refusal(0, {}, None))
        with pytest.raises(McpError) as failed:
            await client.call_tool("echo")
        assert failed.value.kind == "closed"
        assert said(await client.call_tool("echo")) == "{}"
        assert len(server.of("initialize")) == 1


async def test_a_stream_that_is_cut_is_connected_again() -> None:
    async with served() as (server, client):
        await client.initialize()
        server.cut()
        await server.until("initialize", 2)
        assert said(await client.call_tool("echo")) == "{}"


@pytest.mark.parametrize(
    ("endpoint", "kind", "words"),
    [
        ("", "start", "the event stream ended before it named an address"),
        ("http://elsewhere.example/messages", "config", "wants messages sent to another host"),
    ],
)
async def test_a_server_that_names_no_address_of_its_own_is_refused(
    endpoint: str, kind: str, words: str
) -> None:
    async with served() as (server, client):
        server.endpoint = endpoint
        with pytest.raises(McpError, match=words) as failed:
            await client.initialize()
        assert failed.value.kind == kind


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        ("401", "auth", "the server answered HTTP 401 X; log in, or check its headers and token"),
        ("500", "status", "the server answered HTTP 500 X"),
    ],
)
async def test_a_stream_that_is_refused_says_how(status: str, kind: str, words: str) -> None:
    async with served() as (server, client):
        server.endpoint = status
        with pytest.raises(McpError) as failed:
            await client.initialize()
        assert (failed.value.kind, failed.value.facts.status) == (kind, int(status))
        assert str(failed.value) == f"mcp server 'remote': {words}"


async def test_nobody_at_the_address_is_said_in_words() -> None:
    async with served() as (server, client):
        await server.stop()
        with pytest.raises(McpError, match="no connection could be made; is it running") as failed:
            await client.initialize()
        assert failed.value.kind == "connect"
        await server.start()


async def test_an_address_is_not_asked_for_again_by_a_second_announcement() -> None:
    async with served() as (server, client):
        await client.initialize()
        server.streams[-1].write(
            b"event: endpoint\ndata: http://elsewhere.example/\n\nevent: other\ndata: x\n\n"
        )
        assert said(await client.call_tool("echo")) == "{}"


async def test_where_a_file_does_not_say_which_it_is_the_older_way_is_tried_too() -> None:
    async with asyncio.timeout(60), hostile_sse() as server:
        server.refuses_streamable = True
        async with MCPClient(http(server.url, sse_fallback=True)) as client:
            assert said(await client.call_tool("echo")) == "{}"
        client = MCPClient(http(server.url))
        with pytest.raises(McpError) as failed:
            await client.initialize()
        assert (failed.value.kind, failed.value.facts.status) == ("status", 405)
        await client.close()


async def test_a_refused_login_is_no_reason_to_try_another_way() -> None:
    async with asyncio.timeout(60), hostile_sse() as server:
        server.refusals.extend([Refusal(401)] * 2)
        client = MCPClient(http(server.url, sse_fallback=True))
        with pytest.raises(McpError) as failed:
            await client.initialize()
        assert failed.value.kind == "auth"
        assert server.of("GET") == []
        await client.close()
