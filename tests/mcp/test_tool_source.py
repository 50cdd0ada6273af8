"""Tool servers as a center of dialogs uses them."""

import asyncio
from typing import Any

import pytest

from dialoom.conversation import TextEntry
from dialoom.dialog import Center, ToolSource
from dialoom.llm import MockProvider
from dialoom.mcp import MCPClient, McpError, MCPOptions, MCPServerConfig
from dialoom.mcp.tool_source import MCPToolSource
from tests.mcp import official
from tests.mcp.official import Peer

SERVER = MCPServerConfig("peer", command="unused")


def source_of(peer: Peer, clients: list[MCPClient]) -> ToolSource:
    def connect(config: MCPServerConfig) -> MCPClient:
        client = MCPClient.in_process(peer.server, name=config.name, options=MCPOptions(era="legacy"))
        clients.append(client)
        return client

    return MCPToolSource(connect)


async def test_a_dialog_uses_the_tools_of_the_servers_in_its_kit():
    peer, clients = Peer(official.tool("echo")), list[MCPClient]()
    model = MockProvider().queue_tool_call("1", "peer__echo", {"words": "hi"}).queue_text("it said hi")
    async with asyncio.timeout(60), Center(tool_source=source_of(peer, clients)) as center:
        center.add_provider(model).add_mcp(SERVER)
        result = await center.new_dialog().send("say hi")
    assert (result.text, peer.calls) == ("it said hi", [("echo", {"words": "hi"})])
    assert [client.state for client in clients] == ["closed"]


async def test_tools_follow_what_the_server_announces():
    peer, clients, told = (
        Peer(official.tool("echo"), official.tool("grow")),
        list[MCPClient](),
        asyncio.Event(),
    )

    async def grow(ctx: Any, params: Any) -> str:
        peer.tools.append(official.tool("new"))
        await ctx.session.send_tool_list_changed()
        return "grown"

    async def tell(kinds: object) -> None:
        told.set()

    peer.do_grow = grow  # pyright: ignore[reportAttributeAccessIssue] - found by its name
    async with asyncio.timeout(60):
        connection = await source_of(peer, clients).open(SERVER)
        assert [each.name for each in connection.tools] == ["peer__echo", "peer__grow"]
        clients[0].on_list_changed(tell)  # the listeners are told one after the other, this one last
        await clients[0].call_tool("grow")
        await told.wait()
        assert [each.name for each in connection.tools] == ["peer__echo", "peer__grow", "peer__new"]
        await connection.aclose()
        await connection.aclose()


async def test_a_refresh_that_fails_leaves_the_tools_as_they_were(caplog: pytest.LogCaptureFixture):
    peer, clients, told = (
        Peer(official.tool("echo"), official.tool("spoil")),
        list[MCPClient](),
        asyncio.Event(),
    )

    async def spoil(ctx: Any, params: Any) -> str:
        peer.broken = True
        await ctx.session.send_tool_list_changed()
        return "spoilt"

    async def tell(kinds: object) -> None:
        told.set()

    peer.do_spoil = spoil  # pyright: ignore[reportAttributeAccessIssue] - found by its name
    async with asyncio.timeout(60):
        connection = await source_of(peer, clients).open(SERVER)
        clients[0].on_list_changed(tell)
        await clients[0].call_tool("spoil")
        await told.wait()
        assert [each.name for each in connection.tools] == ["peer__echo", "peer__spoil"]
        assert "tools not refreshed" in caplog.messages
        await connection.aclose()


async def test_a_server_that_cannot_be_used_leaves_nothing_open():
    with pytest.raises(McpError, match="nonesuch"):
        await MCPToolSource().open(MCPServerConfig("peer", command="nonesuch"))


@pytest.mark.promise("mcpconfig-036")
async def test_of_one_name_the_later_config_counts_and_the_dialog_s_over_the_center_s():
    peer, used = Peer(official.tool("echo")), list[str]()

    def connect(config: MCPServerConfig) -> MCPClient:
        used.append(config.command)
        return MCPClient.in_process(peer.server, name=config.name)

    model = MockProvider().queue_text("one").queue_text("two")
    async with asyncio.timeout(60), Center(tool_source=MCPToolSource(connect)) as center:
        center.add_provider(model)
        center.add_mcp(MCPServerConfig("peer", command="old")).add_mcp(MCPServerConfig("peer", command="new"))
        dialog = center.new_dialog().add_mcp(MCPServerConfig("peer", command="own"))
        await dialog.send("hi")
        await center.new_dialog().send("hi")
    assert used == ["own", "new"]


async def test_what_a_server_asks_is_a_form_card_of_the_dialog():
    peer, clients = Peer(official.tool("ask")), list[MCPClient]()
    model = MockProvider().queue_tool_call("1", "peer__ask", {}).queue_text("noted")

    def connect(config: MCPServerConfig) -> MCPClient:
        clients.append(MCPClient.in_process(peer.server, name=config.name))
        return clients[-1]

    async with asyncio.timeout(60), Center(tool_source=MCPToolSource(connect)) as center:
        center.add_provider(model).add_mcp(SERVER)
        dialog = center.new_dialog()
        first = await dialog.send("ask me")
        second = await dialog.answer(first.waiting[0], "submit", {"values": {"value": "Ann"}})
        result = await dialog.answer(second.waiting[0], "submit", {"values": {"value": "blue"}})
    shown = [
        entry.content for entry in dialog.messages if isinstance(entry, TextEntry) and entry.role == "tool"
    ]
    assert (result.text, shown) == ("noted", ["Ann likes blue"])
