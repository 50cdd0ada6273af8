"""An agent inside a task of another graph: stopped, heard and kept with the run around it."""

from collections.abc import Sequence
from typing import Final

import msgspec

from dialoom.agent.admission import admitted
from dialoom.agent.graph import agent_graph
from dialoom.agent.guards import Blocked
from dialoom.agent.result import AgentResult, blocked_result, result_of
from dialoom.agent.spec import AgentSpec
from dialoom.graph.context import NodeContext
from dialoom.graph.result import NodeError, RunResult
from dialoom.graph.state import EMPTY, State, settled
from dialoom.graph.subgraph import SubgraphConfig
from dialoom.llm.messages import Message

_ASKED: Final = "what the agent is asked"
_CONFIG: Final = SubgraphConfig(
    inputs={"turn": _ASKED},
    outputs=("seen",),  # which it never writes: what becomes of its state is for `result_of` to read
)


class NestedAgent:
    """Runs the graph of `spec` as a subgraph of a task, so that it goes on where it stood."""

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec
        self._subgraph = agent_graph(spec).as_node(_CONFIG)

    async def result(self, ctx: NodeContext, history: Sequence[Message], question: Message) -> AgentResult:
        """Answer `question` in the task of `ctx`. Raises `Interrupted` and `Cancelled` as the task has to."""
        if ctx.nest().memo.child is None:
            said = await admitted(self._spec.settings.guards, question)
            if isinstance(said, Blocked):
                return blocked_result(said, history, thread_id=ctx.thread_id)
            question = said
        asked = State({_ASKED: [*history, question]})
        ended = await self._subgraph.run_on_loop(msgspec.structs.replace(ctx, state=asked))
        child = ctx.nest().memo.child
        run = RunResult(
            state=EMPTY if child is None else settled(State(child.state)),
            stop_reason="finished" if ended.error is None else "error",
            steps=0,
            run_id=ctx.run_id,
            thread_id=ctx.thread_id,
            errors=() if ended.error is None else (NodeError(node=ctx.node, message=ended.error),),
        )
        return result_of(run, self._spec)
