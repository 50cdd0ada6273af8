"""An agent with the tools of a server: beside its own, stopped, and asked something over a restart."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dialoom.agent import AGENT_TYPES, ReActAgent
from dialoom.graph import END, START, GraphBuilder, MemoryCheckpointStore, RunControl, RunOptions
from dialoom.llm import MockProvider, ToolCall
from dialoom.mcp.server import GraphTool
from dialoom.mcp.tool_sync import add_mcp_tools
from dialoom.stores import SqliteCheckpointStore
from dialoom.tools import ToolRegistry, tool
from tests.mcp import official
from tests.mcp.official import Peer, ours
from tests.peers.mcp_peers import ROOT


async def test_tools_of_a_server_run_beside_local_ones():
    peer, met = Peer(official.tool("meet")), asyncio.Barrier(2)

    async def meet(ctx: Any, params: Any) -> str:
        await met.wait()
        return "there"

    @tool
    async def wait_here() -> str:
        """Meet the other tool."""
        await met.wait()
        return "here"

    peer.do_meet = meet  # pyright: ignore[reportAttributeAccessIssue] - found by its name
    tools = ToolRegistry([wait_here])
    provider = MockProvider()
    provider.queue_tool_calls(
        ToolCall(id="1", name="peer__meet", arguments={}), ToolCall(id="2", name="wait_here", arguments={})
    )
    provider.queue_text("both met")
    async with asyncio.timeout(60), ours(peer) as client:
        await add_mcp_tools(tools, client)
        result = await ReActAgent(provider, tools).run("meet")
    said = [part.content for message in result.history for part in message.tool_results]
    assert said == ["there", "here"]
    assert result.answer == "both met"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_stopping_the_agent_stops_the_call_at_the_server(mode: str):
    peer, control, tools = Peer(official.tool("wait")), RunControl(), ToolRegistry()
    provider = MockProvider().queue_tool_call("1", "peer__wait", {})
    async with asyncio.timeout(60), ours(peer, mode=mode) as client:
        await add_mcp_tools(tools, client)
        running = asyncio.ensure_future(ReActAgent(provider, tools).run("wait", RunOptions(control=control)))
        await peer.waiting.wait()
        control.cancel()
        assert (await running).stop_reason == "cancelled"
        await peer.stopped.wait()


async def _step(path: Path, step: str) -> dict[str, Any]:
    command = (sys.executable, "-m", "tests.mcp.agent_program", str(path), step)
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(60):
        said, _ = await process.communicate()
    return json.loads(said)


@pytest.mark.slow
async def test_what_a_server_asks_is_answered_after_a_restart(tmp_path: Path):
    path = tmp_path / "runs.sqlite"
    question = {
        "kind": "mcp_elicitation",
        "server": "peer",
        "tool": "ask",
        "title": "your name?",
        "schema": {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]},
        "fields": [{"id": "value", "label": "value", "type": "text", "required": True}],
    }
    asked = await _step(path, "ask")
    assert (asked["stop"], asked["waiting"]) == ("needs_approval", [question])
    again = await _step(path, "Ann")
    assert [each["title"] for each in again["waiting"]] == ["your colour?"]
    assert await _step(path, "blue") == {
        "stop": "finished",
        "said": ["Ann likes blue"],
        "waiting": [],
        "answer": "done",
    }


async def test_a_graph_among_an_agent_s_tools_asks_through_the_agent(tmp_path: Path):
    builder = GraphBuilder("oracle")
    builder.add_channel("question", type=str, default="")
    builder.add_channel("answer", type=str, default="")
    builder.add_node("ask", lambda ctx: {"answer": f"{ctx.interrupt({'message': 'which?'})}!"})
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    oracle = GraphTool(builder.build(store=MemoryCheckpointStore()), description="Ask it.", gives="answer")
    provider = MockProvider().queue_tool_call("1", "oracle", {"question": "what"}).queue_text("done")
    with SqliteCheckpointStore(tmp_path / "runs.sqlite", types=AGENT_TYPES) as store:
        agent = ReActAgent(provider, [oracle], store=store)
        asked = await agent.run("go")
        result = await agent.resume(asked, {"1": "this"})
    said = [part.content for message in result.history for part in message.tool_results]
    assert (asked.stop_reason, said) == ("needs_approval", ["this!"])
