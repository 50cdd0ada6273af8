"""The node that asks the model: one round, streamed, and what follows from the answer."""

import asyncio
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from dialoom.agent.admission import reworded
from dialoom.agent.arrived import keepable
from dialoom.agent.compaction import Summary, compact, summarised
from dialoom.agent.ending import halt
from dialoom.agent.events import AgentFinished, RoundStarted
from dialoom.agent.guards import Blocked
from dialoom.agent.limits import MAX_CALLS_PER_ROUND
from dialoom.agent.names import MODEL, OUTPUT, TOOLS
from dialoom.agent.prompt import PromptView, said
from dialoom.agent.spec import AgentSpec
from dialoom.agent.tally import plus, refuse_beyond, spent_on
from dialoom.graph.context import NodeContext
from dialoom.graph.frontier import Send
from dialoom.graph.names import END
from dialoom.graph.result import NodeResult
from dialoom.llm.errors import ProviderError
from dialoom.llm.events import FellBack, ResponseCompleted, Retrying, TextDelta
from dialoom.llm.messages import Message, ToolCallPart, tool_result
from dialoom.llm.options import ChatOptions
from dialoom.llm.provider import ResponseStream
from dialoom.llm.response import ChatResponse, FinishReason
from dialoom.llm.usage import Usage
from dialoom.llm.usage_limits import Spent, UsageLimitError
from dialoom.tools.result import failed

ToolChoice: TypeAlias = Literal["auto", "none", "required"] | None
_OUTCOMES: Final[dict[FinishReason, str]] = {
    "stop": "finished",
    "tool_calls": "finished",
    "length": "length",
    "content_filter": "refused",
}
_NOTHING: Final = Message(role="assistant")


class ModelNode:
    """Asks for one answer and commits it; sends each of its calls on as a task of its own.

    An answer that breaks off, because the run was stopped or the provider failed, is committed as far as it
    came and marked; the node stays next, so that a resumed run asks again.
    """

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec
        self._views = PromptView()

    async def __call__(self, ctx: NodeContext) -> NodeResult:
        spec, state = self._spec.member(ctx.state["agent"]), ctx.state
        most, rounds = self._spec.settings.limits.iterations, state["rounds"]
        if rounds >= most:
            words = (
                f"the limit of {most} iterations is reached; raise limits.iterations and resume, or ask anew"
            )
            return halt("max_iterations", words, goto=MODEL)
        try:
            refuse_beyond(self._spec, state["spent"])
            await spec.tell(ctx, RoundStarted(round=rounds + 1, agent=spec.name))
            result = await _Round(spec, ctx, self._spec).result(self._views)
        except UsageLimitError as error:
            return halt("usage_limit", str(error), goto=MODEL)
        if result.goto:
            self._views.forget(spec, ctx.run_id)
        return result


class _Round:
    """One request of the agent `spec` and what it comes to; `root` is the agent whose turn it is."""

    def __init__(self, spec: AgentSpec, ctx: NodeContext, root: AgentSpec) -> None:
        self._spec = spec
        self._ctx = ctx
        self._root = root
        self._writes: dict[str, object] = {"spent": Spent()}

    async def result(self, views: PromptView) -> NodeResult:
        """Ask, and return what the node writes and where it leads."""
        spec, partial = self._spec, _NOTHING
        messages = await self._messages(views)
        try:
            async with spec.provider.stream(messages, self._options()) as stream:
                try:
                    response = await self._told(stream)
                except BaseException:
                    partial = stream.partial
                    raise
        except asyncio.CancelledError:
            if not self._ctx.stop_requested:  # this very task is cancelled; the engine has to hear of it
                raise
            self._keep(partial, mark="cancelled")
            return NodeResult.ok(self._writes, goto=MODEL)
        except ProviderError as error:
            self._keep(error.partial or partial, mark="incomplete")
            return halt("error", str(error), self._writes, goto=MODEL)
        return await self._answered(response)

    async def _messages(self, views: PromptView) -> Sequence[Message]:
        """Return the prompt; its older part told in short, once that is due."""
        spec, ctx, compaction = self._spec, self._ctx, self._spec.settings.compaction
        messages: Sequence[Message] = said(spec, ctx.state)
        if compaction is not None:
            before: Summary = ctx.state["summary"]
            done = await compact(
                spec.provider, messages, before, compaction=compaction, options=spec.settings.options
            )
            if done.summary != before:
                self._writes["summary"] = done.summary
                self._spend(done.usage, done.model)
            messages = summarised(messages, done.summary)
        messages = views.fitted(messages, spec, ctx.run_id)  # last: a summary counts what was said in all
        wanted = self._root.output
        return messages if wanted is None else wanted.instruct(messages)

    def _options(self) -> ChatOptions:
        options, tools, wanted = self._spec.settings.options, self._spec.tools.specs(), self._root.output
        return msgspec.structs.replace(
            options,
            tools=tools,
            tool_choice=self._tool_choice(options),
            cancel=None,
            # with tools beside it, too many servers answer in the schema when they should call
            response_schema=None if tools or wanted is None else wanted.schema,
        )

    def _tool_choice(self, options: ChatOptions) -> ToolChoice:
        """Return how free the model is: one made to call in every round would never come to an answer."""
        state, most = self._ctx.state, self._root.settings.limits.tool_calls
        if most is not None and state["calls"] >= most:
            return "none"
        return None if options.tool_choice == "required" and state["rounds"] else options.tool_choice

    async def _told(self, stream: ResponseStream) -> ChatResponse:
        """Pass the pieces of an answer on, and return the whole."""
        streamed = False
        async for event in stream:
            match event:
                case TextDelta():
                    streamed = True
                case Retrying() | FellBack():
                    streamed = False
                case ResponseCompleted(response=response) if not streamed and response.text:
                    # the provider does not stream: its answer is one piece
                    await self._spec.tell(self._ctx, TextDelta(response.text))
                case _:
                    pass
            await self._spec.tell(self._ctx, event)
        return stream.response

    async def _answered(self, response: ChatResponse) -> NodeResult:
        state, message = self._ctx.state, keepable(response.message)
        self._spend(response.usage, response.model)
        self._writes |= {"rounds": state["rounds"] + 1}
        if state["outcome"]:
            self._writes |= {"outcome": "", "error": ""}
        if message.tool_calls:
            return self._sent(message)
        if response.finish_reason == "pause":
            self._writes["turn"] = [message]
            return NodeResult.ok(self._writes, goto=MODEL)
        return await self._final(message, response.finish_reason)

    async def _final(self, message: Message, finish_reason: FinishReason) -> NodeResult:
        """End the turn with an answer, if the guards let it out and it holds the value that is wanted."""
        passed = await self._root.settings.guards.check_output(message.text)
        if isinstance(passed, Blocked):
            return NodeResult.ok({**self._writes, "outcome": "blocked", "error": str(passed)}, goto=END)
        if passed.value != message.text:
            message = reworded(message, passed.value)
        self._writes["turn"] = [message]
        outcome = "refused" if message.refusal else _OUTCOMES[finish_reason]
        wanted = self._root.output
        if outcome == "finished" and wanted is not None:
            found = wanted.found(message.text)
            if found is None:
                return NodeResult.ok(self._writes, goto=OUTPUT)
            self._writes["output"] = found
        self._writes["outcome"] = outcome
        if outcome == "finished":
            await self._spec.tell(self._ctx, AgentFinished(answer=message.text))
        return NodeResult.ok(self._writes, goto=END)

    def _sent(self, message: Message) -> NodeResult:
        """Send each call on; those beyond the limits are answered here."""
        state, settings = self._ctx.state, self._root.settings
        calls, at = message.tool_calls, len(state["turn"])
        most = settings.limits.tool_calls
        left = MAX_CALLS_PER_ROUND if most is None else max(0, most - state["calls"])
        run = min(len(calls), left, MAX_CALLS_PER_ROUND)
        refused = [
            tool_result(call.id, _too_many(call.name), name=call.name, is_error=True) for call in calls[run:]
        ]
        self._writes["turn"] = [message, *refused]
        if run == 0:
            return NodeResult.ok(self._writes, goto=MODEL)
        self._writes["calls"] = state["calls"] + run
        sent = range(run if self._spec.settings.policy.parallel else 1)
        tasks = [Send(TOOLS, (at, each, run, state["agent"])) for each in sent]
        return NodeResult.ok(self._writes, goto=(), sends=tasks)

    def _keep(self, partial: Message, *, mark: str) -> None:
        """Keep the words of an answer that broke off, without its calls; none of them is run."""
        if partial.parts or partial.usage is not None:
            self._spend(partial.usage or Usage(), "")
        words = tuple(part for part in partial.parts if not isinstance(part, ToolCallPart))
        said = msgspec.structs.replace(partial, parts=words)
        if said.text or said.refusal:
            self._writes |= {"turn": [said], "broken": [(len(self._ctx.state["turn"]), mark)]}

    def _spend(self, usage: Usage, model: str) -> None:
        before = self._writes["spent"]
        assert isinstance(before, Spent)
        self._writes["spent"] = plus(before, spent_on(self._spec, usage, model))


def _too_many(tool: str) -> str:
    error = "the limit of tool calls is reached, so it was not run; answer with what you have"
    return failed(error, tool=tool).content
