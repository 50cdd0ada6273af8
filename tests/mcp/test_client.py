"""A client in use: lists, tools, resources, prompts, notices; the server answers by script, in-process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dialoom.base.errors import UsageError
from dialoom.mcp import MCPClient, McpError, MCPOptions, MCPServerConfig, McpTimeouts, MemoryTransport
from dialoom.mcp.changes import DEBOUNCE_SECONDS
from dialoom.mcp.client import ServerFacts
from dialoom.testing import ManualClock
from dialoom.testing.clock import settle
from tests.mcp.scripted import EVERYTHING, Answer, Refused, Scripted, paged, tool

NAMES = ("a", "b", "c", "d", "e")


@asynccontextmanager
async def connected(server: Scripted, options: MCPOptions | None = None) -> AsyncIterator[MCPClient]:
    async with asyncio.timeout(60), server.client(options) as client:
        yield client


def three_pages(key: str, items: list[Any]) -> Answer:
    return paged(key, {None: (items[:2], "2"), "2": (items[2:4], "4"), "4": (items[4:], None)})


@pytest.mark.promise("mcp-001", "mcp-052")
async def test_initialize_shakes_hands_and_says_that_it_is_done() -> None:
    server = Scripted()
    async with connected(server) as client:
        assert await client.initialize() == ServerFacts(
            name="scripted",
            version="2",
            protocol="2025-11-25",
            capabilities=EVERYTHING,
            instructions="Be brief.",
        )
    methods = [message["method"] for message in server.heard]
    assert methods == ["server/discover", "initialize", "notifications/initialized"]


async def test_a_client_that_cannot_connect_as_it_is_entered_leaves_nothing_behind() -> None:
    for command in ("no-such-program", "false"):  # will not be tried again; would be, for ever
        client = MCPClient(MCPServerConfig("lost", command=command))
        with pytest.raises(McpError):
            async with asyncio.timeout(60), client:
                pass
        assert client.state == "closed"
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.promise("mcp-002", "mcp-003", "mcp-004", "mcp-005")
async def test_every_list_has_all_its_pages() -> None:
    server = Scripted(
        {
            "tools/list": three_pages("tools", [tool(name) for name in NAMES]),
            "resources/list": three_pages("resources", [{"uri": f"x:{n}", "name": n} for n in NAMES]),
            "resources/templates/list": three_pages(
                "resourceTemplates", [{"uriTemplate": f"x:{n}/{{id}}", "name": n} for n in NAMES]
            ),
            "prompts/list": three_pages("prompts", [{"name": name} for name in NAMES]),
        }
    )
    async with connected(server) as client:
        lists = (
            await client.list_tools(),
            await client.list_resources(),
            await client.list_resource_templates(),
            await client.list_prompts(),
        )
    assert [tuple(item.name for item in items) for items in lists] == [NAMES] * 4


@pytest.mark.promise("mcp-006")
async def test_a_repeated_cursor_is_an_error_and_no_endless_listing() -> None:
    server = Scripted({"tools/list": paged("tools", {None: ([tool("a")], "x"), "x": ([tool("b")], "x")})})
    async with connected(server) as client:
        with pytest.raises(McpError, match="repeats a cursor in a list, which would never end"):
            await client.list_tools()
    assert len(server.asked("tools/list")) == 2


async def test_a_list_without_an_end_is_an_error_after_ten_thousand_items() -> None:
    many = [tool(f"tool-{number}") for number in range(2_000)]
    server = Scripted(
        {"tools/list": lambda params: {"tools": many, "nextCursor": str(int(params.get("cursor", 0)) + 1)}}
    )
    async with connected(server) as client:
        with pytest.raises(McpError, match="has more than 10000 items"):
            await client.list_tools()


async def test_an_item_that_comes_twice_is_listed_once_and_reported() -> None:
    server = Scripted({"tools/list": lambda _: {"tools": [tool("a"), tool("b"), tool("a", title="other")]}})
    async with connected(server) as client:
        assert [(each.name, each.title) for each in await client.tools()] == [("a", None), ("b", None)]
        assert [(each.kind, each.name, each.reason) for each in client.skipped] == [
            ("tools", "a", "comes twice")
        ]


async def test_what_a_server_cannot_do_is_empty_and_not_asked_for() -> None:
    server = Scripted(able={"tools": {}})
    async with connected(server) as client:
        assert (await client.prompts(), await client.resources()) == ((), ())
    assert server.asked("prompts/list") == []


@pytest.mark.promise("mcp-007")
async def test_a_call_gives_what_the_server_answered() -> None:
    answer = {
        "content": [{"type": "text", "text": "5"}],
        "structuredContent": {"sum": 5},
        "_meta": {"took": 1},
    }
    server = Scripted({"tools/call": lambda _: answer})
    async with connected(server) as client:
        result = await client.call_tool("add", {"a": 2, "b": 3})
    assert result.model_dump(by_alias=True, exclude_unset=True) == answer
    (asked,) = server.asked("tools/call")
    assert (asked["name"], asked["arguments"]) == ("add", {"a": 2, "b": 3})
    assert "progressToken" in asked["_meta"], "so that a server can show signs of life"


async def test_what_no_request_can_be_made_of_is_not_laid_at_the_servers_door() -> None:
    async with connected(Scripted({"prompts/get": lambda _: {}})) as client:
        for ask in (
            lambda: client.call_tool("search", "x"),  # type: ignore[arg-type]  # what a program may do
            lambda: client.call_tool(5),  # type: ignore[arg-type]  # what a program may do
            lambda: client.read_resource(None),  # type: ignore[arg-type]  # what a program may do
            lambda: client.get_prompt("greet", {"age": 5}),  # type: ignore[dict-item]  # what a program may do
            lambda: client.complete({}, ("a", "b")),
        ):
            with pytest.raises(UsageError) as caught:
                await ask()
            assert str(caught.value) == (
                "no mcp request can be made of this;"
                " names and addresses are texts, and arguments a dict by name"
            )
        with pytest.raises(UsageError, match="an argument of an mcp request is no JSON; give texts, numbers"):
            await client.call_tool("search", {"words": object()})


@pytest.mark.promise("mcp-008", "mcp-009", "mcp-010")
async def test_resources_and_prompts_are_listed_and_read() -> None:
    server = Scripted(
        {
            "resources/list": lambda _: {"resources": [{"uri": "memo:1", "name": "memo"}]},
            "resources/templates/list": lambda _: {"resourceTemplates": []},
            "resources/read": lambda params: {"contents": [{"uri": params["uri"], "text": "buy milk"}]},
            "prompts/list": lambda _: {"prompts": [{"name": "greet"}]},
            "prompts/get": lambda params: {
                "messages": [
                    {"role": "user", "content": {"type": "text", "text": f"Hi {params['arguments']['who']}"}}
                ]
            },
        }
    )
    async with connected(server) as client:
        (resource,) = await client.resources()
        assert await client.resource_templates() == ()
        (prompt,) = await client.prompts()
        (content,) = (await client.read_resource(resource.uri)).contents
        (message,) = (await client.get_prompt(prompt.name, {"who": "Ada"})).messages
    assert (content.text, message.content.text) == ("buy milk", "Hi Ada")


async def test_an_argument_of_a_prompt_or_a_template_is_completed() -> None:
    server = Scripted(
        {
            "completion/complete": lambda params: {
                "completion": {"values": [params["argument"]["value"] + "!"]}
            }
        }
    )
    async with connected(server) as client:
        assert await client.complete({"name": "greet"}, ("who", "Ad")) == ("Ad!",)
        assert await client.complete({"uri": "x:{id}"}, ("id", "4"), known={"kind": "memo"}) == ("4!",)
    assert [asked["ref"] for asked in server.asked("completion/complete")] == [
        {"type": "ref/prompt", "name": "greet"},
        {"type": "ref/resource", "uri": "x:{id}"},
    ]
    assert server.asked("completion/complete")[1]["context"] == {"arguments": {"kind": "memo"}}


@pytest.mark.promise("mcp-011", "mcp-012", "mcp-015")
async def test_changes_of_a_resource_are_told_after_a_reconnection_too() -> None:
    server = Scripted({"resources/subscribe": lambda _: {}, "resources/unsubscribe": lambda _: {}})
    told: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
    quick = McpTimeouts(reconnect=0.01)
    client = MCPClient.over(server.transport, name="scripted", timeouts=quick)
    client.set_notification_handler(lambda method, params: told.put_nowait((method, params)))
    async with asyncio.timeout(60), client:
        await client.subscribe_resource("memo:1")
        await server.hang_up()
        await server.until_asked("resources/subscribe", 2)
        await server.tell("notifications/resources/updated", uri="memo:1")
        assert await told.get() == ("notifications/resources/updated", {"uri": "memo:1"})
        await client.unsubscribe_resource("memo:1")
    assert server.asked("resources/subscribe") == [{"uri": "memo:1"}] * 2
    assert server.asked("resources/unsubscribe") == [{"uri": "memo:1"}]


async def test_a_refused_subscription_is_not_kept() -> None:
    server = Scripted()
    async with connected(server) as client:
        with pytest.raises(McpError, match="Method not found"):
            await client.subscribe_resource("memo:1")
        await server.hang_up()
        await client.initialize()
        with pytest.raises(McpError):
            await client.read_resource("memo:1")
    assert len(server.asked("resources/subscribe")) == 1


@pytest.mark.promise("mcp-013")
async def test_an_error_of_the_server_comes_with_its_number_and_its_data() -> None:
    def refuse(_: Any) -> Any:
        raise Refused(-32002, "no such memo", {"uri": "memo:9"})

    server = Scripted({"resources/read": refuse})
    async with connected(server) as client:
        with pytest.raises(McpError) as failed:
            await client.read_resource("memo:9")
    assert str(failed.value) == "mcp server 'scripted': it answered with an error: no such memo"
    assert (failed.value.kind, failed.value.server, failed.value.undone) == ("rpc", "scripted", False)
    assert (failed.value.facts.rpc_code, failed.value.facts.data) == (-32002, {"uri": "memo:9"})


@pytest.mark.promise("mcp-014")
async def test_a_request_without_an_answer_ends_in_a_timeout() -> None:
    server = Scripted({"tools/list": lambda _: None})
    client = MCPClient.over(server.transport, name="scripted", timeouts=McpTimeouts(idle=1.0))
    async with asyncio.timeout(60), client:
        with pytest.raises(McpError) as failed:
            await client.list_tools()
    assert failed.value.kind == "timeout"
    (cancelled,) = server.asked("notifications/cancelled")
    assert cancelled["reason"] == "caller cancelled"


@pytest.mark.promise("mcp-016", "mcp-017", "mcp-018", "mcp-019")
@pytest.mark.parametrize("kind", ["tools", "resources", "prompts"])
async def test_each_kind_of_list_has_a_flag_of_its_own(kind: Any) -> None:
    server = Scripted()
    noticed = asyncio.Event()
    async with connected(server) as client:
        client.set_notification_handler(lambda *_: noticed.set())
        await server.tell(f"notifications/{kind}/list_changed")
        await noticed.wait()

        def flags() -> dict[str, bool]:
            return {
                "tools": client.tools_changed(),
                "resources": client.resources_changed(),
                "prompts": client.prompts_changed(),
            }

        assert [each for each, is_set in flags().items() if is_set] == [kind]
        for other in ("tools", "resources", "prompts"):
            if other != kind:
                client.clear_list_changed(other)
        assert flags()[kind]
        client.clear_list_changed(kind)
        assert not any(flags().values())


@pytest.mark.promise("mcp-020", "mcp-021")
async def test_a_kept_list_is_asked_for_again_when_a_change_was_announced_and_not_before() -> None:
    server = Scripted(
        {
            "tools/list": lambda _: {"tools": []},
            "resources/list": lambda _: {"resources": []},
            "resources/templates/list": lambda _: {"resourceTemplates": []},
            "prompts/list": lambda _: {"prompts": []},
        }
    )
    listings = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
    noticed = asyncio.Event()
    async with connected(server) as client:
        client.set_notification_handler(lambda *_: noticed.set())

        async def look() -> list[int]:
            for current in (client.tools, client.resources, client.resource_templates, client.prompts):
                await current()
                await current()
            return [len(server.asked(listing)) for listing in listings]

        assert await look() == [1, 1, 1, 1]
        await server.tell("notifications/resources/list_changed")
        await noticed.wait()
        assert await look() == [1, 2, 2, 1]
        assert not client.resources_changed()


async def test_a_change_announced_while_listing_is_not_lost() -> None:
    server = Scripted({"tools/list": lambda _: None})
    noticed = asyncio.Event()
    async with connected(server) as client:
        client.set_notification_handler(lambda *_: noticed.set())
        listing = asyncio.create_task(client.tools())
        await server.until_asked("tools/list")
        await server.tell("notifications/tools/list_changed")
        await noticed.wait()
        request_id = next(each["id"] for each in server.heard if each.get("method") == "tools/list")
        await server.say({"jsonrpc": "2.0", "id": request_id, "result": {"tools": [tool("old")]}})
        assert [each.name for each in await listing] == ["old"]
        assert client.tools_changed()
        server.answers["tools/list"] = lambda _: {"tools": [tool("new")]}
        assert [each.name for each in await client.tools()] == ["new"]


async def test_listeners_hear_once_of_many_changes_and_survive_each_other() -> None:
    clock = ManualClock()
    server = Scripted()
    heard: asyncio.Queue[frozenset[str]] = asyncio.Queue()

    async def fails(_: frozenset[str]) -> None:
        raise ValueError("broken listener")

    async def listens(kinds: frozenset[str]) -> None:
        heard.put_nowait(kinds)

    async with connected(server, MCPOptions(clock=clock)) as client:
        client.on_list_changed(fails)
        stop = client.on_list_changed(listens)
        for kind in ("tools", "prompts", "tools"):
            await server.tell(f"notifications/{kind}/list_changed")
        await settle(200)
        await clock.advance(DEBOUNCE_SECONDS)
        assert await heard.get() == {"tools", "prompts"}
        stop()
        assert heard.empty()


@pytest.mark.promise("docs-021", "mcp-051")
async def test_a_transport_of_one_s_own_needs_four_methods() -> None:
    class Loud:
        """Shouts whatever passes; knows nothing of dialoom."""

        def __init__(self, inner: MemoryTransport) -> None:
            self._inner = inner
            self.passed: list[bytes] = []

        async def open(self) -> None:
            self.passed.append(b"open")

        async def send(self, line: bytes) -> None:
            self.passed.append(line)
            await self._inner.send(line)

        async def receive(self) -> Any:
            return await self._inner.receive()

        async def aclose(self, *, hurry: bool = False) -> None:
            self.passed.append(b"closed")
            await self._inner.aclose(hurry=hurry)

    server = Scripted({"tools/list": lambda _: {"tools": [tool("a")]}})
    loud = Loud(server.transport())
    async with asyncio.timeout(60), MCPClient.over(lambda: loud, name="loud") as client:
        assert [each.name for each in await client.tools()] == ["a"]
    assert (loud.passed[0], loud.passed[-1]) == (b"open", b"closed")
    assert all(b"\n" not in line and line.startswith(b'{"jsonrpc":"2.0"') for line in loud.passed[1:-1])


async def test_a_disabled_or_broken_config_is_not_connected() -> None:
    disabled = MCPClient(MCPServerConfig("off", command="true", enabled=False))
    with pytest.raises(McpError, match="mcp server 'off': it is disabled; enable it in its config"):
        await disabled.tools()
    nowhere = MCPClient(MCPServerConfig("nowhere"))
    with pytest.raises(McpError, match="command: is empty; name the program that is the server") as failed:
        await nowhere.tools()
    assert failed.value.kind == "config"
    remote = MCPClient(MCPServerConfig("remote", url="https://h/mcp"))
    with pytest.raises(McpError, match=r"there is only a url; give transport=Transport\.STREAMABLE_HTTP"):
        await remote.tools()
    unset = MCPClient(MCPServerConfig("unset", command="${PROGRAM}"))
    with pytest.raises(McpError, match="needs variable PROGRAM, which is not set"):
        await unset.tools()
    for client in (disabled, nowhere, remote, unset):
        assert client.state == "failed"
        await client.close()


async def test_states_are_told_as_they_change() -> None:
    states: list[tuple[str, str, str | None]] = []
    options = MCPOptions(
        on_state=lambda name, state, error: states.append((name, state, error.kind if error else None))
    )
    server = Scripted({"initialize": lambda _: None})
    client = MCPClient.over(
        server.transport, name="scripted", options=options, timeouts=McpTimeouts(connect=0.1, reconnect=60)
    )
    with pytest.raises(McpError):
        await client.initialize()
    await client.close()
    assert states == [
        ("scripted", "connecting", None),
        ("scripted", "down", "timeout"),
        ("scripted", "closed", "unavailable"),
    ]


async def test_a_listener_that_fails_holds_nothing_up(caplog: pytest.LogCaptureFixture) -> None:
    def fails(*_: object) -> None:
        raise ValueError("broken listener")

    server = Scripted({"tools/list": lambda _: {"tools": []}})
    async with connected(server, MCPOptions(on_state=fails)) as client:
        client.set_notification_handler(fails)
        await server.tell("notifications/tools/list_changed")
        await settle(200)
        assert client.tools_changed()
        assert await client.tools() == ()
    assert "a listener to states failed" in caplog.text


async def test_a_client_belongs_to_one_event_loop() -> None:
    server = Scripted()
    async with connected(server) as client:
        with pytest.raises(Exception, match="belongs to another event loop; make a client for each"):
            await asyncio.to_thread(asyncio.run, client.initialize())


async def test_a_list_that_a_server_does_not_know_is_empty() -> None:
    server = Scripted({"resources/list": lambda _: {"resources": []}})
    async with connected(server) as client:
        assert await client.resource_templates() == ()
