"""What our client costs over the bare SDK it stands on, how it reads long lines, and how servers start."""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.child import child
from bench.measure import Turns
from bench.report import Row
from dialoom.mcp import MCPClient, MCPHost, MCPServerConfig, Transport

PACKAGES = ("mcp", "httpx2")
SERVER = Path(__file__).with_name("mcp_server.py")
CALLS = 200
ROUNDS = 15
LONG_LINE = 40_000_000
LONG_LINE_SECONDS = 2.0
PER_CALL = 1.15
SLEEP = 2.0
BESIDE = 1.5
ANSWERS = """import json, sys
ABLE, NAME = {"tools": {}}, {"name": "good", "version": "1"}
SELF = {"protocolVersion": "2025-11-25", "capabilities": ABLE, "serverInfo": NAME}
TOOLS = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
RESULTS = {"initialize": {"result": SELF}, "tools/list": {"result": TOOLS}}
for asked in map(json.loads, sys.stdin):
    told = RESULTS.get(asked["method"], {"error": {"code": -32601, "message": "unknown"}})
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **told}), flush=True)
"""
"""A server that is there at once, so that what is measured is what the others cost it."""

Call = Callable[[], Awaitable[Any]]
Timer = Callable[[], float]


def rows() -> list[Row]:
    """Return the rows; each ratio is of one run, both sides in turn against one server each."""
    return asyncio.run(_rows())


async def _rows() -> list[Row]:
    found: list[Row] = []
    async with _stdio_pair() as (ours, theirs, client):
        found += await _per_call("stdio", ours, theirs)
        began = time.perf_counter()
        await client.call_tool("fill", {"bytes": LONG_LINE})
        took = time.perf_counter() - began
        found.append(Row("answer of 40 MB in a line", "s", took, "2 s", LONG_LINE_SECONDS, must=1.0))
    with child(sys.executable, str(SERVER), "http") as server:
        async with _http_pair(f"http://127.0.0.1:{server.line()}/mcp") as (ours, theirs):
            found += await _per_call("HTTP", ours, theirs)
    one, four = await _start(1), await _start(4)
    found.append(
        Row("start of four servers that take two seconds", "s", four, "start of one", one, must=1.25)
    )
    good = await _start_among_broken()
    found.append(Row("tools of a server beside a dead and a slow one", "s", good, "1.5 s", BESIDE, must=1.0))
    return found


async def _per_call(way: str, ours: Call, theirs: Call) -> list[Row]:
    """Return what one call costs, as CPU of this process and as time."""
    kept: list[Row] = []
    timers: tuple[tuple[str, Timer], ...] = (("CPU", time.process_time), ("time", time.perf_counter))
    for name, timer in timers:
        mine, rivals = await _in_turn(ours, theirs, timer)
        row = f"tool call over {way}, {name}"
        kept.append(Row(row, "ms", 1000 * mine, "the bare SDK", 1000 * rivals, must=PER_CALL))
    return kept


async def _in_turn(ours: Call, theirs: Call, timer: Timer) -> tuple[float, float]:
    calls = {"ours": ours, "theirs": theirs}
    turns = Turns(calls, ROUNDS)
    for name in turns:
        began = timer()
        for _ in range(CALLS):
            await calls[name]()
        turns.note(name, (timer() - began) / CALLS)
    mine, other = turns.medians().values()
    return mine, other


@asynccontextmanager
async def _stdio_pair() -> AsyncGenerator[tuple[Call, Call, MCPClient]]:
    import mcp

    arguments = [str(SERVER), "stdio"]
    config = MCPServerConfig("fill", command=sys.executable, arguments=arguments)
    bare = mcp.Client(mcp.StdioServerParameters(command=sys.executable, args=arguments), mode="legacy")
    async with MCPClient(config) as client, bare:
        await bare.list_tools()  # so that it knows the tool, and lists nothing while it is measured
        yield _calling(client), _calling(bare), client


@asynccontextmanager
async def _http_pair(url: str) -> AsyncGenerator[tuple[Call, Call]]:
    import mcp

    config = MCPServerConfig("fill", transport=Transport.STREAMABLE_HTTP, url=url)
    bare = mcp.Client(url, mode="legacy")
    async with MCPClient(config) as client, bare:
        await bare.list_tools()
        yield _calling(client), _calling(bare)


def _calling(client: Any) -> Call:
    return lambda: client.call_tool("fill", {"bytes": 100})


async def _start(count: int) -> float:
    """Return how long it takes until so many servers that sleep at their start can be used."""
    sleepy = f"import runpy, sys, time; time.sleep({SLEEP}); sys.argv[1:] = ['stdio']"
    code = f"{sleepy}; runpy.run_path({str(SERVER)!r}, run_name='__main__')"
    configs = [
        MCPServerConfig(f"sleepy-{number}", command=sys.executable, arguments=["-c", code])
        for number in range(count)
    ]
    began = time.perf_counter()
    async with MCPHost(configs) as host:
        fares = await host.settle(60)
        took = time.perf_counter() - began
        assert {each.state for each in fares} == {"ready"}, fares
    return took


async def _start_among_broken() -> float:
    """Return how long it takes until the tools of a good server can be used beside a dead and a slow one."""
    programs = {"dead": "raise SystemExit('no key')", "slow": "import time; time.sleep(5)", "good": ANSWERS}
    configs = [
        MCPServerConfig(name, command=sys.executable, arguments=["-c", code])
        for name, code in programs.items()
    ]
    began = time.perf_counter()
    async with MCPHost(configs) as host:
        assert [tool.name for tool in await host["good"].tools()] == ["echo"]
        return time.perf_counter() - began
