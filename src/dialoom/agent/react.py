"""The agent as one object: ask it, go on with it, resume it."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import msgspec

from dialoom.agent.graph import agent_graph, begin
from dialoom.agent.pending import Pending, question_ids
from dialoom.agent.result import AgentResult, pending_of, result_of
from dialoom.agent.spec import DEFAULT_SETTINGS, AgentSettings, AgentSpec
from dialoom.agent.standing import NewestOnly
from dialoom.agent.stream import AgentStream
from dialoom.base.errors import UsageError
from dialoom.base.events import Observer
from dialoom.graph.checkpoint import Checkpoint, CheckpointStore
from dialoom.graph.graph import DEFAULT_BUFFER, Graph
from dialoom.graph.options import DEFAULT_OPTIONS, RunOptions
from dialoom.graph.result import RunResult
from dialoom.graph.resume import ResumeCommand
from dialoom.graph.stream import RunStream
from dialoom.llm.messages import Message, user
from dialoom.llm.messages import system as system_message
from dialoom.llm.provider import Provider
from dialoom.tools.registry import ToolRegistry
from dialoom.tools.tool import Tool

Answers = Mapping[str, object]
NO_ANSWERS: Answers = {}


class ReActAgent:
    """Answers with the help of tools: asks the model, runs the tools it calls, until it answers.

    Every way to run it ends in an `AgentResult`, also when the run fails. `options` are those of the engine:
    `thread_id`, `timeout`, `control`, and `deps`, which tools find as `ctx.deps`; the number of supersteps is
    the agent's own business. With a `store` a thread goes on where it stood, in this process or another.
    """

    def __init__(
        self,
        provider: Provider,
        tools: ToolRegistry | Iterable[Tool] = (),
        *,
        system: str = "",
        settings: AgentSettings = DEFAULT_SETTINGS,
        store: CheckpointStore | None = None,
        name: str = "agent",
    ) -> None:
        self.tools = tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)
        self.spec = AgentSpec(
            provider=provider,
            tools=self.tools,
            context=(system_message(system),) if system else (),
            settings=settings,
            name=name,
        )
        self._kept = store
        self._standing = NewestOnly()
        self._observers: list[Observer] = []
        self._graph: Graph | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def graph(self) -> Graph:
        """The graph that carries the agent; its runs take the inputs that `begin` makes."""
        if self._graph is None:
            self._graph = agent_graph(self.spec, self._kept or self._standing, self._observers)
        return self._graph

    def add_observer(self, observer: Observer) -> Self:
        """Have `observer` hear every event of every run that begins from now on."""
        self._observers.append(observer)
        self._graph = None
        return self

    async def run(self, question: str | Message, options: RunOptions = DEFAULT_OPTIONS) -> AgentResult:
        """Answer `question`."""
        return await self.continue_with((), question, options=options)

    def run_stream(
        self, question: str | Message, options: RunOptions = DEFAULT_OPTIONS, *, buffer: int = DEFAULT_BUFFER
    ) -> AgentStream:
        """`run`, as an async iterator over what happens; at most `buffer` events wait for the reader."""
        return self.continue_with_stream((), question, options=options, buffer=buffer)

    async def continue_with(
        self, history: Sequence[Message], question: str | Message, *, options: RunOptions = DEFAULT_OPTIONS
    ) -> AgentResult:
        """Answer `question` behind `history`, such as that of an earlier result."""
        inputs = _begun(history, question)
        return await self._ended(await self.graph.run(inputs, self._options(options)))

    def continue_with_stream(
        self,
        history: Sequence[Message],
        question: str | Message,
        *,
        options: RunOptions = DEFAULT_OPTIONS,
        buffer: int = DEFAULT_BUFFER,
    ) -> AgentStream:
        """`continue_with`, as an async iterator over what happens."""

        async def start() -> RunStream:
            return self.graph.stream(_begun(history, question), self._options(options), buffer=buffer)

        return AgentStream(start, self._ended)

    async def resume(
        self,
        where: AgentResult | str,
        answers: Answers = NO_ANSWERS,
        *,
        options: RunOptions = DEFAULT_OPTIONS,
    ) -> AgentResult:
        """Go on with a result that is not finished, or with a thread of the store.

        `answers` gives, by call id, what people said: `Approve()`, `Deny(reason)` or `Edit(arguments)`, or
        the answer to what a tool asked. Calls that are not answered keep waiting. Raises `UsageError` when
        no such call waits, and for a result that is over.
        """
        place, command = await self._place(where, answers)
        run = await self.graph.resume(place, command, options=self._options(options))
        return await self._ended(run)

    def resume_stream(
        self,
        where: AgentResult | str,
        answers: Answers = NO_ANSWERS,
        *,
        options: RunOptions = DEFAULT_OPTIONS,
        buffer: int = DEFAULT_BUFFER,
    ) -> AgentStream:
        """`resume`, as an async iterator over what happens."""

        async def start() -> RunStream:
            place, command = await self._place(where, answers)
            return self.graph.resume_stream(place, command, options=self._options(options), buffer=buffer)

        return AgentStream(start, self._ended)

    def _options(self, options: RunOptions) -> RunOptions:
        return msgspec.structs.replace(options, max_steps=self.spec.settings.limits.supersteps)

    async def _place(
        self, where: AgentResult | str, answers: Answers
    ) -> tuple[str | Checkpoint, ResumeCommand | None]:
        """Return where to go on, and with which answers, each by the engine's id of its question."""
        thread_id = where if isinstance(where, str) else where.thread_id
        if self._kept is not None:
            place: str | Checkpoint = thread_id
            pending = await self._pending(self._kept, thread_id) if answers else ()
        else:
            standing = None if isinstance(where, str) else where.standing
            if standing is None:
                raise UsageError(
                    f"nothing is left to resume of thread {thread_id!r}; ask anew, or give the agent a store"
                )
            place, pending = standing, tuple(pending_of(each) for each in standing.interrupts)
        return place, ResumeCommand.many(question_ids(pending, answers)) if answers else None

    async def _pending(self, store: CheckpointStore, thread_id: str) -> tuple[Pending, ...]:
        if store.blocking:
            newest = await asyncio.to_thread(store.load, thread_id)
        else:
            newest = store.load(thread_id)
        return () if newest is None else tuple(pending_of(each) for each in newest.interrupts)

    async def _ended(self, run: RunResult) -> AgentResult:
        standing = self._standing.take(run.thread_id)
        if standing is not None and standing.frontier.is_over:
            standing = None
        return result_of(run, standing=standing)


def _begun(history: Sequence[Message], question: str | Message) -> dict[str, Any]:
    asked = user(question) if isinstance(question, str) else question
    return begin((*history, asked))
