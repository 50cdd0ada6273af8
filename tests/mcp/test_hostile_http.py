"""Servers over HTTP that refuse, forget, cut and storm: each costs what it broke and no more."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import httpx2
import pytest

from dialoom.mcp import BearerAuth, MCPClient, McpError, MCPOptions, McpTimeouts
from dialoom.mcp.backoff import Backoff
from dialoom.mcp.sdk.notices import NoticeStream
from dialoom.testing import ManualClock
from dialoom.testing.clock import settle
from tests.mcp.hostile import http, said
from tests.mcp.hostile_http import HostileHttp, Refusal, hostile_http
from tests.mcp.loop_time import loop_time

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


@asynccontextmanager
async def served(
    options: MCPOptions | None = None, **settings: Any
) -> AsyncIterator[tuple[HostileHttp, MCPClient]]:
    async with asyncio.timeout(60), hostile_http() as server:
        client = MCPClient(http(server.url, **settings), options)
        try:
            yield server, client
        finally:
            await client.close()


@pytest.mark.promise("mcp-036", "mcp-038", "mcp-039", "mcp-040", "mcp-041", "mcp-042")
async def test_a_session_is_kept_with_its_headers_and_ended_with_delete() -> None:
    settings: dict[str, Any] = {"headers": {"X-Tenant": "acme"}, "auth": BearerAuth(token="token-1")}
    async with served(**settings) as (server, client):
        await client.initialize()
        assert said(await client.call_tool("echo", {"n": 1})) == '{"n": 1}'
        await client.close()
        (call,) = server.of("tools/call")
        (goodbye,) = server.of("DELETE")
    for request in (call, goodbye):
        assert {
            name: request.headers.get(name)
            for name in ("authorization", "x-tenant", "mcp-session-id", "mcp-protocol-version")
        } == {
            "authorization": "Bearer token-1",
            "x-tenant": "acme",
            "mcp-session-id": "session-1-secret",
            "mcp-protocol-version": "2025-11-25",
        }
    assert server.sessions == set()


@pytest.mark.promise("mcp-037")
async def test_an_answer_may_come_as_an_event_stream() -> None:
    async with served() as (server, client):
        server.answers_by_stream = True
        assert said(await client.call_tool("echo", {"n": 1})) == '{"n": 1}'


@pytest.mark.promise("mcp-043")
async def test_a_client_of_the_program_s_own_is_used_and_left_open() -> None:
    async with httpx2.AsyncClient(headers={"X-Ours": "yes"}) as own:
        async with served(MCPOptions(http=own)) as (server, client):
            assert said(await client.call_tool("echo")) == "{}"
            assert {request.headers.get("x-ours") for request in server.requests} == {"yes"}
        assert not own.is_closed


async def test_a_forgotten_session_is_begun_anew_and_the_call_made_again() -> None:
    async with served() as (server, client):
        await client.initialize()
        server.sessions.clear()
        async with asyncio.timeout(60):
            answers = await asyncio.gather(*(client.call_tool("echo", {"n": n}) for n in range(5)))
        assert [said(answer) for answer in answers] == [f'{{"n": {n}}}' for n in range(5)]
        assert len(server.of("initialize")) == 2
        assert client.tools_changed(), "another server may have other tools"


async def test_a_call_that_is_answered_late_is_waited_for_when_the_session_is_forgotten() -> None:
    async with served() as (server, client):
        await client.initialize()
        server.sessions.clear()
        answered = asyncio.Event()
        server.held.append(answered)
        with loop_time() as time:
            late = asyncio.create_task(client.call_tool("echo", {"n": 1}))
            await server.until("tools/call", 1)
            other = asyncio.create_task(client.call_tool("echo", {"n": 2}))
            while client._session.connection._live is not None:  # noqa: ASYNC110 - nothing tells us
                await asyncio.sleep(0)
            await time.advance(1)
            answered.set()
            assert [said(each) for each in await asyncio.gather(late, other)] == ['{"n": 1}', '{"n": 2}']


async def test_a_session_that_is_forgotten_each_time_is_not_begun_for_ever() -> None:
    async with served() as (server, client):
        await client.initialize()
        server.forgets = True
        with pytest.raises(McpError) as failed:
            await client.call_tool("echo")
        assert failed.value.kind == "session"
        assert failed.value.undone


@pytest.mark.parametrize(
    ("refusal", "kind", "facts"),
    [
        (Refusal(503, {"retry-after": "7"}), "status", (503, 7.0)),
        (Refusal(429, {"retry-after": "1.5"}), "status", (429, 1.5)),
        (Refusal(401, {"www-authenticate": "Bearer"}), "auth", (401, None)),
        (Refusal(500, {}, b"key=sk-secret"), "status", (500, None)),
        (Refusal(0, {}, None), "closed", (None, None)),
        (Refusal(200, {"content-type": "application/json"}, b"{not json"), "rpc", (None, None)),
        (Refusal(200, {"content-type": "text/html"}, b"<p>"), "rpc", (None, None)),
        (Refusal(202), "rpc", (None, None)),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Refusal) else None,
)
async def test_one_bad_exchange_fails_one_request_and_says_why(
    refusal: Refusal, kind: str, facts: tuple[int | None, float | None]
) -> None:
    async with served() as (server, client):
        await client.initialize()
        server.refusals.append(refusal)
        with pytest.raises(McpError) as failed:
            await client.call_tool("echo")
        known = failed.value.facts
        assert (failed.value.kind, (known.status, known.retry_after)) == (kind, facts)
        assert "sk-secret" not in str(failed.value)
        assert said(await client.call_tool("echo")) == "{}"
        assert len(server.of("initialize")) == 1


async def test_a_protocol_error_with_a_status_is_a_protocol_error() -> None:
    body = b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32602, "message": "no such tool"}}'
    async with served() as (server, client):
        await client.initialize()
        server.refusals.append(Refusal(400, {"content-type": "application/json"}, body))
        with pytest.raises(McpError, match="it answered with an error: no such tool") as failed:
            await client.call_tool("echo")
        assert (failed.value.kind, failed.value.facts.rpc_code) == ("rpc", -32602)


async def test_a_server_that_went_away_and_came_back_is_used_again() -> None:
    async with served() as (server, client):
        await client.initialize()
        await server.stop()
        with pytest.raises(McpError, match="no connection could be made") as failed:
            await client.call_tool("echo")
        assert (failed.value.kind, failed.value.undone) == ("connect", True)
        await server.start()
        async with asyncio.timeout(60):
            assert said(await client.call_tool("echo")) == "{}"


class Unreachable(httpx2.AsyncBaseTransport):
    """A network in which no connection is made, for a reason that stands behind the error."""

    def __init__(self, cause: OSError) -> None:
        self._cause = cause

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("All connection attempts failed") from self._cause


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (socket.gaierror(-2, "Name or service not known"), ": its host name is not known;"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version"), ": TLS failed ("),
        (ConnectionRefusedError(111, "Connection refused"), "; is it running"),
    ],
)
async def test_why_no_connection_could_be_made_is_said(cause: OSError, told: str) -> None:
    async with httpx2.AsyncClient(transport=Unreachable(cause)) as own:
        client = MCPClient(http("https://tools.example/mcp"), MCPOptions(http=own))
        with pytest.raises(McpError) as failed:
            await asyncio.wait_for(client.initialize(), 60)
        await client.close()
    assert failed.value.kind == "connect"
    assert f"no connection could be made{told}" in str(failed.value)


async def test_nobody_listening_is_said_and_tried_again() -> None:
    async with served() as (server, client):
        await server.stop()
        with pytest.raises(McpError) as failed:
            await client.initialize()
        assert (failed.value.kind, client.state) == ("connect", "down")
        assert str(failed.value) == (
            "mcp server 'remote': no connection could be made; is it running, and is its address right?"
        )
        await server.start()
        assert (await client.initialize()).name == "hostile"


async def test_an_event_of_more_than_a_megabyte_is_read() -> None:
    async with served() as (server, client):
        server.answers_by_stream = True
        assert len(said(await client.call_tool("big", {"bytes": 1_200_000}))) == 1_200_000


@pytest.mark.promise("mcp-044", "mcp-047")
@pytest.mark.parametrize("ability", ["tools", "resources", "prompts", "logging"])
async def test_notices_are_listened_to_where_a_server_has_any(ability: str) -> None:
    async with served() as (server, client):
        server.capabilities = {ability: {}}
        await client.initialize()
        await server.until_streams(1)
        (stream,) = server.of("GET")
        assert "text/event-stream" in stream.headers["accept"]


@pytest.mark.promise("mcp-045", "mcp-046")
@pytest.mark.parametrize(("capabilities", "opened"), [({"completions": {}}, 0), ({}, 1)])
async def test_without_abilities_to_announce_there_is_no_stream_and_none_named_means_unknown(
    capabilities: dict[str, Any], opened: int
) -> None:
    async with served() as (server, client):
        server.capabilities = capabilities
        await client.initialize()
        if opened:
            await server.until_streams(1)
        await client.call_tool("echo")
        assert len(server.of("GET")) == opened


@pytest.mark.promise("mcp-047")
async def test_a_config_may_want_no_stream() -> None:
    async with served(subscribe=False) as (server, client):
        await client.initialize()
        await client.call_tool("echo")
        assert server.of("GET") == []


@pytest.mark.promise("mcp-015", "mcp-016", "mcp-049")
async def test_a_cut_stream_is_opened_again_after_the_last_event() -> None:
    async with served() as (server, client):
        notices: asyncio.Queue[str] = asyncio.Queue()
        await client.initialize()
        client.set_notification_handler(lambda method, params: notices.put_nowait(method))
        await server.until_streams(1)
        for number in range(1, 4):
            client.clear_list_changed("tools")
            await server.push(CHANGED, f"event-{number}")
            assert await notices.get() == "notifications/tools/list_changed"
            assert (client.tools_changed(), client.prompts_changed()) == (True, number > 1)
            server.cut()
            await server.until_streams(1)
        assert [get.headers.get("last-event-id") for get in server.of("GET")] == [
            None,
            "event-1",
            "event-2",
            "event-3",
        ]


async def test_an_error_on_the_stream_is_waited_out() -> None:
    async with served() as (server, client):
        server.gets.extend(["500", "wrong-type", "eof"])
        await client.initialize()
        await server.until_streams(1)
        assert len(server.of("GET")) == 4


@pytest.mark.promise("mcp-050")
@pytest.mark.parametrize("status", ["404", "405", "501"])
async def test_a_server_without_such_a_stream_is_asked_once(status: str) -> None:
    async with served() as (server, client):
        server.gets.append(status)
        await client.initialize()
        await server.until("GET", 1)
        await client.call_tool("echo")
        assert len(server.of("GET")) == 1


async def test_a_stream_that_is_not_known_any_more_means_the_session_is_lost() -> None:
    async with served() as (server, client):
        await client.initialize()
        await server.until_streams(1)
        server.gets.append("404")
        server.cut()
        await server.until("initialize", 2)
        assert said(await client.call_tool("echo")) == "{}"


@pytest.mark.promise("mcp-048")
async def test_a_stream_that_ends_at_once_is_asked_for_ten_times_a_minute_at_most() -> None:
    clock = ManualClock()
    timeouts = McpTimeouts()
    asked: list[float] = []

    async with served(MCPOptions(clock=clock), timeouts=timeouts) as (server, client):
        server.gets.extend(["eof"] * 100)
        await client.initialize()
        began = clock.now()
        for count in range(1, 11):
            await server.until("GET", count)
            asked.append(clock.now() - began)
            while clock.sleeping < 1:
                await settle()
            await clock.advance(12.0 if count > 4 else 0.24 * 3 ** (count - 1))
        assert len([each for each in asked if each <= 60]) <= 10


async def test_an_answer_that_is_only_ever_cut_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    timeouts = McpTimeouts(idle=0.5, total=1.0, reconnect=0.01, max_reconnect=0.05)
    cut = Refusal(200, {"content-type": "text/event-stream"}, b"id: 1\nretry: 10\ndata:\n\n")
    async with served(timeouts=timeouts) as (server, client):
        await client.initialize()
        await server.until_streams(1)
        server.refusals.append(cut)
        server.gets.extend(["eof"] * 1000)
        with pytest.raises(McpError):
            await client.call_tool("echo")
        assert len([get for get in server.of("GET") if get.headers.get("last-event-id") == "1"]) <= 21


async def test_a_cancelled_call_is_cancelled_at_the_server() -> None:
    async with served() as (server, client):
        await client.initialize()
        hanging = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        server.refusals.append(Refusal(200, hanging, b"2\r\n:\n\r\n"))
        call = asyncio.create_task(client.call_tool("echo"))
        await server.until("tools/call", 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await server.until("notifications/cancelled", 1)
        (notice,) = server.of("notifications/cancelled")
        assert notice.message["params"]["requestId"] == server.of("tools/call")[0].message["id"]


async def test_an_answer_without_a_length_is_read_too() -> None:
    async with served() as (server, client):
        server.chunked = True
        assert said(await client.call_tool("echo", {"n": 1})) == '{"n": 1}'


@pytest.mark.slow
async def test_an_answer_without_an_end_is_given_up() -> None:
    async with served() as (server, client):
        server.chunked = True
        with pytest.raises(McpError, match="the answer is too large") as failed:
            await client.call_tool("big", {"bytes": 70_000_000})
        assert failed.value.kind == "too_large"
        assert said(await client.call_tool("echo")) == "{}"


async def test_a_client_of_one_s_own_may_lose_patience_first() -> None:
    async with (
        httpx2.AsyncClient(trust_env=False) as own,
        served(MCPOptions(http=own)) as (server, client),
    ):
        await client.initialize()
        own.timeout = httpx2.Timeout(0.2)
        server.refusals.append(Refusal(-1))
        with pytest.raises(McpError, match="the server did not answer in time") as failed:
            await client.call_tool("echo")
        assert failed.value.kind == "timeout"


async def test_nonsense_on_the_stream_of_notices_is_passed_over() -> None:
    async with served() as (server, client):
        noticed = asyncio.Event()
        await client.initialize()
        client.set_notification_handler(lambda *_: noticed.set())
        await server.until_streams(1)
        server.streams[-1].write(b"data: nonsense\n\n: ping\n\ndata:\n\n")
        await server.push(CHANGED)
        await noticed.wait()
        assert client.state == "ready"


@asynccontextmanager
async def answered(body: bytes) -> AsyncIterator[httpx2.Response]:
    request = httpx2.Request("GET", "http://127.0.0.1/mcp")
    yield httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body, request=request)


async def test_a_stream_waits_as_long_as_the_server_asks_and_less_after_a_long_life() -> None:
    clock = ManualClock()
    asked: list[tuple[float, str]] = []
    bodies = iter([b"id: 7\nretry: 4000\ndata: {}\n\n", b"", b""])

    @asynccontextmanager
    async def open_stream(last_id: str) -> AsyncIterator[httpx2.Response]:
        asked.append((clock.monotonic(), last_id))
        async with answered(next(bodies)) as response:
            yield response
        if len(asked) == 2:
            await clock.sleep(31)

    gaps: list[int] = []
    stream = NoticeStream(
        open_stream, Backoff(0.5, 10), on_gap=lambda: gaps.append(1), on_lost=lambda: None, clock=clock
    )

    async def read() -> list[bytes]:
        return [piece async for piece in stream]

    began = clock.monotonic()
    reading = asyncio.create_task(read())
    for seconds in (5.0, 31.0, 0.7):
        await settle()
        await clock.advance(seconds)
    assert [last_id for _, last_id in asked] == ["", "7", "7"]
    waits = [after - before for (before, _), (after, _) in pairwise(asked)]
    assert 4.0 <= waits[0] <= 4.8
    assert 31.5 <= waits[1] <= 31.6
    assert asked[0][0] == began
    assert len(gaps) == 2
    reading.cancel()
