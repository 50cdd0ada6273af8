"""The node that asks the model: one round, streamed, and what follows from the answer."""

import asyncio
from typing import Final

import msgspec

from dialoom.agent.events import AgentFinished, RoundStarted
from dialoom.agent.limits import MAX_CALLS_PER_ROUND
from dialoom.agent.names import MODEL, TOOLS
from dialoom.agent.spec import AgentSpec
from dialoom.graph.context import NodeContext
from dialoom.graph.frontier import Send
from dialoom.graph.names import END
from dialoom.graph.result import NodeResult
from dialoom.llm.errors import ProviderError
from dialoom.llm.events import FellBack, ResponseCompleted, Retrying, TextDelta
from dialoom.llm.messages import Message, ToolCallPart, ToolResultPart
from dialoom.llm.provider import ResponseStream
from dialoom.llm.response import ChatResponse, FinishReason
from dialoom.llm.usage import Usage
from dialoom.llm.usage_limits import UsageLimitError, UsageMeter
from dialoom.tools.result import failed

_OUTCOMES: Final[dict[FinishReason, str]] = {
    "stop": "finished",
    "tool_calls": "finished",
    "length": "length",
    "content_filter": "refused",
}


class ModelNode:
    """Asks for one answer and commits it; sends each of its calls on as a task of its own.

    An answer that breaks off, because the run was stopped or the provider failed, is committed as far as it
    came and marked; the node stays next, so that a resumed run asks again.
    """

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec

    async def __call__(self, ctx: NodeContext) -> NodeResult:
        spec, state = self._spec, ctx.state
        most, rounds = spec.settings.limits.iterations, state["rounds"]
        if rounds >= most:
            words = f"there is no answer after {most} rounds; raise limits.iterations and resume, or ask anew"
            return _halt("max_iterations", words)
        meter = UsageMeter(spec.settings.limits.usage, prices=spec.settings.prices)
        meter.spent = state["spent"]
        try:
            meter.begin()
            await ctx.aemit(RoundStarted(round=rounds + 1, agent=spec.name))
            return await self._ask(ctx, meter)
        except UsageLimitError as error:
            return _halt("usage_limit", str(error))

    async def _ask(self, ctx: NodeContext, meter: UsageMeter) -> NodeResult:
        spec, partial = self._spec, Message(role="assistant")
        options = msgspec.structs.replace(
            spec.settings.options, tools=spec.tools.specs(), cancel=None, response_schema=None
        )
        try:
            async with spec.provider.stream(spec.prompt(ctx.state), options) as stream:
                try:
                    response = await _told(ctx, stream)
                except BaseException:
                    partial = stream.partial
                    raise
        except asyncio.CancelledError:
            if not ctx.stop_requested:  # this very task is cancelled; the engine has to hear of it
                raise
            return self._broken(ctx, partial, meter, mark="cancelled")
        except ProviderError as error:
            kept = error.partial or partial
            result = self._broken(ctx, kept, meter, mark="incomplete")
            return _halt("error", str(error), result)
        return await self._answered(ctx, response, meter)

    async def _answered(self, ctx: NodeContext, response: ChatResponse, meter: UsageMeter) -> NodeResult:
        state, message = ctx.state, response.message
        self._count(meter, response.usage, response.model)
        writes: dict[str, object] = {"spent": meter.spent, "rounds": state["rounds"] + 1}
        if state["outcome"]:
            writes |= {"outcome": "", "error": ""}
        if message.tool_calls:
            return self._sent(ctx, message, writes)
        writes["turn"] = [message]
        if response.finish_reason == "pause":
            return NodeResult.ok(writes, goto=MODEL)
        outcome = "refused" if message.refusal else _OUTCOMES[response.finish_reason]
        writes["outcome"] = outcome
        if outcome == "finished":
            await ctx.aemit(AgentFinished(answer=message.text))
        return NodeResult.ok(writes, goto=END)

    def _sent(self, ctx: NodeContext, message: Message, writes: dict[str, object]) -> NodeResult:
        """Send each call on; those beyond the limits are answered here."""
        state, settings = ctx.state, self._spec.settings
        calls, at = message.tool_calls, len(state["turn"])
        most = settings.limits.tool_calls
        left = MAX_CALLS_PER_ROUND if most is None else max(0, most - state["calls"])
        run = min(len(calls), left, MAX_CALLS_PER_ROUND)
        refused = [
            result_message(call.id, call.name, _too_many(call.name), is_error=True) for call in calls[run:]
        ]
        writes["turn"] = [message, *refused]
        if run == 0:
            return NodeResult.ok(writes, goto=MODEL)
        writes["calls"] = state["calls"] + run
        sent = range(run if settings.policy.parallel else 1)
        return NodeResult.ok(writes, goto=(), sends=[Send(TOOLS, (at, index, run)) for index in sent])

    def _broken(self, ctx: NodeContext, partial: Message, meter: UsageMeter, *, mark: str) -> NodeResult:
        """Keep the words of an answer that broke off, without its calls; none of them is run."""
        self._count(meter, partial.usage or Usage(), "")
        writes: dict[str, object] = {"spent": meter.spent}
        words = tuple(part for part in partial.parts if not isinstance(part, ToolCallPart))
        said = msgspec.structs.replace(partial, parts=words)
        if said.text or said.refusal:
            writes |= {"turn": [said], "broken": [(len(ctx.state["turn"]), mark)]}
        return NodeResult.ok(writes, goto=MODEL)

    def _count(self, meter: UsageMeter, usage: Usage, model: str) -> None:
        named = model or self._spec.settings.options.model or ""
        meter.add(usage, named, provider=self._spec.provider.id)


def result_message(call_id: str, tool: str, content: str, *, is_error: bool) -> Message:
    """Return what a model reads of a call's end."""
    part = ToolResultPart(call_id=call_id, content=content, name=tool, is_error=is_error)
    return Message(role="tool", parts=(part,))


async def _told(ctx: NodeContext, stream: ResponseStream) -> ChatResponse:
    """Pass the pieces of an answer on, and return the whole."""
    streamed = False
    async for event in stream:
        match event:
            case TextDelta():
                streamed = True
            case Retrying() | FellBack():
                streamed = False
            case ResponseCompleted(response=response) if not streamed and response.text:
                await ctx.aemit(TextDelta(response.text))  # the provider does not stream
            case _:
                pass
        await ctx.aemit(event)
    return stream.response


def _halt(outcome: str, error: str, result: NodeResult | None = None) -> NodeResult:
    """End the run here, with the model next when it is resumed."""
    writes = NodeResult() if result is None else result
    return NodeResult.ok({**writes.writes, "outcome": outcome, "error": error}, goto=MODEL, halt=True)


def _too_many(tool: str) -> str:
    return failed(
        "the limit of tool calls is reached, so it was not run; answer with what you have", tool=tool
    ).content
