"""A server on loopback, in the event loop of the test, ended as an operator ends it: by SIGTERM."""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from dialoom.server import Parts, ServerSettings, Workbench
from dialoom.server.serving import listen, serve
from dialoom.testing.clock import ManualClock
from tests.server.conftest import TOKEN

BOUND = 60.0
"""No test waits longer for anything."""


@dataclass
class Live:
    """A running server and a client that has its token."""

    url: str
    workbench: Workbench
    client: httpx2.AsyncClient
    serving: asyncio.Task[None]
    clock: ManualClock

    async def begin(self) -> str:
        answer = await self.client.post("/api/v1/conversations", json={"title": "Wells"})
        return answer.json()["id"]

    async def end(self) -> None:
        """Tell the server to end, and wait until it has."""
        signal.raise_signal(signal.SIGTERM)
        async with asyncio.timeout(BOUND):
            await self.serving


@asynccontextmanager
async def served(parts: Parts, data: Path, **choices: Any) -> AsyncGenerator[Live]:
    """Run a server until the block ends."""
    with listen(ServerSettings(token=TOKEN, data=data, port=0)) as listening:
        port = listening.getsockname()[1]
        settings = ServerSettings(token=TOKEN, data=data, port=port, **choices)
        clock = ManualClock()
        workbench = Workbench(settings, parts, clock=clock)
        ready = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(serve(workbench, listening, ready=ready.set))
            async with asyncio.timeout(BOUND):
                await ready.wait()
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with httpx2.AsyncClient(base_url=settings.url, headers=headers, timeout=BOUND) as client:
                live = Live(settings.url, workbench, client, serving, clock)
                yield live
                if not serving.done():
                    await live.end()


class Events:
    """The events of one stream, read as a browser reads them."""

    def __init__(self, response: httpx2.Response) -> None:
        self.last_id = ""
        self.closed = False
        self._lines = response.aiter_lines()

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        return self

    async def __anext__(self) -> dict[str, Any]:
        async with asyncio.timeout(BOUND):
            async for line in self._lines:
                if line.startswith("id: "):
                    self.last_id = line[4:]
                elif line.startswith("data: "):
                    return json.loads(line[6:])
        self.closed = True
        raise StopAsyncIteration

    async def until(self, kind: str) -> list[dict[str, Any]]:
        """Return the events up to the first of this type, or custom ones of this name."""
        found: list[dict[str, Any]] = []
        async for event in self:
            found.append(event)
            if kind in {event["type"], event.get("name")}:
                return found
        raise AssertionError(f"the stream ended before {kind}: {found}")


@asynccontextmanager
async def following(live: Live, path: str, **headers: str) -> AsyncGenerator[Events]:
    """Follow a stream until the block ends."""
    async with live.client.stream("GET", path, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Events(response)


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """Return what events are: the type, or the name of a custom one."""
    return [event.get("name", event["type"]) for event in events]


async def agui(live: Live, **asked: Any) -> list[dict[str, Any]]:
    """Run the thread t1 over AG-UI, or join its run; return the events up to the end."""
    answer = await live.client.post("/agui/dialog", json={"threadId": "t1", "runId": "r1", **asked})
    assert answer.status_code == 200, answer.text
    return [json.loads(line[6:]) for line in answer.text.split("\n\n") if line.startswith("data: ")]


def copied(parts: Parts, **fields: Any) -> Parts:
    return msgspec.structs.replace(parts, **fields)
