"""What a server costs: events to many streams, and a call, against the smallest app that does it."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from bench.report import Row

PACKAGES: tuple[str, ...] = ("starlette", "uvicorn")
STREAMS, EVENTS, CALLERS, CALLS = 100, 200, 20, 1_000
FAST, SINGLE = 0.002, 0.012
"""Seconds between events: as fast as models write, and so that each is a piece of its own."""
MOST = 15.0
TOKEN = "a token that the bench knows"  # noqa: S105 - of a server that lives for seconds
ROUNDS = 2
Connection: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_BOUND = 60.0


def rows() -> list[Row]:
    """Return CPU microseconds of the server's process: per event and stream, and per call."""
    ours, floor = _measured("bench.server_ours"), _measured("bench.server_floor")
    named, raw = f"{STREAMS} streams x {EVENTS} events", "raw StreamingResponse"
    return [
        Row(named, "us", ours["event"], "the bound", MOST, must=1.0),
        Row(named, "us", ours["event"], raw, floor["event"], must=1.0),
        Row("the same, one event at a time", "us", ours["single"], raw, floor["single"], must=1.5),
        Row(
            "a call that lists conversations",
            "us",
            ours["call"],
            "a bare JSON route",
            floor["call"],
            must=3.0,
        ),
    ]


def _measured(module: str) -> dict[str, float]:
    """Return the least of two rounds: what others do on this machine only adds."""
    with tempfile.TemporaryDirectory(prefix="dialoom-bench-") as folder, _process(module, folder) as child:
        found = [asyncio.run(_round(*child)) for _ in range(ROUNDS)]
    return {name: min(each[name] for each in found) for name in found[0]}


async def _round(port: int, pid: int) -> dict[str, float]:
    fast, single = [await _told(port, pid, apart=apart) for apart in (FAST, SINGLE)]
    began = _cpu(pid)
    async with asyncio.timeout(_BOUND), asyncio.TaskGroup() as group:
        for _ in range(CALLERS):
            group.create_task(_call_again(port))
    call = (_cpu(pid) - began) / CALLS
    return {"event": fast * 1e6, "single": single * 1e6, "call": call * 1e6}


async def _told(port: int, pid: int, *, apart: float) -> float:
    """Return the seconds for one event to one stream, when events are so many seconds apart."""
    ready = asyncio.Semaphore(0)
    async with asyncio.timeout(_BOUND), asyncio.TaskGroup() as group:
        for _ in range(STREAMS):
            group.create_task(_read(port, ready))
        for _ in range(STREAMS):
            await ready.acquire()
        began = _cpu(pid)
        connection = await asyncio.open_connection("127.0.0.1", port)
        wanted = json.dumps({"count": EVENTS, "apart": apart}).encode()
        await _call(connection, port, "POST /api/v1/publish", wanted)
        connection[1].close()
    return (_cpu(pid) - began) / (STREAMS * EVENTS)


def _request(port: int, line: str, body: bytes = b"") -> bytes:
    """Return a request; sockets, because a client in Python would cost more than what is measured."""
    head = f"{line} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def _call_again(port: int) -> None:
    connection = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(CALLS // CALLERS):
        await _call(connection, port, "GET /api/v1/conversations")
    connection[1].close()


async def _call(connection: Connection, port: int, line: str, body: bytes = b"") -> None:
    reader, writer = connection
    writer.write(_request(port, line, body))
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b"content-length: " in head:
        await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))


async def _read(port: int, ready: asyncio.Semaphore) -> None:
    """Read one stream to the event that is marked as the last."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    writer.write(_request(port, "GET /api/v1/events?conversations=bench"))
    await reader.readuntil(b"retry: 1000\n\n")
    ready.release()
    await reader.readuntil(b'"last"')
    writer.close()


def _cpu(pid: int) -> float:
    """Return the seconds of CPU a process has used, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _process(module: str, folder: str) -> Generator[tuple[int, int]]:
    command = [sys.executable, "-m", module, folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        port = int(json.loads(child.stdout.readline())["url"].rpartition(":")[2])
        time.sleep(0.2)  # what starting up costs is not measured
        yield port, child.pid
        child.terminate()
