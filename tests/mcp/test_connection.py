"""A connection at its edges: what fails in it, below it and beside it, and how long that takes."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialoom.mcp import (
    MCPAnswers,
    MCPClient,
    McpError,
    MCPOptions,
    MCPServerConfig,
    McpTimeouts,
    MemoryTransport,
    Oversize,
)
from dialoom.mcp.transport import Line
from tests.mcp.hostile import said, stdio
from tests.mcp.scripted import Refused, Scripted, tool

WITHOUT_THE_SDK = """
import asyncio, sys
sys.modules["mcp"] = None
from dialoom.mcp import MCPClient, McpError, MCPServerConfig

async def main():
    try:
        await MCPClient(MCPServerConfig("x", command="true")).tools()
    except McpError as error:
        print(error.kind, error)

asyncio.run(main())
"""


class Failing(MemoryTransport):
    """A transport whose `open` raises what it is given."""

    error: BaseException = OSError()

    async def open(self) -> None:
        raise self.error


def failing(error: BaseException) -> Callable[[], MemoryTransport]:
    def make() -> MemoryTransport:
        transport = Failing(*(end._incoming for end in MemoryTransport.pair()))
        transport.error = error
        return transport

    return make


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (FileNotFoundError(2, "none", "prog"), "config", "there is no 'prog' to start it with"),
        (PermissionError(13, "no", "prog"), "config", "'prog' may not be run"),
        (OSError(24, "too many open files"), "start", "it could not be reached: too many open files"),
        (
            ExceptionGroup("a", [ExceptionGroup("b", [TimeoutError()])]),
            "timeout",
            "it did not answer in time",
        ),
        (
            BaseExceptionGroup("c", [asyncio.CancelledError(), ValueError("secret")]),
            "protocol",
            "(ValueError)",
        ),
        (McpError("it is said already", server="x", kind="auth"), "auth", "it is said already"),
    ],
)
async def test_what_goes_wrong_below_is_said_in_words_without_groups(
    error: BaseException, kind: str, words: str
) -> None:
    client = MCPClient.over(failing(error), name="x", timeouts=McpTimeouts(reconnect=60))
    with pytest.raises(McpError) as failed:
        await asyncio.wait_for(client.initialize(), 60)
    assert failed.value.kind == kind
    assert words in str(failed.value)
    assert "secret" not in str(failed.value)
    await client.close()


def test_a_missing_package_answers_with_the_line_that_installs_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_SDK], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == 'config mcp is not installed; run: pip install "dialoom[mcp]"\n'


async def test_a_file_that_may_not_be_run_is_not_tried_again(tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    client = MCPClient(MCPServerConfig("x", command=str(program)))
    with pytest.raises(McpError, match="may not be run; change its config"):
        await client.tools()
    assert client.state == "failed"
    program.chmod(0o755)
    with pytest.raises(McpError) as failed:
        await client.initialize()
    assert failed.value.kind == "start", "asked to connect again, it tries again"
    await client.close()


async def test_what_a_program_said_before_it_died_can_be_read() -> None:
    code = "import sys; print('usage: server KEY'); sys.exit('no key')"
    client = MCPClient(MCPServerConfig("x", command=sys.executable, arguments=["-c", code]))
    assert client.diagnostics == ()
    with pytest.raises(McpError, match="it ended with code 1, saying: no key"):
        await client.initialize()
    assert client.diagnostics == ("usage: server KEY", "no key")
    await client.close()


async def test_a_version_nobody_knows_is_no_reason_to_try_again() -> None:
    server = Scripted({"initialize": lambda _: {"protocolVersion": "1999-01-01", "capabilities": {}}})
    client = server.client()
    with pytest.raises(McpError, match="it speaks no protocol version that is known here"):
        await client.initialize()
    assert (client.state, len(server.asked("initialize"))) == ("failed", 1)
    await client.close()


async def test_what_the_sdk_cannot_read_is_a_protocol_error() -> None:
    server = Scripted({"prompts/get": lambda _: {"messages": 7}})
    async with asyncio.timeout(60), server.client() as client:
        with pytest.raises(McpError, match="it sent what the protocol does not allow") as failed:
            await client.get_prompt("x")
        assert failed.value.kind == "protocol"


async def test_a_server_that_learned_the_newest_revision_is_found_out() -> None:
    modern = {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }
    server = Scripted()
    client = MCPClient.over(server.transport, name="x", timeouts=McpTimeouts(reconnect=0.01))

    def refuses(_: Any) -> Any:
        raise Refused(-32601, "no handshake any more")

    async with asyncio.timeout(60), client:
        assert (await client.initialize()).protocol == "2025-11-25"
        server.answers |= {"server/discover": lambda _: modern, "initialize": refuses}
        await server.hang_up()
        await server.until_asked("server/discover", 2)
        assert (await client.initialize()).protocol == "2026-07-28"


async def test_a_tool_whose_headers_are_not_known_is_listed_and_called_again() -> None:
    calls: list[Any] = []

    def call(params: Any) -> Any:
        calls.append(params)
        if len(calls) == 1:
            raise Refused(-32020, "header mismatch")
        return {"content": [{"type": "text", "text": "done"}]}

    server = Scripted({"tools/call": call, "tools/list": lambda _: {"tools": [tool("a")]}})
    async with asyncio.timeout(60), server.client() as client:
        assert said(await client.call_tool("a")) == "done"
    assert len(server.asked("tools/list")) == 1


class Truncating(MemoryTransport):
    """A transport that keeps nothing of a line that says BIG."""

    async def receive(self) -> Line | None:
        line = await super().receive()
        return Oversize(b"x", b"y", 70_000_000) if line == b"BIG" else line


async def test_too_long_an_answer_without_an_id_goes_to_the_only_request() -> None:
    server = Scripted({"tools/list": lambda _: None, "prompts/list": lambda _: None})
    async with asyncio.timeout(60), server.client(kind=Truncating) as client:
        listing = asyncio.create_task(client.list_tools())
        await server.until_asked("tools/list")
        await server.say(b"BIG")
        with pytest.raises(McpError, match="the answer has 70000000 bytes, which is too large") as failed:
            await listing
        assert failed.value.kind == "too_large"
        both = [asyncio.create_task(each()) for each in (client.list_tools, client.list_prompts)]
        await server.until_asked("prompts/list")
        await server.say(b"BIG")
        await server.hang_up()
        outcomes = await asyncio.gather(*both, return_exceptions=True)
    assert [each.kind for each in outcomes if isinstance(each, McpError)] == ["closed", "closed"]


async def test_noise_and_nonsense_between_messages_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    server = Scripted({"tools/list": lambda _: {"tools": [tool("a")]}})
    async with asyncio.timeout(60), server.client() as client:
        for line in (b"", b"ready", b"null", b'{"jsonrpc": "2.0"}', b'{"jsonrpc":"2.0","id":99,"result":{}}'):
            await server.say(line)
        await server.tell("notifications/nobody/knows")
        await server.tell("notifications/progress", progressToken="none", progress=1)
        await server.tell("notifications/message", level="info", data=7)
        assert [each.name for each in await client.tools()] == ["a"]


async def test_asking_a_person_that_fails_is_told_where_it_can_be(caplog: pytest.LogCaptureFixture) -> None:
    class BrokenError(Exception):
        """How a form breaks."""

    async def breaks(_: Any) -> Any:
        raise BrokenError("MARKER")

    answers = MCPAnswers(elicit=breaks)
    server = Scripted({"tools/list": lambda _: None})
    async with asyncio.timeout(60), server.client(MCPOptions(answers=answers)) as client:
        question = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        await server.say({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": question})
        await server.until(lambda: any(each.get("id") == "q" and "result" in each for each in server.heard))
        assert client.state == "ready"
    assert "asking a person failed" in caplog.text
    assert "MARKER" not in caplog.text
    async with asyncio.timeout(60), MCPClient(stdio()) as client:
        with pytest.raises(BrokenError):
            await client.call_tool("ask", on_elicit=breaks)


async def test_a_person_who_is_being_asked_when_the_connection_closes_is_left_alone() -> None:
    asked, left = asyncio.Event(), asyncio.Event()

    async def waits(_: Any) -> Any:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()

    async with asyncio.timeout(60):
        client = MCPClient(stdio())
        call = asyncio.create_task(client.call_tool("ask", on_elicit=waits))
        await asked.wait()
        await client.close()
        await left.wait()
        with pytest.raises(McpError) as failed:
            await call
    assert failed.value.kind == "closed"


async def test_the_records_of_others_are_left_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = Scripted()
    async with asyncio.timeout(60), server.client() as client:
        await client.initialize()
        logging.getLogger("mcp.client.session_group").warning("words of %s", "somebody else")
        logging.getLogger("httpx2").info("HTTP Request: %s %s", "GET", "https://x.example/?page=2")
    assert "words of somebody else" in caplog.text
    assert "https://x.example/?page=2" in caplog.text


async def test_a_transport_that_will_not_close_is_left_after_the_bound() -> None:
    class Stubborn(MemoryTransport):
        """Waits for ever when it is closed, unless it is cancelled."""

        async def aclose(self, *, hurry: bool = False) -> None:
            await asyncio.Event().wait()

    server = Scripted()
    client = MCPClient.over(lambda: server.transport(Stubborn), name="x", timeouts=McpTimeouts(grace=0.05))
    async with asyncio.timeout(60):
        await client.initialize()
        await client.close()
    assert client.state == "closed"


async def test_a_transport_that_breaks_while_it_is_used_ends_its_connection() -> None:
    class Breaking(MemoryTransport):
        """Fails once it is told to."""

        broken = False

        async def receive(self) -> Line | None:
            line = await super().receive()
            self.broken = self.broken or line == b"BREAK"
            if self.broken:
                raise ConnectionResetError("reset")
            return line

        async def send(self, line: bytes) -> None:
            if b"tools/call" in line:
                raise BrokenPipeError("gone")
            await super().send(line)

    server = Scripted()
    options = McpTimeouts(reconnect=0.01)
    client = MCPClient.over(lambda: server.transport(Breaking), name="x", timeouts=options)
    async with asyncio.timeout(60), client:
        with pytest.raises(McpError) as failed:
            await client.call_tool("x")
        assert failed.value.kind == "closed"
        await server.say(b"BREAK")
        await server.until_asked("initialize", 2)
