"""Configs that come from others reach what a policy allows, and nothing else."""

import asyncio
from collections.abc import Sequence

import httpx2
import pytest

from dialoom.mcp import MCPClient, McpError, MCPOptions, Transport
from dialoom.mcp.sdk.guarded import GuardedTransport
from dialoom.net.guard import UrlPolicy, UrlRefusedError
from tests.mcp.hostile import http, said
from tests.mcp.hostile_http import Refusal, hostile_http
from tests.mcp.hostile_sse import hostile_sse

HERE = UrlPolicy(allow_networks=("127.0.0.1/32",), ports=None)


class Names:
    """A resolver that knows what it is told."""

    def __init__(self, **known: str) -> None:
        self._known = known
        self.asked: list[str] = []

    async def resolve(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        return [self._known[host.partition(".")[0]]]


async def test_a_private_address_is_not_asked_anything() -> None:
    async with asyncio.timeout(60), hostile_http() as server:
        client = MCPClient(http(server.url), MCPOptions(url_policy=UrlPolicy(ports=None)))
        with pytest.raises(McpError, match="leads to an address that is not public") as failed:
            await client.initialize()
        assert (failed.value.kind, client.state, server.requests) == ("config", "failed", [])
        await client.close()


@pytest.mark.parametrize("transport", [Transport.STREAMABLE_HTTP, Transport.SSE])
async def test_an_allowed_one_is_used_by_its_name(transport: Transport) -> None:
    opened = hostile_sse() if transport is Transport.SSE else hostile_http()
    async with asyncio.timeout(60), opened as server:
        config = http(server.url.replace("127.0.0.1", "localhost")).set_transport(transport)
        async with MCPClient(config, MCPOptions(url_policy=HERE)) as client:
            assert said(await client.call_tool("echo")) == "{}"
        assert {request.headers["host"].partition(":")[0] for request in server.requests} == {"localhost"}


async def test_a_name_is_looked_up_once_and_its_answer_is_where_the_request_goes() -> None:
    names = Names(tools="127.0.0.1", inside="10.0.0.1")
    async with (
        hostile_http() as server,
        httpx2.AsyncClient(transport=GuardedTransport(HERE, resolver=names)) as client,
    ):
        server.gets.append("404")
        port = httpx2.URL(server.url).port
        assert (await client.get(f"http://tools.example:{port}/")).status_code == 404
        with pytest.raises(UrlRefusedError, match="is not public"):
            await client.get(f"http://inside.example:{port}/")
    assert names.asked == ["tools.example", "inside.example"]
    assert [request.headers["host"] for request in server.requests] == [f"tools.example:{port}"]


async def test_a_redirect_leads_nowhere_else() -> None:
    options = MCPOptions(url_policy=HERE)
    async with asyncio.timeout(60), hostile_http() as server, MCPClient(http(server.url), options) as client:
        await client.initialize()
        server.refusals.append(Refusal(307, {"location": "http://169.254.169.254/latest"}))
        with pytest.raises(McpError, match="not followed"):
            await client.call_tool("echo")
