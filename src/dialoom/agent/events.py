"""What an agent says while it works, beside the pieces of the model's answers.

A listener of the graph finds these, and the `StreamEvent`s of `dialoom.llm`, as `value` of its `Chunk`s.
"""

from typing import TypeAlias

import msgspec

from dialoom.agent.pending import Approval
from dialoom.llm.events import StreamEvent
from dialoom.llm.files import FilePart
from dialoom.llm.messages import ToolCall


class RoundStarted(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="agent.round_started"):
    """The model is asked, for the `round`th time of this turn. `agent` is who asks, where several work."""

    round: int
    agent: str = ""


class ToolStarted(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="agent.tool_started"):
    """A call is run; with the arguments a person put in their place, when one did."""

    call: ToolCall


class ToolProgress(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="agent.tool_progress"):
    """A sign of life of a running call; `value` is the tool's own."""

    call_id: str
    tool: str
    value: object


class ToolFinished(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="agent.tool_finished"):
    """A call has its answer: what the model will read of it. One that was not run has one too."""

    call_id: str
    tool: str
    content: str
    is_error: bool = False
    files: tuple[FilePart, ...] = ()


class ApprovalRequested(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="agent.approval_requested"
):
    """A call waits for a person."""

    approval: Approval


class AgentFinished(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="agent.finished"):
    """The model gave its final answer. Once per turn, and only when it did."""

    answer: str


AgentStep: TypeAlias = (
    RoundStarted | ToolStarted | ToolProgress | ToolFinished | ApprovalRequested | AgentFinished
)
AgentEvent: TypeAlias = StreamEvent | AgentStep
