"""A picture that a tool returns is seen by the agent's model, kept with the history, and read back."""

from pathlib import Path
from typing import Any

import pytest

from dialoom.agent import (
    AGENT_TYPES,
    AgentResult,
    AgentSettings,
    Approve,
    Block,
    Guards,
    ReActAgent,
    Replace,
    ToolFinished,
)
from dialoom.llm import FilePart, MockProvider, ToolCall, tool_result
from dialoom.stores import SqliteCheckpointStore
from dialoom.tools import tool

PICTURE = FilePart(data=b"\x89PNG\x00\xff", media_type="image/png", name="desk.png")
WORDS = "[image desk.png, image/png, 6 bytes]"
NO_GUARDS = Guards()
LOOK = ToolCall(id="c1", name="screenshot", arguments={})


@tool
async def screenshot() -> FilePart:
    """Take a picture of the desk."""
    return PICTURE


def looking(guards: Guards = NO_GUARDS) -> tuple[MockProvider, ReActAgent]:
    llm = MockProvider().queue_tool_calls(LOOK).queue_text("A desk.")
    return llm, ReActAgent(llm, [screenshot], settings=AgentSettings(guards=guards))


async def test_the_model_sees_the_picture_that_its_tool_took() -> None:
    llm, agent = looking()
    result = await agent.run("What is on my desk?")
    seen = tool_result("c1", WORDS, name="screenshot", files=(PICTURE,))
    assert llm.requests[1].messages[-1] == seen
    assert result.history[2] == seen
    finished = ToolFinished(call_id="c1", tool="screenshot", content=WORDS, files=(PICTURE,))
    assert finished in result.events


async def test_a_result_with_a_picture_is_read_in_another_process() -> None:
    _, agent = looking()
    result = await agent.run("Look")
    assert AgentResult.from_json(result.to_json()) == result


async def test_a_picture_outlives_a_restart_in_the_middle_of_the_turn(tmp_path: Path) -> None:
    @tool(requires_approval=True)
    def send() -> str:
        """Send it."""
        return "sent"

    path = tmp_path / "runs.db"
    both = (LOOK, ToolCall(id="c2", name="send", arguments={}))
    with SqliteCheckpointStore(path, types=AGENT_TYPES) as store:
        before = ReActAgent(MockProvider().queue_tool_calls(*both), [screenshot, send], store=store)
        waiting = await before.run("Look and send")
    assert waiting.stop_reason == "needs_approval"
    llm = MockProvider().queue_text("Done.")
    with SqliteCheckpointStore(path, types=AGENT_TYPES) as store:
        after = ReActAgent(llm, [screenshot, send], store=store)
        result = await after.resume(waiting, {"c2": Approve()})
    assert result.answer == "Done."
    assert llm.requests[0].messages[-2].files == (PICTURE,)


@pytest.mark.parametrize(("verdict", "files"), [(Replace("a desk"), (PICTURE,)), (Block("no pictures"), ())])
async def test_a_guard_that_blocks_a_result_blocks_its_picture_too(verdict: Any, files: Any) -> None:
    llm, agent = looking(Guards(after_tool=(lambda text, call: verdict,)))
    await agent.run("Look")
    assert llm.requests[1].messages[-1].files == files
