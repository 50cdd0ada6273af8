"""A hundred connections over Streamable HTTP, closed in every way, leave nothing behind."""

import asyncio
import gc
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from dialoom.mcp import MCPClient, McpError
from tests.mcp.hostile import http, said
from tests.mcp.hostile_http import HostileHttp, Refusal, hostile_http

CONNECTS = 100
SETTLED = 30.0


def held() -> tuple[int, int, int, int]:
    """How many open files, tasks, threads and children this process holds."""
    gc.collect()
    files = len(list(Path("/proc/self/fd").iterdir()))
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    return files, len(asyncio.all_tasks()), threading.active_count(), len(children)


async def more_is_held(before: tuple[int, int, int, int]) -> bool:
    """Whether more is held than `before`, also after a while: the server hears of an end later."""

    def more() -> bool:
        return any(now > then for now, then in zip(held(), before, strict=True))

    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLED):
            while more():  # noqa: ASYNC110 - nothing tells when a peer's socket is gone
                await asyncio.sleep(0.05)
    return more()


async def connect_and_call(server: HostileHttp, number: int) -> None:
    async with MCPClient(http(server.url)) as client:
        assert said(await client.call_tool("echo", {"n": number})) == f'{{"n": {number}}}'


async def connect_and_be_cut(server: HostileHttp, number: int) -> None:
    async with MCPClient(http(server.url)) as client:
        await client.list_tools()
        server.refusals.append(Refusal(500, {}, str(number).encode()))
        with pytest.raises(McpError):
            await client.call_tool("echo")


async def connect_and_leave_in_the_middle(server: HostileHttp, number: int) -> None:
    async with MCPClient(http(server.url)) as client:
        await client.list_tools()
        answer = asyncio.Event()
        server.held.append(answer)
        calling = asyncio.create_task(client.call_tool("echo", {"n": number}))
        await server.until("tools/call", len(server.of("tools/call")) + 1)
        calling.cancel()
        with suppress(asyncio.CancelledError):
            await calling
        answer.set()


WAYS = (connect_and_call, connect_and_be_cut, connect_and_leave_in_the_middle)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted by /proc")
@pytest.mark.parametrize("by_stream", [False, True], ids=["json", "stream"])
async def test_a_hundred_connections_over_http_leave_no_file_task_thread_or_child(by_stream: bool) -> None:
    async with hostile_http() as first:
        first.answers_by_stream = by_stream
        await connect_and_call(first, 0)  # what is made once and kept, such as a resolver, is there now
    before = held()
    async with hostile_http() as server:
        server.answers_by_stream = by_stream
        for number in range(CONNECTS):
            await WAYS[number % len(WAYS)](server, number)
        assert len(server.of("initialize")) == CONNECTS
        assert server.sessions == set(), "every session was ended by its client"
    assert not await more_is_held(before), f"{held()} is held, {before} was"
