"""An agent as a node of any graph."""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from threading import RLock
from typing import Any, Self, cast

import msgspec

from dialoom.agent.events import AgentEvent
from dialoom.agent.given import AN_OBSERVER, expect, expect_part, question_of
from dialoom.agent.nested import NestedAgent
from dialoom.agent.observer import AgentObserver
from dialoom.agent.react import ReActAgent
from dialoom.agent.result import AgentResult
from dialoom.base.errors import UsageError
from dialoom.base.events import Observer, notify
from dialoom.graph.channels import Channel
from dialoom.graph.context import NodeContext
from dialoom.graph.events import Chunk
from dialoom.graph.result import NodeResult
from dialoom.llm.messages import Message
from dialoom.llm.pairing import paired

_CALL: ContextVar["_Call | None"] = ContextVar("dialoom agent node", default=None)


class AgentNode:
    """`add_node("chat", AgentNode(agent))`: answers the question in one channel and writes to another.

    It reads channel `query`, words or a message, and writes `answer` and, of those the graph has,
    `agent_history`, `agent_events`, `agent_usage` and `agent_stop_reason`, as JSON values. With a `history`
    channel the question continues the messages there; the new ones are added when that channel appends,
    otherwise all of them are written.

    It is part of the run around it, which stops it, hears its events, keeps its checkpoints (in a store with
    `types=AGENT_TYPES`), asks what its tools ask, and counts its supersteps. An agent that does not finish
    fails the node with its stop reason; resumed, it goes on where it stood.
    """

    def __init__(
        self,
        agent: ReActAgent,
        *,
        query: str = "query",
        answer: str = "answer",
        history: str | None = None,
        on_delta: Callable[[str], None] | None = None,
    ) -> None:
        self._query = query
        self._answer = answer
        self._history = history
        self._observers: list[Observer] = [] if on_delta is None else [_Deltas(on_delta)]
        expect(agent, ReActAgent, what="the agent of a node", give="a ReActAgent")
        self._nested = NestedAgent(msgspec.structs.replace(agent.spec, listen=self._hear))

    def add_observer(self, observer: Observer) -> Self:
        """Have `observer` hear the events of this agent, and nothing else of the graph."""
        expect_part(observer, "on_event", what="an observer", give=AN_OBSERVER)
        self._observers.append(observer)
        return self

    async def __call__(self, ctx: NodeContext) -> NodeResult:
        """Answer. Errors are those of the node."""
        channels = ctx.nest().channels
        said = _messages(ctx.state.get(self._history, ())) if self._history else ()
        token = _CALL.set(_Call("/".join((ctx.run_id, *ctx.nest().ns))))
        try:
            result = await self._nested.result(ctx, said, question_of(ctx.state[self._query]))
        finally:
            _CALL.reset(token)
        if not result.finished:
            return NodeResult.fail(f"{result.stop_reason}: {result.error}")
        return NodeResult.ok(self._writes(result, channels, already=len(paired(said))))

    def _writes(
        self, result: AgentResult, channels: Mapping[str, Channel], *, already: int
    ) -> dict[str, Any]:
        history = [message.to_dict() for message in result.history]
        told = {
            "agent_history": history,
            "agent_events": msgspec.to_builtins(result.events),
            "agent_usage": msgspec.to_builtins(result.usage),
            "agent_stop_reason": result.stop_reason,
        }
        writes = {name: value for name, value in told.items() if name in channels}
        if self._history is not None:
            appends = self._history in channels and channels[self._history].reducer.kind == "extend"
            writes[self._history] = history[already:] if appends else history
        return {**writes, self._answer: result.answer}

    def _hear(self, ctx: NodeContext, event: AgentEvent) -> None:
        """Tell the listeners of this node, numbered for each time it runs."""
        call = _CALL.get()
        if call is None or not self._observers:
            return
        with call.lock:
            call.seq += 1
            chunk = Chunk(
                run_id=call.id,
                seq=call.seq,
                thread_id=ctx.thread_id,
                step=ctx.step,
                node=ctx.node,
                value=event,
            )
            notify(self._observers, chunk)


class _Deltas(AgentObserver):
    """Hands the words of answers to a function."""

    def __init__(self, on_delta: Callable[[str], None]) -> None:
        self._on_delta = on_delta

    def on_delta(self, text: str) -> None:
        self._on_delta(text)


class _Call:
    """One time that a node runs, and how many events it has told."""

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.seq = 0
        self.lock = RLock()  # reentrant: an observer may emit


def _messages(held: object) -> Sequence[Message]:
    """Read a history channel: messages, or what they are as JSON values. Raises `UsageError`."""
    if not isinstance(held, Sequence) or isinstance(held, str):
        raise UsageError(f"the history channel holds {type(held).__name__}; write a list of messages to it")
    return [
        each if isinstance(each, Message) else Message.from_dict(cast("dict[str, object]", each))
        for each in cast("Sequence[object]", held)
    ]
