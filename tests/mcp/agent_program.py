"""An agent that uses a tool server and is restarted in the middle: what a person's own program would be.

Run `python -m tests.mcp.agent_program FILE ask` and then `... FILE answer`; each prints one line of JSON.
"""

import asyncio
import sys
from pathlib import Path

import msgspec

from dialoom.agent import AGENT_TYPES, AgentResult, ReActAgent
from dialoom.graph import RunOptions
from dialoom.llm import MockProvider
from dialoom.mcp import MCPClient
from dialoom.mcp.tool_sync import add_mcp_tools
from dialoom.stores import SqliteCheckpointStore
from dialoom.tools import ToolRegistry
from tests.mcp.official import Peer, tool

THREAD = "conversation-1"


async def main(path: Path, step: str) -> AgentResult:
    """Run one step on the thread kept in `path`."""
    provider = MockProvider()
    if step == "ask":
        provider.queue_tool_call("call-1", "peer__ask", {})
    else:
        provider.queue_text("done")
    tools = ToolRegistry()
    with SqliteCheckpointStore(path, types=AGENT_TYPES) as store:
        # a new one each time: nothing is kept on that side either
        async with MCPClient.in_process(Peer(tool("ask")).server, name="peer") as client:
            await add_mcp_tools(tools, client)
            agent = ReActAgent(provider, tools, store=store)
            if step == "ask":
                return await agent.run("who am I?", RunOptions(thread_id=THREAD))
            answer = {"call-1": {"value": step}}
            return await agent.resume(THREAD, answer)


if __name__ == "__main__":
    result = asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
    said = [part.content for message in result.history for part in message.tool_results]
    waiting = [each.payload for each in result.pending]
    told = {"stop": result.stop_reason, "said": said, "waiting": waiting, "answer": result.answer}
    print(msgspec.json.encode(told, enc_hook=dict).decode())
