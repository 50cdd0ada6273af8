"""Servers of the newest revision keep no session: their notices come on a stream that is listened to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from mcp.server.mcpserver import Context, MCPServer

from dialoom.mcp import MCPClient, McpError, McpTimeouts
from tests.mcp.hostile import http
from tests.mcp.scripted import Refused, Scripted


class Begun:
    """A call that waits for ever: when it began, and when it was stopped."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.stopped = asyncio.Event()


def announcing(call: Begun | None = None) -> MCPServer[Any]:
    """A server whose tools announce what they are told to, and wait."""
    server: MCPServer[Any] = MCPServer("announcing")

    @server.tool()
    async def wait() -> str:
        assert call is not None
        call.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            call.stopped.set()
        return ""

    @server.tool()
    async def announce(what: str, ctx: Context[Any, Any]) -> str:
        match what:
            case "tools":
                await ctx.notify_tools_changed()
            case "resources":
                await ctx.notify_resources_changed()
            case uri:
                await ctx.notify_resource_updated(uri)
        return "announced"

    @server.resource("memo://{name}")
    def memo(name: str) -> str:
        return name

    return server


@asynccontextmanager
async def running(port: int = 0, call: Begun | None = None) -> AsyncIterator[int]:
    """The server over HTTP in this loop; gives its port."""
    app = announcing(call).streamable_http_app()
    server = uvicorn.Server(
        uvicorn.Config(app, port=port, log_level="critical", ws="none", timeout_graceful_shutdown=0)
    )
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn tells nobody
        await asyncio.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await serving


class Notices:
    """What a client was told, one after the other."""

    def __init__(self, client: MCPClient) -> None:
        self._told: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        client.set_notification_handler(lambda method, params: self._told.put_nowait((method, params)))

    async def next(self) -> tuple[str, str | None]:
        async with asyncio.timeout(60):
            method, params = await self._told.get()
        return method, params.get("uri")


async def test_changes_of_lists_and_resources_are_told() -> None:
    async with (
        asyncio.timeout(60),
        running() as port,
        MCPClient(http(f"http://127.0.0.1:{port}/mcp")) as client,
    ):
        notices = Notices(client)
        await client.subscribe_resource("memo://a")
        await client.call_tool("announce", {"what": "tools"})
        assert await notices.next() == ("notifications/tools/list_changed", None)
        assert (client.tools_changed(), client.resources_changed()) == (True, False)
        await client.call_tool("announce", {"what": "memo://a"})
        assert await notices.next() == ("notifications/resources/updated", "memo://a")
        await client.unsubscribe_resource("memo://a")
        await client.subscribe_resource("memo://b")
        await client.call_tool("announce", {"what": "memo://a"})
        await client.call_tool("announce", {"what": "memo://b"})
        assert await notices.next() == ("notifications/resources/updated", "memo://b")


async def test_a_stopped_call_ends_at_a_newer_server_as_well() -> None:
    call, url = Begun(), "http://127.0.0.1:{}/mcp"
    async with asyncio.timeout(60), running(call=call) as port, MCPClient(http(url.format(port))) as client:
        calling = asyncio.create_task(client.call_tool("wait"))
        await call.began.wait()
        calling.cancel()
        await call.stopped.wait()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert (await client.call_tool("announce", {"what": "tools"})).is_error is False


async def test_a_server_that_was_started_anew_is_listened_to_again() -> None:
    told = asyncio.Event()

    async def listener(kinds: frozenset[str]) -> None:
        told.set()

    async with running() as port:
        client = MCPClient(http(f"http://127.0.0.1:{port}/mcp"))
        await client.subscribe_resource("memo://a")
        client.on_list_changed(listener)
    async with asyncio.timeout(60), running(port):
        await told.wait()
        assert client.tools_changed(), "nobody told what changed meanwhile"
        notices = Notices(client)
        await client.subscribe_resource("memo://b")
        await client.call_tool("announce", {"what": "memo://a"})
        assert await notices.next() == ("notifications/resources/updated", "memo://a")
        await client.close()


def newer(listen: Any, able: Any = None) -> Scripted:
    able = able or {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
    discovered = {
        "supportedVersions": ["2026-07-28"],
        "capabilities": able,
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }
    return Scripted({"server/discover": lambda _: discovered, "subscriptions/listen": listen})


def refuses(_: Any) -> Any:
    raise Refused(-32601, "Method not found")


async def test_a_server_without_notices_says_so_and_is_used_all_the_same() -> None:
    server = newer(refuses)
    async with asyncio.timeout(60), server.client() as client:
        await server.until_asked("subscriptions/listen")
        with pytest.raises(McpError, match="will not tell of 'memo://a': it tells of no changes"):
            await client.subscribe_resource("memo://a")
        with pytest.raises(McpError, match="will not tell of 'memo://b': it tells of no changes"):
            await client.subscribe_resource("memo://b")  # nobody listens any more, and this is known at once
        assert len(server.asked("subscriptions/listen")) == 1


async def test_a_stream_that_is_cut_again_and_again_is_asked_for_less_and_less() -> None:
    def fails(_: Any) -> Any:
        raise Refused(-32000, "busy")

    server = newer(fails)
    client = MCPClient.over(
        server.transport, name="scripted", timeouts=McpTimeouts(reconnect=0.01, max_reconnect=0.05)
    )
    async with asyncio.timeout(60), client:
        await server.until_asked("subscriptions/listen", 4)
        assert not client.tools_changed(), "nothing is heard yet, so there is nothing to look at"


async def test_a_server_with_nothing_to_announce_is_listened_to_when_something_is_wanted() -> None:
    server = newer(lambda _: None, {"resources": {"subscribe": True}})
    async with asyncio.timeout(60), server.client() as client:
        await client.resources()
        assert server.asked("subscriptions/listen") == []
        wanting = asyncio.create_task(client.subscribe_resource("memo://a"))
        await server.until_asked("subscriptions/listen")
        listening = next(each for each in server.heard if each.get("method") == "subscriptions/listen")
        meta = {"io.modelcontextprotocol/subscriptionId": listening["id"]}
        granted = {"resourceSubscriptions": ["memo://other"]}
        await server.tell("notifications/subscriptions/acknowledged", _meta=meta, notifications=granted)
        with pytest.raises(McpError, match="it does not tell of this resource"):
            await wanting


async def acknowledge(server: Scripted, number: int, *uris: str) -> None:
    """Take the listening request of this number, and tell of these resources."""
    await server.until_asked("subscriptions/listen", number)
    asked = [each for each in server.heard if each.get("method") == "subscriptions/listen"][number - 1]
    meta = {"io.modelcontextprotocol/subscriptionId": asked["id"]}
    await server.tell(
        "notifications/subscriptions/acknowledged",
        _meta=meta,
        notifications={"toolsListChanged": True, "resourceSubscriptions": list(uris)},
    )


async def test_what_is_wanted_before_the_stream_of_lists_is_there_is_not_refused_by_it() -> None:
    server = newer(lambda _: None)
    async with asyncio.timeout(60), server.client() as client:
        await server.until_asked("subscriptions/listen")
        wanting = asyncio.create_task(client.subscribe_resource("memo://a"))
        await acknowledge(server, 1)
        await acknowledge(server, 2, "memo://a")
        await wanting


async def test_one_refused_resource_is_no_answer_to_another() -> None:
    server = newer(lambda _: None, {"resources": {"subscribe": True}})
    async with asyncio.timeout(60), server.client() as client:
        one = asyncio.create_task(client.subscribe_resource("memo://a"))
        await server.until_asked("subscriptions/listen")
        other = asyncio.create_task(client.subscribe_resource("memo://b"))
        await acknowledge(server, 2, "memo://b")
        await other
        with pytest.raises(McpError, match="will not tell of 'memo://a': it does not tell of this resource"):
            await one
