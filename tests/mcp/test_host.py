"""Several servers at once: the good ones are usable, the others say why they are not."""

import asyncio
import subprocess
import sys

import pytest

from dialoom.base.errors import UsageError
from dialoom.mcp import McpError, MCPHost, MCPServerConfig, McpTimeouts, ServerStatus
from tests.mcp.hostile import said, stdio


async def test_servers_are_had_by_name_and_disabled_ones_not_at_all() -> None:
    host = MCPHost([stdio().set_name("a"), stdio(enabled=False).set_name("b")])
    assert (list(host), len(host), "a" in host, "b" in host) == (["a"], 1, True, False)
    assert host["a"].name == "a"
    with pytest.raises(UsageError, match="there is no mcp server 'b' here; there are: a"):
        host["b"]
    await host.close()
    assert len(host) == 0


async def test_all_start_at_the_same_time_but_those_that_wait_to_be_used() -> None:
    eager, lazy = stdio().set_name("eager"), stdio(auto_start=False).set_name("lazy")
    async with asyncio.timeout(60), MCPHost([eager, lazy]) as host:
        assert await host.settle(10) == (ServerStatus("eager", "ready"), ServerStatus("lazy", "idle"))
        assert said(await host["lazy"].call_tool("echo")) == "{}"
        assert host.status()[1] == ServerStatus("lazy", "ready")
        host.start()
        assert host.status()[0] == ServerStatus("eager", "ready"), "what runs is left alone"


async def test_a_server_that_cannot_start_says_so_in_its_status() -> None:
    async with asyncio.timeout(60), MCPHost([MCPServerConfig("lost", command="/no/such/program")]) as host:
        (lost,) = await host.settle(10)
    assert (lost.name, lost.state) == ("lost", "failed")
    assert isinstance(lost.error, McpError)
    assert lost.error.kind == "config"


async def test_a_server_takes_the_place_of_the_one_of_its_name() -> None:
    async with asyncio.timeout(60), MCPHost([stdio().set_name("a")]) as host:
        await host.settle(10)
        before = host["a"]
        after = await host.put(stdio("other").set_name("a"))
        assert (before.state, host["a"]) == ("closed", after)
        assert said(await host["a"].call_tool("argv")) == '["other"]'
        assert await host.put(stdio(enabled=False).set_name("a")) is None
        assert "a" not in host
        lazy = await host.put(stdio(auto_start=False).set_name("c"))
        assert lazy is not None
        assert lazy.state == "idle"
        await host.remove("nobody")


async def test_closing_does_not_wait_for_a_server_that_is_still_starting() -> None:
    host = MCPHost([stdio("no-init", "ignore-eof", timeouts=McpTimeouts(grace=600))])
    async with asyncio.timeout(60):  # much less than the grace of a server that runs
        host.start()
        await host.settle(1)
        await host.close()


@pytest.mark.parametrize("module", ["dialoom", "dialoom.mcp"])
def test_the_sdk_is_not_imported_before_a_server_is_connected(module: str) -> None:
    heavy = "('mcp', 'mcp_types', 'httpx2', 'pydantic', 'anyio', 'asyncio')"
    code = f"import sys, {module}; print(sorted({{m.split('.')[0] for m in sys.modules}} & set({heavy})))"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    expected = "['asyncio']\n" if module == "dialoom.mcp" else "[]\n"
    assert done.stdout == expected
