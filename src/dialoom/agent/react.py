"""The agent as one object: ask it, go on with it, resume it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self, TypeVar

import msgspec

from dialoom.agent.admission import admitted
from dialoom.agent.agent_tool import AgentTool
from dialoom.agent.given import (
    AN_OBSERVER,
    expect,
    expect_options,
    expect_part,
    messages_of,
    question_of,
)
from dialoom.agent.graph import agent_graph, begin
from dialoom.agent.guards import Blocked
from dialoom.agent.output import WantedOutput
from dialoom.agent.pending import question_ids
from dialoom.agent.result import AgentResult, blocked_result, pending_of, result_of
from dialoom.agent.spec import DEFAULT_SETTINGS, AgentSettings, AgentSpec, Handoff
from dialoom.agent.standing import NewestOnly
from dialoom.agent.stream import AgentStream
from dialoom.base.cancel import CancelScope
from dialoom.base.errors import UsageError
from dialoom.base.events import Observer
from dialoom.base.ids import new_id
from dialoom.graph.checkpoint import Checkpoint, CheckpointStore
from dialoom.graph.graph import DEFAULT_BUFFER, Graph
from dialoom.graph.options import DEFAULT_OPTIONS, RunOptions
from dialoom.graph.portal import the_portal
from dialoom.graph.result import RunResult
from dialoom.graph.resume import ResumeCommand
from dialoom.graph.stream import RunStream
from dialoom.llm.messages import Message
from dialoom.llm.messages import system as system_message
from dialoom.llm.provider import Provider
from dialoom.tools.registry import ToolRegistry
from dialoom.tools.tool import Tool, ToolOptions

T = TypeVar("T")

Answers = Mapping[str, object]
NO_ANSWERS: Answers = {}
ANSWERED = (
    "this result was answered already, and its calls may have run; go on with the result of that, or give the"
    " agent a store"
)
OVER = "nothing is left to resume of thread {!r}; ask anew, or give the agent a store"


class ReActAgent:
    """Answers with the help of tools: asks the model, runs the tools it calls, until it answers.

    Every way to run it ends in an `AgentResult`, also when the run fails. `options` are those of the engine:
    `thread_id`, `timeout`, `control`, and `deps`, which tools find as `ctx.deps`; the number of supersteps is
    the agent's own business. With a `store` a thread goes on where it stood, in this process or another, and
    a question on a thread that is known continues it.

    `output` is the type, or the JSON Schema, of the value that the final answer is to be. Raises `UsageError`
    for one that cannot be asked for.
    """

    def __init__(
        self,
        provider: Provider,
        tools: ToolRegistry | Iterable[Tool] = (),
        *,
        system: str = "",
        output: type[object] | Mapping[str, object] | None = None,
        settings: AgentSettings = DEFAULT_SETTINGS,
        store: CheckpointStore | None = None,
        name: str = "agent",
    ) -> None:
        expect(system, str, what="the system prompt of an agent", give="words, or leave it out")
        if store is not None:
            expect_part(
                store,
                "save",
                what="the store of an agent",
                give="a CheckpointStore, such as MemoryCheckpointStore()",
            )
        self.tools = tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)
        self.spec = AgentSpec(
            provider=provider,
            tools=self.tools,
            context=(system_message(system),) if system else (),
            settings=settings,
            name=name,
            output=None if output is None else WantedOutput(output),
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
        expect_part(observer, "on_event", what="an observer", give=AN_OBSERVER)
        self._observers.append(observer)
        self._graph = None
        return self

    def as_tool(
        self, description: str, *, name: str | None = None, options: ToolOptions | None = None
    ) -> Tool:
        """Return a tool with which another agent asks this one a question."""
        return AgentTool(
            self.spec, name=name or self.name, description=description, options=options or ToolOptions()
        )

    def as_handoff(self, description: str) -> Tool:
        """Return a tool with which another agent lets this one answer in its place."""
        return Handoff(self.spec, description)

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
        inputs = await self._inputs(*_turn_of(history, question, options), options)
        if isinstance(inputs, AgentResult):
            return inputs
        return await self._carry(lambda own: self.graph.run(inputs, own), options, end=self._ended)

    def continue_with_stream(
        self,
        history: Sequence[Message],
        question: str | Message,
        *,
        options: RunOptions = DEFAULT_OPTIONS,
        buffer: int = DEFAULT_BUFFER,
    ) -> AgentStream:
        """`continue_with`, as an async iterator over what happens."""
        before, asked = _turn_of(history, question, options)

        async def start() -> RunStream | AgentResult:
            inputs = await self._inputs(before, asked, options)
            if isinstance(inputs, AgentResult):
                return inputs
            return self.graph.stream(inputs, self._options(options), buffer=buffer)

        return AgentStream(start, self._ended, self._standing.abandon)

    async def resume(
        self,
        where: AgentResult | str,
        answers: Answers = NO_ANSWERS,
        *,
        options: RunOptions = DEFAULT_OPTIONS,
    ) -> AgentResult:
        """Go on with a result that is not finished, or with a thread of the store.

        `answers` gives, by call id, what people said: `Approve()`, `Deny(reason)` or `Edit(arguments)`, or
        the answer to what a tool asked. Calls that are not answered keep waiting. A thread of the store that
        is over gives its result again. Raises `UsageError` when no such call waits, for an answer that
        decides nothing or comes a second time, and without a store for a result that is over.
        """
        expect_options(options)
        place, command = await self._place(where, answers)

        async def end(run: RunResult) -> AgentResult:
            return self._answered(place, command, await self._ended(run))

        return await self._carry(lambda own: self.graph.resume(place, command, options=own), options, end=end)

    def resume_stream(
        self,
        where: AgentResult | str,
        answers: Answers = NO_ANSWERS,
        *,
        options: RunOptions = DEFAULT_OPTIONS,
        buffer: int = DEFAULT_BUFFER,
    ) -> AgentStream:
        """`resume`, as an async iterator over what happens."""
        expect_options(options)
        placed: list[tuple[str | Checkpoint, ResumeCommand | None]] = []

        async def start() -> RunStream:
            placed.append(await self._place(where, answers))
            return self.graph.resume_stream(*placed[0], options=self._options(options), buffer=buffer)

        async def end(run: RunResult) -> AgentResult:
            return self._answered(*placed[0], await self._ended(run))

        def abandon(thread_id: str) -> None:
            self._standing.abandon(thread_id)
            self._note(*placed[0])

        return AgentStream(start, end, abandon)

    def run_sync(self, question: str | Message, options: RunOptions = DEFAULT_OPTIONS) -> AgentResult:
        """`run`, for code without an event loop."""
        return self.continue_with_sync((), question, options=options)

    def continue_with_sync(
        self, history: Sequence[Message], question: str | Message, *, options: RunOptions = DEFAULT_OPTIONS
    ) -> AgentResult:
        """`continue_with`, for code without an event loop."""
        own = _with_scope(options)
        return _here(self.continue_with(history, question, options=own), own)

    def resume_sync(
        self,
        where: AgentResult | str,
        answers: Answers = NO_ANSWERS,
        *,
        options: RunOptions = DEFAULT_OPTIONS,
    ) -> AgentResult:
        """`resume`, for code without an event loop."""
        own = _with_scope(options)
        return _here(self.resume(where, answers, options=own), own)

    async def _inputs(
        self, history: Sequence[Message], question: Message, options: RunOptions
    ) -> dict[str, Any] | AgentResult:
        """Return what the graph is to begin with, or the end of a turn that a guard does not let begin."""
        said = await admitted(self.spec.settings.guards, question)
        if isinstance(said, Blocked):
            return blocked_result(said, history, thread_id=options.thread_id or new_id())
        return begin((*history, said))

    def _options(self, options: RunOptions, control: CancelScope | None = None) -> RunOptions:
        return msgspec.structs.replace(
            options,
            max_steps=self.spec.settings.limits.supersteps,
            raise_on_error=False,
            control=control or options.control,
        )

    async def _carry(
        self,
        start: Callable[[RunOptions], Coroutine[Any, Any, RunResult]],
        options: RunOptions,
        *,
        end: Callable[[RunResult], Awaitable[AgentResult]],
    ) -> AgentResult:
        """Run in a task of its own: this one, when it is cancelled, stops the run and waits for its end.

        So what had come of an answer is kept, as with every other way to stop.
        """
        scope = CancelScope(options.control)
        task = asyncio.get_running_loop().create_task(start(self._options(options, scope)))
        try:
            return await end(await asyncio.shield(task))
        except asyncio.CancelledError:
            scope.cancel()
            while not task.done():
                with suppress(asyncio.CancelledError):  # asked once more; the end it waits for is near
                    await asyncio.wait({task})
            if not task.cancelled() and task.exception() is None:
                await end(task.result())
            raise
        finally:
            scope.close()

    async def _place(
        self, where: AgentResult | str, answers: Answers
    ) -> tuple[str | Checkpoint, ResumeCommand | None]:
        """Return where to go on, and with which answers, each by the engine's id of its question."""
        expect(
            where, AgentResult | str, what="what is to be resumed", give="a result, or the name of a thread"
        )
        expect(
            answers, Mapping, what="the answers of people", give='them by call id, as in {"c1": Approve()}'
        )
        thread_id = where if isinstance(where, str) else where.thread_id
        place: str | Checkpoint = thread_id
        if self._kept is not None:
            newest = await _newest(self._kept, thread_id) if answers else None
        else:
            newest = None if isinstance(where, str) else where.standing
            if newest is None:
                raise UsageError(OVER.format(thread_id))
            place = newest
        if newest is None or not answers:
            return place, None  # a thread that the store does not have is refused by the engine
        if self._standing.is_answered(newest):
            raise UsageError(ANSWERED)
        pending = tuple(pending_of(each) for each in newest.interrupts)
        return place, ResumeCommand.many(question_ids(pending, answers))

    def _answered(
        self, place: str | Checkpoint, command: ResumeCommand | None, result: AgentResult
    ) -> AgentResult:
        """Note which result was answered where no store knows; answers that nobody took do not count."""
        if command is not None and result.stop_reason != "conflict":
            asked_again = {each.question for each in result.pending}
            if not asked_again.issuperset(name for name, _ in command.answers):
                self._note(place, command)
        return result

    def _note(self, place: str | Checkpoint, command: ResumeCommand | None) -> None:
        if isinstance(place, Checkpoint) and command is not None:
            self._standing.answer(place)

    async def _ended(self, run: RunResult) -> AgentResult:
        standing = self._standing.take(run.thread_id)
        if standing is not None and standing.frontier.is_over:
            standing = None
        return result_of(run, self.spec, standing=standing)


async def _newest(store: CheckpointStore, thread_id: str) -> Checkpoint | None:
    return await asyncio.to_thread(store.load, thread_id) if store.blocking else store.load(thread_id)


def _turn_of(history: object, question: object, options: object) -> tuple[tuple[Message, ...], Message]:
    """Return what a turn begins with. Raises `UsageError` for what no turn can begin with."""
    expect_options(options)
    return messages_of(history), question_of(question)


def _with_scope(options: RunOptions) -> RunOptions:
    expect_options(options)
    return msgspec.structs.replace(options, control=CancelScope(options.control))


def _here(turn: Coroutine[Any, Any, T], options: RunOptions) -> T:
    """Run a turn on the background loop; Ctrl-C stops it and waits for its orderly end."""
    assert options.control is not None
    try:
        return the_portal().run(turn, options.control.cancel)
    finally:
        options.control.close()
