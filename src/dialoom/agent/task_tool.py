"""A tool that runs in the very task of the engine that its call has, and goes on where it stood."""

from abc import abstractmethod

from dialoom.graph.context import NodeContext
from dialoom.llm.usage_limits import Spent
from dialoom.tools.result import ToolResult
from dialoom.tools.tool import Tool


class TaskTool(Tool):
    """Base of tools that pause and resume by themselves, such as an agent that is asked by another.

    A call of one is never in doubt: what it did is in the note of its task. Time limits of the policy do not
    apply; it has its own.
    """

    @abstractmethod
    async def run_in(self, args: dict[str, object], ctx: NodeContext) -> tuple[ToolResult, Spent]:
        """Do the work; return what the model reads, and what was used of the turn's limits."""
