"""The node that runs the calls of a round, each as a task of its own."""

import asyncio
from typing import cast
from weakref import WeakValueDictionary

from dialoom.agent.call import CallEnd, CallWork
from dialoom.agent.names import TOOLS
from dialoom.agent.spec import AgentSpec
from dialoom.graph.context import NodeContext
from dialoom.graph.frontier import Send
from dialoom.graph.result import NodeResult
from dialoom.llm.messages import Message


class ToolsNode:
    """Runs the call that its task was sent for.

    What a call came to is durable before the round goes on: at once when others of its round are under way,
    with the superstep otherwise. A call that was under way when the program died is run again when its tool
    is idempotent; otherwise the model reads that it may have run.
    """

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec
        self._gates: WeakValueDictionary[tuple[str, int], asyncio.Semaphore] = WeakValueDictionary()

    async def __call__(self, ctx: NodeContext) -> NodeResult:
        at, index, count, agent = cast("tuple[int, int, int, str]", ctx.input)
        message: Message = ctx.state["turn"][at]
        spec = self._spec.member(agent)  # who made the call, also when another goes on since
        work = CallWork(spec, ctx, message.tool_calls[index], said=message.text)
        parallel = spec.settings.policy.parallel
        if count == 1 or not parallel:
            end = await work.end()
        else:
            async with self._gate(ctx):
                end: CallEnd = await ctx.aonce("end", work.end)
        writes: dict[str, object] = {"turn": [end.message]}
        if end.spent.requests:
            writes["spent"] = end.spent
        if end.agent:
            writes["agent"] = end.agent
        if end.card is not None:
            writes["cards"] = [{"call_id": work.call.id, "card": end.card}]
        if not parallel and index + 1 < count:
            # the next call of the round waits for this one, also while this one waits for a person
            return NodeResult.ok(writes, goto=(), sends=[Send(TOOLS, (at, index + 1, count, agent))])
        return NodeResult.ok(writes)

    def _gate(self, ctx: NodeContext) -> asyncio.Semaphore:
        """Return what lets only so many calls of one round run at once."""
        key = (ctx.run_id, ctx.step)
        gate = self._gates.get(key)
        if gate is None:
            gate = self._gates[key] = asyncio.Semaphore(self._spec.settings.policy.max_concurrency)
        return gate
