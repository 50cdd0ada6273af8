"""Servers that others wrote: connect, list everything, call one tool, close, and leave no process behind."""

import asyncio
import os
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from dialoom.llm import MockProvider
from dialoom.mcp import (
    MCPAnswers,
    MCPClient,
    McpError,
    MCPOptions,
    MCPServerConfig,
    Sampling,
    SamplingRequest,
    Transport,
)
from tests.peers.mcp_peers import OLD_PYTHON_PEERS, node_server, python_server

pytestmark = pytest.mark.timeout(120)

BOUND = 60


def children() -> set[int]:
    """The processes this one started and that still run, theirs included."""
    found: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            found[int(path.parent.name)] = int(fields[1])
    ours = {os.getpid()}
    while more := {pid for pid, parent in found.items() if parent in ours} - ours:
        ours |= more
    return ours - {os.getpid()}


@asynccontextmanager
async def connected(config: MCPServerConfig, options: MCPOptions | None = None) -> AsyncIterator[MCPClient]:
    before = children()
    async with asyncio.timeout(BOUND), MCPClient(config, options) as client:
        yield client
    assert children() == before


async def seen(client: MCPClient) -> tuple[str, int, int, int]:
    """The revision that was agreed on, and how many tools, resources and prompts there are."""
    facts = await client.initialize()
    assert client.skipped == ()
    lists = (await client.tools(), await client.resources(), await client.prompts())
    await client.resource_templates()
    return (facts.protocol, *(len(each) for each in lists))


def words(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


async def test_filesystem(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("buy milk", encoding="utf-8")
    async with connected(node_server("filesystem", str(tmp_path))) as client:
        assert await seen(client) == ("2025-11-25", 14, 0, 0)
        read = await client.call_tool("read_text_file", {"path": str(tmp_path / "note.txt")})
        assert (words(read), read.structured_content) == ("buy milk", {"content": "buy milk"})


async def test_memory(tmp_path: Path) -> None:
    config = node_server("memory", MEMORY_FILE_PATH=str(tmp_path / "memory.jsonl"))
    ada = {"name": "Ada", "entityType": "person", "observations": ["likes tea"]}
    async with connected(config) as client:
        assert await seen(client) == ("2025-11-25", 9, 1, 0)
        await client.call_tool("create_entities", {"entities": [ada]})
        found = await client.call_tool("search_nodes", {"query": "tea"})
        assert found.structured_content["entities"] == [ada]


async def test_sequential_thinking() -> None:
    thought = {"thought": "First.", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
    async with connected(node_server("sequential-thinking")) as client:
        assert await seen(client) == ("2025-11-25", 1, 0, 0)
        assert '"thoughtNumber": 1' in words(await client.call_tool("sequentialthinking", thought))


async def test_time() -> None:
    async with connected(python_server("mcp-server-time", "--local-timezone", "UTC")) as client:
        assert await seen(client) == ("2026-07-28", 2, 0, 0)
        assert '"timezone": "UTC"' in words(await client.call_tool("get_current_time", {"timezone": "UTC"}))


async def test_git(tmp_path: Path) -> None:
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(tmp_path)], check=True)
    async with connected(python_server("mcp-server-git")) as client:
        assert await seen(client) == ("2026-07-28", 12, 0, 0)
        assert "No commits yet" in words(await client.call_tool("git_status", {"repo_path": str(tmp_path)}))


async def test_sqlite(tmp_path: Path) -> None:
    config = python_server(
        "mcp-server-sqlite", "--db-path", str(tmp_path / "data.db"), folder=OLD_PYTHON_PEERS
    )
    async with connected(config) as client:
        assert await seen(client) == ("2025-11-25", 6, 1, 1)
        await client.call_tool("create_table", {"query": "CREATE TABLE memo (words TEXT)"})
        assert "memo" in words(await client.call_tool("list_tables"))


@contextmanager
def everything_over_http(way: str) -> Iterator[str]:
    """The address of the server that has everything, over one of the two remote ways."""
    program = node_server("everything", way)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [program.command, *program.arguments],
        env=os.environ | {"PORT": str(port)},
        stderr=subprocess.PIPE,
        text=True,
    )
    late = threading.Timer(100, server.kill)
    late.start()
    assert server.stderr is not None
    try:
        assert next((line for line in server.stderr if f"port {port}" in line), None), "it did not start"
        yield f"http://127.0.0.1:{port}/{'sse' if way == 'sse' else 'mcp'}"
    finally:
        late.cancel()
        server.kill()
        server.communicate()


@pytest.fixture(params=["stdio", "streamableHttp", "sse"])
def everything(request: pytest.FixtureRequest) -> Iterator[MCPServerConfig]:
    way: str = request.param
    if way == "stdio":
        yield node_server("everything", "stdio")
        return
    transport = Transport.SSE if way == "sse" else Transport.STREAMABLE_HTTP
    with everything_over_http(way) as url:
        yield MCPServerConfig("everything", transport=transport, url=url)


async def test_everything(everything: MCPServerConfig) -> None:
    provider = MockProvider().queue_text("A model's words.")
    options = MCPOptions(
        answers=MCPAnswers(
            elicit=accepts, sampling=Sampling(provider=provider, consent=consents), roots=("/srv",)
        )
    )
    async with connected(everything, options) as client:
        protocol, tools, resources, prompts = await seen(client)
        assert (protocol, resources, prompts) == ("2025-11-25", 7, 4)
        assert tools >= 13
        assert words(await client.call_tool("echo", {"message": "hi"})) == "Echo: hi"
        steps: list[float] = []
        await client.call_tool(
            "trigger-long-running-operation",
            {"duration": 0.2, "steps": 2},
            on_progress=lambda step, *_: steps.append(step),
        )
        assert steps == [1, 2]
        kinds = [block.type for block in (await client.call_tool("get-tiny-image")).content]
        assert kinds == ["text", "image", "text"]
        weather = await client.call_tool("get-structured-content", {"location": "Chicago"})
        assert set(weather.structured_content) == {"temperature", "conditions", "humidity"}
        sampled = await client.call_tool("trigger-sampling-request", {"prompt": "Say it.", "maxTokens": 9})
        assert "A model's words." in words(sampled)
        asked = await client.call_tool("trigger-elicitation-request")
        assert "User provided the requested information" in words(asked)
        (message, *_) = (await client.get_prompt("simple-prompt")).messages
        assert message.content.type == "text"
        resource = (await client.resources())[0]
        assert (await client.read_resource(resource.uri)).contents
        assert "Engineering" in await client.complete({"name": "completable-prompt"}, ("department", "E"))


async def accepts(params: Mapping[str, object]) -> Mapping[str, object]:
    schema = cast("dict[str, Any]", params["requestedSchema"])
    blanks = {"string": "x", "integer": 1, "number": 1, "boolean": True}
    content = {
        name: blanks[field["type"]]
        for name, field in schema["properties"].items()
        if name in schema.get("required", [])
    }
    return {"action": "accept", "content": content}


async def consents(_: SamplingRequest) -> bool:
    return True


async def test_a_server_that_was_written_for_another_sdk_says_why_it_died() -> None:
    """`mcp-server-sqlite` under the newest SDK: a real program that dies while it is started."""
    config = python_server("mcp-server-sqlite", "--help", folder=OLD_PYTHON_PEERS)
    client = MCPClient(config)
    with pytest.raises(McpError) as failed:
        await asyncio.wait_for(client.initialize(), BOUND)
    assert failed.value.kind == "start"
    await client.close()
