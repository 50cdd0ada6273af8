"""What comes before anybody is known is bounded: a head without end, a head that does not come."""

import asyncio
import sys
from pathlib import Path

import pytest

from dialoom.server import Parts, bounded_http
from dialoom.server.bounded_http import MAX_HEAD
from tests.server.live import BOUND, Live, served


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
