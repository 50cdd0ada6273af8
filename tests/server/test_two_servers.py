"""Two servers, as processes, on one folder: what one tells of a place in a conversation is true for both."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.server.conftest import TOKEN
from tests.server.live import BOUND, Events

ROOT = Path(__file__).resolve().parents[2]
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def serving(folder: Path) -> AsyncGenerator[httpx2.AsyncClient]:
    command = [sys.executable, "-m", "tests.server.echo_server", str(folder)]
    child = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    async with asyncio.timeout(BOUND):
        url = (await child.stdout.readline()).decode().strip()
    try:
        async with httpx2.AsyncClient(base_url=url, headers=HEADERS, timeout=BOUND) as client:
            yield client
    finally:
        child.terminate()
        async with asyncio.timeout(BOUND):
            assert await child.wait() == 0


@asynccontextmanager
async def two(folder: Path) -> AsyncGenerator[tuple[httpx2.AsyncClient, httpx2.AsyncClient, str]]:
    """Run two servers; yield a client of each and the path of a conversation."""
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(serving(folder))
        other = await stack.enter_async_context(serving(folder))
        made = (await one.post("/api/v1/conversations", json={"title": "Shared"})).json()["id"]
        yield one, other, f"/api/v1/conversations/{made}"


@asynccontextmanager
async def following(client: httpx2.AsyncClient, path: str) -> AsyncGenerator[Events]:
    async with client.stream("GET", f"{path}/events") as response:
        yield Events(response)


async def log_of(client: httpx2.AsyncClient, path: str) -> dict[int, Any]:
    """Return what is shown, by index."""
    entries = (await client.get(f"{path}/entries", params={"limit": 200})).json()["entries"]
    return {each["index"]: each.get("content", each.get("cardId")) for each in entries}


async def say(client: httpx2.AsyncClient, path: str, text: str) -> int:
    """Say something, wait for the answer, and return where it is said to stand."""
    async with following(client, path) as events:
        sent = await client.post(f"{path}/messages", json={"text": text})
        await events.until("RUN_FINISHED")
    return sent.json()["index"]


@pytest.mark.slow
async def test_a_place_that_one_server_tells_counts_what_the_other_wrote(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, path):
        async with following(one, path) as events:
            places = {
                await say(client, path, f"Number {at}"): at for at, client in enumerate((one, other, one))
            }
            told: list[dict[str, Any]] = []
            for _ in range(2):  # the answers of the first server
                told += await events.until("RUN_FINISHED")
        log = await log_of(one, path)
        assert log == await log_of(other, path)
        assert {index: log[index] for index in places} == {at: f"Number {n}" for at, n in places.items()}
        assert len(log) == 6
        appended = [each["value"]["entry"] for each in told if each.get("name") == "entry.appended"]
        assert {each["index"]: each["content"] for each in appended}.items() <= log.items()
        # what the other one said was never told to the page of the first, which is had to load it
        assert [each["name"] for each in told if each.get("name") == "resync"] == ["resync"]


@pytest.mark.slow
async def test_two_servers_that_write_at_once_tell_each_place_once(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, path):

        async def show(client: httpx2.AsyncClient, name: str) -> tuple[int, str]:
            card = {"type": "Table", "payload": {"id": name, "title": name}}
            answer = await client.post(f"{path}/cards", json=card)
            assert answer.status_code == 201, answer.text
            return answer.json()["index"], name

        async with following(one, path) as events:
            shown = await asyncio.gather(
                *(show(client, f"{side}{at}") for at in range(20) for side, client in enumerate((one, other)))
            )
            last = await show(one, "last")
            told: list[dict[str, Any]] = []
            while not any(json.dumps(each).count('"last"') for each in told):
                told += await events.until("entry.appended")
        log = await log_of(one, path)
        assert dict([*shown, last]) == log
        appended = [each["value"]["entry"] for each in told if each.get("name") == "entry.appended"]
        assert {each["index"]: each["cardId"] for each in appended}.items() <= log.items()
