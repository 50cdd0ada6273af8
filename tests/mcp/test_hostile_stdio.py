"""Servers on a pipe that hang, babble, break and die: each costs what it broke, in bounded time."""

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dialoom.mcp import MCPClient, McpError, MCPHost, MCPOptions, MCPServerConfig, McpTimeouts
from tests.mcp.hostile import alive, said, stdio

ROOT = Path(__file__).parents[2]
FORGETFUL = """
import asyncio, sys
from dialoom.mcp import MCPClient
from tests.mcp.hostile import stdio

async def main():
    client = MCPClient(stdio("ignore-eof", log=sys.argv[1]))
    print((await client.initialize()).name)

asyncio.run(main())
"""


@asynccontextmanager
async def connected(config: MCPServerConfig, options: MCPOptions | None = None) -> AsyncIterator[MCPClient]:
    async with asyncio.timeout(60), MCPClient(config, options) as client:
        yield client


async def soon(work: Awaitable[Any]) -> Any:
    """Do it, and do not hang. How soon is shown by what the server notes: a machine may be busy."""
    async with asyncio.timeout(60):
        return await work


def noted(log: Path, word: str) -> list[str]:
    """What the server wrote down after `word`."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [line.removeprefix(f"{word} ") for line in lines if line.startswith(f"{word} ")]


async def until(happened: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    async with asyncio.timeout(60):
        while not happened():  # noqa: ASYNC110 - nothing tells us
            await asyncio.sleep(0.01)


async def until_noted(log: Path, word: str) -> list[str]:
    await until(lambda: bool(noted(log, word)))
    return noted(log, word)


@pytest.mark.promise("mcp-032", "mcp-033", "mcp-034")
async def test_a_python_server_is_started_greeted_listed_and_called() -> None:
    async with connected(stdio()) as client:
        assert (await client.initialize()).name == "hostile"
        assert [tool.name for tool in await client.list_tools()] == ["echo"]
        assert said(await client.call_tool("chatter")) == "said", (
            "what it wrote to its error output is no answer"
        )
        assert said(await client.call_tool("echo", {"n": 1})) == '{"n": 1}'


async def test_any_task_may_close_what_another_opened() -> None:
    client = MCPClient(stdio())
    opened = asyncio.create_task(client.initialize())
    await soon(opened)
    await soon(asyncio.create_task(client.close()))
    assert client.state == "closed"


async def test_closing_twice_and_at_once_is_closing() -> None:
    client = MCPClient(stdio("ignore-eof", timeouts=McpTimeouts(grace=0.2)))
    await soon(client.initialize())
    await soon(asyncio.gather(client.close(), client.close()))
    await client.close()
    with pytest.raises(McpError, match="was closed; make a new client") as refused:
        await client.tools()
    assert refused.value.kind == "unavailable"


async def test_a_client_that_was_never_used_closes_too() -> None:
    client = MCPClient(stdio())
    await client.close()
    assert client.state == "closed"


def test_a_program_that_forgets_its_client_ends_and_leaves_no_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-c", FORGETFUL, str(log)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "hostile\n"), done.stderr
    (pid,) = noted(log, "pid")
    assert not alive(int(pid))


@pytest.mark.promise("mcp-035")
@pytest.mark.parametrize(
    ("switches", "grace", "least", "told"),
    [
        ((), 60.0, 0.0, []),
        (("ignore-eof",), 1.5, 1.4, ["end"]),
        (("ignore-eof", "ignore-term"), 0.5, 0.9, ["end"]),
    ],
    ids=["ends on its own", "must be told", "must be killed"],
)
async def test_closing_asks_waits_tells_waits_and_kills(
    tmp_path: Path, switches: tuple[str, ...], grace: float, least: float, told: list[str]
) -> None:
    log = tmp_path / "log"
    client = MCPClient(stdio(*switches, log=log, timeouts=McpTimeouts(grace=grace)))
    await soon(client.initialize())
    began = time.monotonic()
    await soon(client.close())
    assert time.monotonic() - began > least
    (pid,) = noted(log, "pid")
    assert (noted(log, "told"), alive(int(pid))) == (told, False)


async def test_what_a_server_started_ends_with_it_after_a_clean_exit_too(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with connected(stdio("grandchild", log=log)):
        (grandchild,) = await until_noted(log, "grandchild")
        assert alive(int(grandchild))
    await until(lambda: not alive(int(grandchild)))


async def test_log_lines_on_the_output_cost_nothing() -> None:
    async with connected(stdio("noise-first")) as client:
        assert said(await client.call_tool("noise")) == "through the noise"
        assert said(await client.call_tool("bad-utf8")) == "a\ufffdb"
        assert said(await client.call_tool("echo", {"n": 1})) == '{"n": 1}'
        assert said(await client.call_tool("chatter")) == "said"
        await until(lambda: len(client.diagnostics) == 5)
        assert client.diagnostics == (
            "Starting server v1.2 ...",
            "{'not': 'json'}",
            "DEBUG about to answer",
            "INFO: done",
            "last words: token=***",
        )


async def test_a_server_that_does_not_answer_the_handshake_is_given_up_in_time() -> None:
    client = MCPClient(stdio("no-init", timeouts=McpTimeouts(connect=0.5)))
    with pytest.raises(McpError) as failed:
        async with asyncio.timeout(10):  # without bounds of its own it would wait 15 seconds
            await client.initialize()
    assert failed.value.kind == "timeout"
    assert str(failed.value) == (
        "mcp server 'hostile': it did not answer in time; ask again, or raise its timeouts"
    )
    await soon(client.close())


@pytest.mark.slow
async def test_a_server_that_is_silent_about_the_newest_revision_is_asked_for_it_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with connected(stdio("silent-discover", log=log)) as client:
        assert said(await client.call_tool("echo")) == "{}"
        with pytest.raises(McpError):
            await client.call_tool("crash")
        assert said(await client.call_tool("echo")) == "{}"
    assert noted(log, "asked") == ["server/discover"]


async def test_a_dead_and_a_slow_server_do_not_hold_up_a_good_one() -> None:
    dead, slow = stdio("dies-at-start").set_name("dead"), stdio("slow-start").set_name("slow")
    good = stdio().set_name("good")
    await MCPClient(good).close()  # the SDK is imported before the clock runs
    async with asyncio.timeout(60), MCPHost([dead, slow, good]) as host:
        names = [tool.name for tool in await host["good"].tools()]
        with pytest.raises(McpError):
            await host["dead"].tools()
        fares = {each.name: each.state for each in await host.settle(0.2)}
    assert fares.pop("dead") in {"down", "connecting"}  # it is tried again, and may be just then
    assert (names, fares) == (["echo"], {"good": "ready", "slow": "connecting"})


async def test_a_server_that_dies_at_start_says_why_without_its_secrets() -> None:
    client = MCPClient(stdio("dies-at-start"))
    with pytest.raises(McpError) as failed:
        await soon(client.initialize())
    assert failed.value.kind == "start"
    assert failed.value.facts.exit_code == 1
    assert failed.value.facts.stderr_tail == ("cannot import name 'FastMCP'; token=***",)
    assert str(failed.value) == (
        "mcp server 'hostile': the connection was lost; it ended with code 1, saying: cannot import name"
        " 'FastMCP'; token=***; try its command in a terminal"
    )
    await client.close()


async def test_a_program_that_is_not_there_is_not_tried_again() -> None:
    client = MCPClient(MCPServerConfig("lost", command="/no/such/program"))
    with pytest.raises(McpError, match="there is no '/no/such/program' to start it with") as failed:
        await soon(client.initialize())
    assert (failed.value.kind, client.state) == ("config", "failed")
    await soon(client.close())


async def test_a_crash_fails_the_call_and_the_next_one_finds_a_new_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with connected(stdio(log=log)) as client:
        with pytest.raises(McpError) as failed:
            await client.call_tool("crash")
        assert (failed.value.kind, failed.value.facts.exit_code) == ("closed", 3)
        assert "saying: the disk is on fire" in str(failed.value)
        assert said(await soon(client.call_tool("echo"))) == "{}"
        assert client.tools_changed(), "nobody told what changed meanwhile"
    assert len(set(noted(log, "pid"))) == 2


async def test_a_server_that_only_crashes_is_left_down_after_five_times() -> None:
    quick = McpTimeouts(reconnect=0.01, max_reconnect=0.01)
    async with connected(stdio(timeouts=quick)) as client:
        for _ in range(5):
            with pytest.raises(McpError, match="the connection was lost"):
                await client.call_tool("crash")
        with pytest.raises(McpError, match="ended 5 times within 60 s and is left alone"):
            await client.call_tool("echo")
        assert client.state == "down"


async def test_progress_keeps_a_call_alive_and_silence_does_not() -> None:
    patient = McpTimeouts(idle=1.2)
    async with connected(stdio(timeouts=patient)) as client:
        seen: list[float] = []
        steps = {"steps": 3, "seconds": 0.5}
        answer = await client.call_tool("progress", steps, on_progress=lambda step, *_: seen.append(step))
        assert (said(answer), seen) == ("at last", [0, 1, 2])
        with pytest.raises(McpError) as failed:
            await soon(client.call_tool("slow"))
        assert failed.value.kind == "timeout"
        assert said(await client.call_tool("echo")) == "{}"


async def test_no_progress_stretches_a_call_beyond_its_total() -> None:
    bounds = McpTimeouts(idle=0.3, total=0.6)
    async with connected(stdio(timeouts=bounds)) as client:
        with pytest.raises(McpError, match="did not answer in time"):
            await soon(client.call_tool("progress", {"steps": 8, "seconds": 0.15, "never": True}))


async def test_a_cancelled_call_is_cancelled_at_the_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with connected(stdio(log=log)) as client:
        call = asyncio.create_task(client.call_tool("slow"))
        (request_id,) = await until_noted(log, "slow")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await until_noted(log, "cancelled") == [f"{request_id} caller cancelled"]


async def test_megabytes_in_a_line_come_in_linear_time() -> None:
    took: dict[int, float] = {}
    async with connected(stdio()) as client:
        for size in (4_000_000, 32_000_000):
            began = time.process_time()
            answer = await client.call_tool("big", {"bytes": size})
            took[size] = time.process_time() - began
            assert len(said(answer)) == size
    assert took[32_000_000] < 24 * took[4_000_000], "in quadratic time it is 64 times as long"


@pytest.mark.slow
async def test_an_answer_beyond_the_bound_fails_its_call_and_nothing_else() -> None:
    async with connected(stdio()) as client:
        with pytest.raises(McpError) as failed:
            await soon(client.call_tool("big", {"bytes": 70_000_000}))
        assert failed.value.kind == "too_large"
        assert "which is too large" in str(failed.value)
        assert said(await client.call_tool("echo")) == "{}"


async def test_two_thousand_notices_lead_to_three_listings_at_most() -> None:
    async with connected(stdio()) as client:
        listed = asyncio.Event()

        async def refresh(kinds: frozenset[str]) -> None:
            assert kinds == {"tools"}
            await client.tools()
            listed.set()

        client.on_list_changed(refresh)
        await client.call_tool("storm")
        await soon(listed.wait())
        await soon(client.tools())
        assert int(said(await client.call_tool("count-listings"))) <= 3


async def test_one_malformed_tool_costs_that_tool_only() -> None:
    async with connected(stdio("bad-tools")) as client:
        assert [tool.name for tool in await client.tools()] == ["echo"]
        assert [(each.name, each.reason) for each in client.skipped] == [
            ("lost", "tools.0.inputSchema: Field required"),
            ("void", "tools.0.inputSchema: Input should be a valid dictionary or instance of InputSchema"),
            ("", "tools.0.name: Field required"),
            ("", "tools.0: Input should be a valid dictionary or instance of Tool"),
        ]


async def test_results_that_break_their_schema_keep_what_they_say() -> None:
    async with connected(stdio()) as client:
        failing = await client.call_tool("failing")
        assert (failing.is_error, said(failing)) == (True, "it did not work")
        odd = await client.call_tool("odd")
        words = [block.text for block in odd.content]
        assert words == ['{"type": "hologram", "shape": 1}', "", "bare words"]
        assert odd.structured_content == {"kept": True}
        empty = await client.call_tool("empty")
        assert (empty.content, empty.structured_content) == ([], {"kept": True})
        (picture,) = (await client.call_tool("picture")).content
        assert (picture.mime_type, picture.data) == ("image/png", "aGk=")


async def test_a_child_gets_our_environment_with_its_own_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLOR", "ours")
    monkeypatch.setenv("SHAPE", "ours")
    monkeypatch.setenv("DIALOOM_API_KEY", "sk-of-the-product")
    config = stdio().set_environment({"HOSTILE_LOG": os.devnull, "COLOR": "its own"})
    names = ["COLOR", "SHAPE", "DIALOOM_API_KEY"]
    async with connected(config) as client:
        found = json.loads(said(await client.call_tool("env", {"names": names})))
    assert found == {"COLOR": "its own", "SHAPE": "ours", "DIALOOM_API_KEY": None}
    async with connected(config.set_inherit_env("safe")) as client:
        found = json.loads(said(await client.call_tool("env", {"names": names})))
    assert found == {"COLOR": "its own", "SHAPE": None, "DIALOOM_API_KEY": None}


async def test_arguments_reach_a_child_as_they_are() -> None:
    arguments = ["two words", "a'quote\"", "$HOME", "", "ümlaut"]
    async with connected(stdio(*arguments)) as client:
        assert json.loads(said(await client.call_tool("argv"))) == arguments


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.slow
async def test_a_hundred_connections_leave_nothing_behind(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with connected(stdio(log=log)):
        pass
    gc.collect()
    files, tasks = open_files(), len(asyncio.all_tasks())
    for _ in range(100):
        async with connected(stdio(log=log)) as client:
            await client.call_tool("echo")
    gc.collect()
    assert (open_files(), len(asyncio.all_tasks())) == (files, tasks)
    assert [pid for pid in noted(log, "pid") if alive(int(pid))] == []
