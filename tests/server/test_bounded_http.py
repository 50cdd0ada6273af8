"""What comes before anybody is known is bounded: a head without end, a head that does not come."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from dialoom.server import Parts, bounded_http, routes
from dialoom.server.bounded_http import MAX_HEAD, MAX_REFUSED
from dialoom.server.serving import room_for
from tests.server.live import BOUND, Live, served

TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


async def sent(live: Live, *pieces: bytes) -> bytes:
    """Send raw bytes; return all that comes back until the server ends the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", live.workbench.settings.port)
    async with asyncio.timeout(BOUND):
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            return await reader.read()
        except ConnectionError:  # it ended while we were sending
            return await reader.read()
        finally:
            writer.close()


@pytest.mark.parametrize("library", ["httptools", "h11"])
async def test_a_head_without_end_is_cut_off(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    if library == "h11":
        monkeypatch.setitem(sys.modules, "dialoom.server.bounded_http", None)
    async with served(parts, tmp_path) as live:
        head = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: "
        answer = await sent(live, head, b"a" * (MAX_HEAD + 1))
        assert answer.startswith(b"HTTP/1.1 4"), answer


async def test_a_head_that_does_not_come_is_not_waited_for(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_http, "HEAD_SECONDS", 0.05)
    async with served(parts, tmp_path) as live:
        for begun in (b"", b"GET /healthz HTTP/1.1\r\n"):
            assert (await sent(live, begun)).startswith(b"HTTP/1.1 408 ")


async def test_requests_on_one_connection_each_have_their_own_bounds(parts: Parts, tmp_path: Path) -> None:
    async with served(parts, tmp_path) as live:
        host = f"127.0.0.1:{live.workbench.settings.port}".encode()
        one = b"GET /healthz HTTP/1.1\r\nHost: %s\r\nX: %s\r\n" % (host, b"a" * (MAX_HEAD // 2))
        answer = await sent(live, one + b"\r\n", one + b"\r\n", one + b"Connection: close\r\n\r\n")
        assert answer.count(b'"status":"ok"') == 3


async def test_an_answer_under_way_is_not_mixed_with_a_refusal(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(parts, tmp_path) as live:
        monkeypatch.setattr(bounded_http, "HEAD_SECONDS", 0.5)
        host = f"127.0.0.1:{live.workbench.settings.port}".encode()
        token = live.client.headers["Authorization"].encode()
        stream = b"GET /api/v1/events HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\n\r\n" % (host, token)
        answer = await sent(live, stream, b"GET /heal")
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert b"408" not in answer


async def test_connections_beyond_the_bound_are_told_to_come_again_and_the_others_go_on(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_http, "REFUSED_SECONDS", 0.2)
    async with served(parts, tmp_path, max_connections=3, max_streams=1) as live, AsyncExitStack() as stack:
        port = live.workbench.settings.port
        request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % port
        await stack.enter_async_context(live.client.stream("GET", "/api/v1/events"))
        held = [await opened(stack, port) for _ in range(2)]  # silent ones count as well
        refused = await sent(live, request)
        head, _, body = refused.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nretry-after: 1" in head
        assert (json.loads(body)["code"], json.loads(body)["status"]) == ("too_many_streams", 503)
        assert await sent(live) == b""  # one that says nothing is let go
        reader, writer = held[0]
        writer.write(request)
        async with asyncio.timeout(BOUND):
            assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
            while not (await sent(live, request)).startswith(b"HTTP/1.1 200 "):
                pass  # there is room again as soon as the server has let it go


async def test_a_flood_of_connections_is_cut_off_without_a_word(parts: Parts, tmp_path: Path) -> None:
    async with served(parts, tmp_path, max_connections=3, max_streams=1) as live, AsyncExitStack() as stack:
        port = live.workbench.settings.port
        flood = [await opened(stack, port) for _ in range(3 + MAX_REFUSED)]
        assert await sent(live, b"GET /healthz HTTP/1.1\r\n\r\n") == b""
        for _, writer in flood:
            writer.close()


@pytest.mark.skipif(sys.platform == "win32", reason="there open files are not counted")
def test_no_more_connections_are_taken_than_there_may_be_open_files(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import resource

    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _what, both: raised.append(both))
    for limits, expected in (
        ((1_024, resource.RLIM_INFINITY), 1_500),
        ((1_024, 1_024), 624),
        ((100_000, 100_000), 1_500),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 1_500),
        ((100, 100), 1),
    ):
        monkeypatch.setattr(resource, "getrlimit", lambda _what, limits=limits: limits)
        assert room_for(1_500) == expected
    assert raised == [(1_900, resource.RLIM_INFINITY), (1_024, 1_024), (100, 100)]
    assert len(caplog.records) == 2
    monkeypatch.setitem(sys.modules, "resource", None)
    assert room_for(1_500) == 1_500


async def test_who_sends_too_much_is_told_so(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MAX_LET_PASS", 6_000_000)
    async with served(parts, tmp_path) as live:
        for chunked in (False, True):
            answer = await sent(live, *too_much(live, 5_000_000, chunked=chunked))
            assert answer.startswith(b"HTTP/1.1 413 "), answer[:200]
        monkeypatch.setattr(routes, "LET_PASS_SECONDS", 0.05)
        head, _ = too_much(live, 5_000_000, chunked=False)
        assert (await sent(live, head)).startswith(b"HTTP/1.1 413 ")  # what does not come is not waited for
        monkeypatch.setattr(routes, "MAX_LET_PASS", 1)
        assert (await sent(live, head, b"[[")).startswith(b"HTTP/1.1 413 ")


def too_much(live: Live, size: int, *, chunked: bool) -> tuple[bytes, bytes]:
    """Return head and body of a call that is too large."""
    port, token = live.workbench.settings.port, live.client.headers["Authorization"]
    length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % size
    head = (
        b"POST /api/v1/conversations HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: %s\r\n"
        b"Content-Type: application/json\r\nConnection: close\r\n%s\r\n\r\n"
    ) % (port, token.encode(), length)
    return head, (b"%x\r\n%s\r\n0\r\n\r\n" % (size, b" " * size)) if chunked else b" " * size


async def test_a_body_that_trickles_is_not_waited_for(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "PIECE_SECONDS", 0.2)
    async with served(parts, tmp_path) as live:
        port = live.workbench.settings.port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"POST /login HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000\r\n\r\n" % port
        )
        answered = asyncio.ensure_future(reader.read(12))
        async with asyncio.timeout(BOUND):
            while not answered.done():
                writer.write(b" ")
                await asyncio.wait({answered}, timeout=0.05)
        assert await answered == b"HTTP/1.1 408"
        writer.close()


async def opened(stack: AsyncExitStack, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection that says nothing; it is closed with the stack."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    stack.callback(writer.close)
    return reader, writer


def asking(live: Live, line: str, *headers: str) -> bytes:
    """Return the head of a request."""
    host = f"Host: 127.0.0.1:{live.workbench.settings.port}"
    return "\r\n".join([f"{line} HTTP/1.1", host, *headers, "", ""]).encode()


async def test_headers_behind_a_body_are_none(parts: Parts, tmp_path: Path) -> None:
    async with served(parts, tmp_path) as live:
        head = asking(live, "GET /api/v1/conversations", "Transfer-Encoding: chunked", "Connection: close")
        token = f"Authorization: {live.client.headers['Authorization']}".encode()
        answer = await sent(live, head + b"1\r\n \r\n0\r\n" + token + b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 401 "), answer


@pytest.mark.parametrize(
    ("begun", "more"),
    [
        (b"0\r\nX: ", b"a" * 1000),
        (b"0\r\n", b"X: a\r\n" * 200),
        (b"1;x=", b"a" * 1000),
        (b"1;", b"a=b;" * 250),
    ],
)
async def test_what_comes_without_end_beside_a_body_is_cut_off(
    parts: Parts, tmp_path: Path, begun: bytes, more: bytes
) -> None:
    async with served(parts, tmp_path) as live:
        head = asking(live, "POST /login", "Transfer-Encoding: chunked", "Content-Type: application/json")
        with suppress(ConnectionError):  # the end may come with what we sent unread
            answer = await sent(live, head + begun, *(more for _ in range(2 * MAX_HEAD // len(more))))
            assert answer == b"" or answer.startswith(b"HTTP/1.1 4")


async def test_who_leaves_in_the_middle_of_a_body_is_no_error_of_the_server(
    parts: Parts, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(parts, tmp_path) as live:
        json_body = ("Content-Type: application/json", "Content-Length: 1000")
        token = f"Authorization: {live.client.headers['Authorization']}"
        for line in ("POST /login", "POST /api/v1/conversations", "POST /api/v1/files"):
            _, writer = await asyncio.open_connection("127.0.0.1", live.workbench.settings.port)
            writer.write(asking(live, line, token, *json_body) + b"{")
            await writer.drain()
            writer.close()
        await live.client.get("/healthz")
        told = (await live.client.get("/metrics")).text
    assert ('status="500"' in told, caplog.messages) == (False, [])


async def test_a_request_that_was_answered_may_not_go_on_for_ever(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_http, "REST_SECONDS", 0.1)
    async with served(parts, tmp_path) as live:
        reader, writer = await asyncio.open_connection("127.0.0.1", live.workbench.settings.port)
        writer.write(asking(live, "POST /api/v1/conversations", "Content-Length: 1000000"))
        async with asyncio.timeout(BOUND):
            assert b"HTTP/1.1 401" in await reader.readuntil(b"\r\n\r\n")
            writer.write(b"{")  # and then nothing: no timer of uvicorn's runs any more
            with suppress(ConnectionError):
                await reader.read()
        writer.close()


async def test_a_request_that_was_answered_may_come_to_its_end_and_be_followed(
    parts: Parts, tmp_path: Path
) -> None:
    async with served(parts, tmp_path) as live:
        reader, writer = await asyncio.open_connection("127.0.0.1", live.workbench.settings.port)
        writer.write(asking(live, "POST /api/v1/conversations", "Content-Length: 2"))
        async with asyncio.timeout(BOUND):
            assert b"HTTP/1.1 401" in await reader.readuntil(b"}")
            writer.write(b"{}" + asking(live, "GET /healthz", "Connection: close"))
            assert b"HTTP/1.1 200" in await reader.read()
        writer.close()


async def test_who_reads_late_reads_all(parts: Parts, tmp_path: Path) -> None:
    async with served(parts, tmp_path) as live:
        hub = live.workbench.hub
        token = f"Authorization: {live.client.headers['Authorization']}"
        reader, writer = await asyncio.open_connection("127.0.0.1", live.workbench.settings.port)
        writer.write(asking(live, "GET /api/v1/events", token))
        async with asyncio.timeout(BOUND):
            while not hub.followers:
                await live.client.get("/healthz")
            for at in range(15):  # more than lies between a server and who does not read
                hub.publish("", {"type": "CUSTOM", "name": f"words {at}", "value": "x" * 500_000})
                await live.client.get("/healthz")
            read = b""
            while b"words 14" not in read[-600_000:]:
                read += await reader.read(1_000_000)
        writer.close()
    assert [read.count(b'"words %d"' % at) for at in range(15)] == [1] * 15


@pytest.mark.parametrize("header", ["X: y", "Connection: Upgrade\r\nUpgrade: h2c"])
async def test_what_begins_no_request_is_not_waited_behind(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str
) -> None:
    async with served(parts, tmp_path) as live:
        reader, writer = await asyncio.open_connection("127.0.0.1", live.workbench.settings.port)
        writer.write(asking(live, "GET /healthz", header))
        async with asyncio.timeout(BOUND):
            assert b"HTTP/1.1 200" in await reader.readuntil(b"}")
            monkeypatch.setattr(bounded_http, "HEAD_SECONDS", 0.1)
            writer.write(b"\r\n")
            assert await reader.read() in {b"", TOO_SLOW}
        writer.close()


async def test_who_reads_nothing_of_what_is_written_is_let_go(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_http, "STALLED_SECONDS", 0.1)
    async with served(parts, tmp_path) as live:
        hub = live.workbench.hub
        token = f"Authorization: {live.client.headers['Authorization']}"
        _, writer = await asyncio.open_connection("127.0.0.1", live.workbench.settings.port)
        writer.write(asking(live, "GET /api/v1/events", token))
        async with asyncio.timeout(BOUND):
            while not hub.followers:
                await live.client.get("/healthz")
            while hub.followers:
                hub.publish("", {"type": "CUSTOM", "name": "words", "value": "x" * 500_000})
                await live.client.get("/healthz")
        writer.close()
