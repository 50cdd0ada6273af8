"""The workbench's documents at `/mcp`, for other programs."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp

from dialoom.base.errors import MissingExtraError, StoreError
from dialoom.cli.serve_mcp import LateEndpoint
from dialoom.mcp import BearerAuth, MCPClient, McpError, MCPServerConfig, Transport
from dialoom.mcp.asking import fields_of
from dialoom.mcp.results import observation_of

TOKEN = "a-token-of-the-tests"
PATIENCE = 60


async def ask(app: ASGIApp) -> tuple[int, str]:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://here") as client:
        answer = await client.post("/mcp")
        return answer.status_code, answer.text


class Door:
    """Opens an app that greets, and counts."""

    def __init__(self, error: Exception | None = None) -> None:
        self.opened = 0
        self.closed = 0
        self._error = error

    def __call__(self) -> AbstractAsyncContextManager[ASGIApp]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[ASGIApp]:
        self.opened += 1
        if self._error is not None:
            raise self._error
        yield PlainTextResponse("hello")
        self.closed += 1


async def test_what_nobody_asks_for_is_never_opened() -> None:
    door = Door()
    async with LateEndpoint(door).running():
        pass
    assert (door.opened, door.closed) == (0, 0)


async def test_it_is_opened_once_for_all_who_ask_and_closed_at_the_end() -> None:
    door = Door()
    async with LateEndpoint(door).running() as endpoint:
        assert await asyncio.gather(*[ask(endpoint) for _ in range(3)]) == [(200, "hello")] * 3
    assert (door.opened, door.closed) == (1, 1)


async def test_what_cannot_be_opened_says_why_to_each_who_asks() -> None:
    door = Door(MissingExtraError("mcp", "mcp"))
    async with LateEndpoint(door).running() as endpoint:
        for _ in range(2):
            code, text = await ask(endpoint)
            assert code >= 400
            assert "dialoom[mcp]" in text
    assert door.opened == 1


async def test_what_goes_wrong_beside_it_is_told_as_it_is() -> None:
    with pytest.raises(StoreError, match="the disk is full"):
        async with LateEndpoint(Door()).running():
            raise StoreError("the disk is full")


@pytest.mark.slow
async def test_a_program_with_the_token_searches_what_the_workbench_shows(docs: Path, tmp_path: Path) -> None:
    words = ("-m", "dialoom", "serve", "--docs", docs.name, "--data", "data", "--offline", "--port", "0")
    served = await asyncio.create_subprocess_exec(
        sys.executable, *words, cwd=tmp_path, stderr=PIPE, env={**os.environ, "DIALOOM_SERVER_TOKEN": TOKEN}
    )
    assert served.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE):
            while "login?token=" not in (line := (await served.stderr.readline()).decode()):
                assert line, "it did not begin to serve"
            url = line.split()[1].split("/login")[0] + "/mcp"
            config = MCPServerConfig("ours", transport=Transport.STREAMABLE_HTTP, url=url)
            with pytest.raises(McpError) as refused:
                await MCPClient(config).initialize()
            assert refused.value.facts.status == 401
            async with MCPClient(config.copy().set_auth(BearerAuth(token=TOKEN))) as client:
                assert [each.name for each in await client.tools()] == ["search", "fetch", "ask"]
                answer = fields_of(await client.call_tool("ask", {"question": "How long do refunds take?"}))
                assert "three working days" in observation_of(answer, tool="ask").content
                await client.subscribe_resource((await client.resources())[0].uri)
                served.send_signal(signal.SIGTERM)  # while a client listens
                assert (await served.stderr.read()).decode().splitlines()[-1] == "stopped"
                code = await served.wait()
    finally:
        if served.returncode is None:
            served.kill()
        await served.wait()
    assert code == 0
