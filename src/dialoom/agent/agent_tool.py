"""An agent as a tool of another: it is asked a question, and its answer is the result."""

from collections.abc import Mapping
from typing import Final

import msgspec

from dialoom.agent.admission import admitted
from dialoom.agent.events import RoundStarted
from dialoom.agent.graph import agent_graph, begin
from dialoom.agent.guards import Blocked
from dialoom.agent.names import TOOLS
from dialoom.agent.nested import NestedAgent
from dialoom.agent.result import AgentResult, blocked_result, result_of
from dialoom.agent.spec import AgentSpec
from dialoom.agent.task_tool import TaskTool
from dialoom.graph.context import NodeContext
from dialoom.graph.options import RunOptions
from dialoom.llm.messages import user
from dialoom.llm.usage_limits import Spent
from dialoom.tools.context import ToolContext
from dialoom.tools.observe import to_plain
from dialoom.tools.result import ToolResult, failed
from dialoom.tools.tool import ToolOptions

MAX_DEPTH: Final = 8
"""So many agents may wait for one another: those that ask in a circle would never end otherwise."""
TOO_DEEP: Final = (
    f"{MAX_DEPTH} agents wait for one another already, so no other was asked; answer with what you have"
)
_PARAMETERS: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "minLength": 1, "description": "all the other agent needs to know"}
    },
    "required": ["question"],
    "additionalProperties": False,
}


class AgentTool(TaskTool):
    """Asks the agent `spec`. It sees the question alone, none of what was said before.

    What its own tools have to ask is asked by the whole, and its tokens count for the turn.
    """

    def __init__(self, spec: AgentSpec, *, name: str, description: str, options: ToolOptions) -> None:
        self.name = name
        self.description = description
        self.options = options
        self._spec = spec
        self._nested = NestedAgent(spec)

    def parameters_schema(self) -> Mapping[str, object]:
        return _PARAMETERS

    async def run_in(self, args: dict[str, object], ctx: NodeContext) -> tuple[ToolResult, Spent]:
        if sum(part.startswith(TOOLS) for part in ctx.nest().ns) > MAX_DEPTH:
            return failed("too_deep", tool=self.name, more={"message": TOO_DEEP}), Spent()
        result = await self._nested.result(ctx, (), user(str(args["question"])))
        spent = Spent(
            requests=sum(isinstance(event, RoundStarted) for event in result.events),
            usage=result.usage,
            cost=result.cost or Spent().cost,
            unpriced=int(result.cost is None),
        )
        return self._observed(result), spent

    async def run(self, args: dict[str, object], ctx: ToolContext) -> ToolResult:
        """Ask as a run of its own, where no agent is around it; nobody can then be asked to approve."""
        asked = await admitted(self._spec.settings.guards, user(str(args["question"])))
        if isinstance(asked, Blocked):
            return self._observed(blocked_result(asked, (), thread_id=ctx.run_id))
        most = self._spec.settings.limits.supersteps
        options = RunOptions(control=ctx.cancel, deps=ctx.deps, max_steps=most)
        run = await agent_graph(self._spec).run(begin([asked]), options)
        return self._observed(result_of(run, self._spec))

    def _observed(self, result: AgentResult) -> ToolResult:
        if not result.finished:
            more = {"message": result.error or "it waits for a person"}
            reason = result.stop_reason
            flag = reason if reason in ("cancelled", "timeout") else None
            return failed(reason, tool=self.name, more=more, flag=flag)
        if self._spec.output is None:
            return ToolResult(content=result.answer)
        plain = to_plain(result.output)
        return ToolResult(content=msgspec.json.encode(plain).decode(), structured=plain)
