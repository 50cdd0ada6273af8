"""One run of a dialog: made ready, carried through the agent's graph, its outbox delivered step by step."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

import msgspec

from dialoom.agent import (
    AgentResult,
    AgentSpec,
    AgentStopReason,
    RoundStarted,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    agent_graph,
    pending_of,
    result_of,
)
from dialoom.base.cancel import CancelScope
from dialoom.base.errors import DialoomError, UsageError
from dialoom.base.text import one_line
from dialoom.conversation import prompt
from dialoom.dialog.asking import Standing, ask, cards_of, let_go, recover
from dialoom.dialog.errors import TurnFailedError
from dialoom.dialog.heard import HeardProvider, reason_of
from dialoom.dialog.journal import Journal
from dialoom.dialog.judged import judged
from dialoom.dialog.keyed import KeyedEntry
from dialoom.dialog.outbox import key_of, outbox
from dialoom.dialog.policy import Chosen, RunBase
from dialoom.dialog.resolve import resolve
from dialoom.dialog.result import DialogResult
from dialoom.dialog.settings import MAX_GUIDES
from dialoom.dialog.skill_tools import activated
from dialoom.dialog.standing import Turn, messages_of, turn_of
from dialoom.dialog.summary import tell_short
from dialoom.dialog.tap import Tap
from dialoom.graph import Checkpoint, Chunk, Graph, GraphEvent, ResumeCommand, RunOptions, StepCommitted
from dialoom.graph.stream import RunStream
from dialoom.llm import FellBack, FilePart, Message, ReasoningDelta, RefusalDelta, Retrying, TextDelta, Warned
from dialoom.llm import system as system_message
from dialoom.tools import ToolRegistry

T = TypeVar("T")

_log = logging.getLogger("dialoom.dialog")


class Telling(Protocol):
    """Who hears what a run does; each call is told to people at once."""

    def round_began(self) -> None: ...
    def piece(self, text: str) -> None: ...
    def thought(self, text: str) -> None: ...
    def appended(self, indexes: tuple[int, ...]) -> None: ...
    def removed(self, left: int) -> None: ...
    def noticed(self, code: str, message: str) -> None: ...
    def tool_started(self, call_id: str, tool: str) -> None: ...
    def tool_progressed(self, call_id: str, tool: str, value: object) -> None: ...
    def tool_finished(
        self, call_id: str, tool: str, *, is_error: bool, files: tuple[FilePart, ...]
    ) -> None: ...


class Ended(msgspec.Struct, frozen=True):
    """How a run ended, what is left to go on with, None when that is nothing, and what is left to say."""

    result: DialogResult
    standing: Standing | None = None
    unsaid: tuple[KeyedEntry, ...] = ()


class DialogRun:
    """Carries one run of one dialog. `before` is an unfinished one: this `goes_on` with it or supersedes it.

    The checkpoint is saved first, then what it said is delivered into the log under keys.
    """

    def __init__(
        self,
        base: RunBase,
        journal: Journal,
        telling: Telling,
        *,
        run_id: str,
        scope: CancelScope,
        before: Standing | None,
        goes_on: bool,
    ) -> None:
        self.run_id = run_id
        self._base = base
        self._journal = journal
        self._telling = telling
        self._scope = scope
        self._superseded = None if goes_on else before
        self._resumed = resumed = before if goes_on else None
        self._tap = Tap(base.stores.checkpoints, resumed.checkpoint if resumed else None)
        self._delivered = len(messages_of(resumed.checkpoint)) if resumed else 0
        self._heard: HeardProvider | None = None

    async def carry(self) -> Ended:
        """Run to the end, whatever it is. Raises only `CancelledError`, when the task itself is cancelled."""
        try:
            return await self._carry()
        except _StoppedEarly:
            return self.cut_off()
        except DialoomError as error:
            return self._failed(error)
        except Exception as error:  # noqa: BLE001 - seam: providers, tool sources and stores are foreign code
            _log.exception("run of a dialog failed")
            words = f"the run failed: {type(error).__name__}: {one_line(str(error))}; see the log"
            return self._failed(TurnFailedError("internal", words))

    async def _carry(self) -> Ended:
        resumed = self._resumed
        if resumed and resumed.answered and not await self._still_waits(resumed):
            return await self._taken_over()
        spec, turn = await self._unless_stopped(self._ready())
        graph = agent_graph(spec, self._tap, clock=self._base.clock)
        options = RunOptions(
            thread_id=self._journal.id,
            max_steps=self._base.policy.limits.supersteps,
            control=self._scope,
            deps=self._base.deps,
        )
        stream = self._stream(graph, turn, options)
        async with stream:
            async for event in stream:
                await self._on(event)
        await self._deliver()
        return await self._end(result_of(stream.result, spec))

    async def _still_waits(self, standing: Standing) -> bool:
        """Tell whether what was answered here just now is still asked: another program may have gone on."""
        newest = await self._base.stores.load_checkpoint(self._journal.id)
        if newest is None or turn_of(newest) != turn_of(standing.checkpoint):
            return False
        asked = {pending_of(each).question for each in newest.interrupts}
        return any(each.question in asked for each in standing.waiting if each.card_id == standing.answered)

    async def _taken_over(self) -> Ended:
        """Return the end of a run that another program was faster with; what was answered is not kept."""
        journal = self._journal
        if self._resumed and journal.withdraw(key_of(self._resumed.answered, "answer")):
            self._telling.removed(len(journal.transcript))
        await journal.read_again()
        words = "another program went on with this dialog; look at its messages before you go on"
        error = TurnFailedError("conflict", words)
        result = DialogResult(run_id=self.run_id, stop_reason="conflict", error=error)
        return Ended(result, await recover(self._base, journal))

    def _stream(self, graph: Graph, turn: Turn, options: RunOptions) -> RunStream:
        if self._resumed is None:
            return graph.stream(turn.inputs(), options)
        told = {each.question: each.answer for each in self._resumed.waiting if each.is_answered}
        command = ResumeCommand.many(told) if told else None
        return graph.resume_stream(self._journal.id, command, options=options)

    async def _ready(self) -> tuple[AgentSpec, Turn]:
        """Write what is due and find out who is asked what."""
        base, journal = self._base, self._journal
        await journal.catch_up()
        resumed = self._resumed
        if resumed is None:
            await self._forget(self._superseded)
        turn = turn_of(resumed.checkpoint) if resumed else Turn(self.run_id, len(journal.transcript))
        if turn.seen == 0:
            raise UsageError("this dialog is empty; send it a text, or append a message before it runs")
        chosen = await base.choose(journal.settings)
        if chosen.notice:
            self._telling.noticed("model_changed", chosen.notice)
        kit = base.kit()
        served = await base.serve(journal.settings.kit.over(kit).mcps)
        for notice in served.notices:
            self._telling.noticed("tool_server", notice)
        resolved = resolve(journal.settings, kit, guides=await journal.guides(), served=served.tools)
        self._heard = HeardProvider(chosen.provider)
        spec = AgentSpec(
            provider=self._heard,
            tools=ToolRegistry(resolved.tools),
            context=await self._context(turn, resolved.system, chosen),
            settings=base.policy.agent_settings(chosen.model),
            name="dialog",
        )
        return spec, turn

    async def _context(self, turn: Turn, system: str, chosen: Chosen) -> tuple[Message, ...]:
        """Return what the model reads before the messages of the turn."""
        policy, journal, cards = self._base.policy, self._journal, self._base.cards
        await journal.hold(turn.seen - policy.max_messages)
        recent = journal.transcript.recent(policy.max_messages, before=turn.seen)
        entries = await judged(recent, policy.guards)
        if policy.compaction is None:
            return prompt(entries, system=system or None, limits=policy.prompt, registry=cards)
        told = await tell_short(
            entries,
            journal.settings.summary,
            start=turn.seen - len(entries),
            cards=cards,
            provider=chosen.provider,
            options=policy.options(chosen.model),
            compaction=policy.compaction,
        )
        if told.problem:
            self._telling.noticed("summary", told.problem)
        journal.set(msgspec.structs.replace(journal.settings, summary=told.summary))
        await journal.flush()
        return (*((system_message(system),) if system else ()), *told.messages)

    async def _on(self, event: GraphEvent) -> None:
        match event:
            case Chunk(value=value):
                self._tell(value)
            case StepCommitted():
                await self._deliver()
            case _:
                pass

    def _tell(self, value: object) -> None:
        telling = self._telling
        match value:
            case RoundStarted():
                telling.round_began()
            case TextDelta(text=text) | RefusalDelta(text=text):
                telling.piece(text)
            case ReasoningDelta(text=text):
                telling.thought(text)
            case Retrying(message=message) | FellBack(message=message):
                telling.round_began()  # words that had come are taken back
                telling.noticed("retrying", message)
            case Warned(code=code, message=message):
                telling.noticed(code, message)
            case ToolStarted(call=call):
                telling.tool_started(call.id, call.name)
            case ToolProgress(call_id=call_id, tool=tool, value=progress):
                telling.tool_progressed(call_id, tool, progress)
            case ToolFinished(call_id=call_id, tool=tool, is_error=is_error, files=files):
                telling.tool_finished(call_id, tool, is_error=is_error, files=files)
            case _:
                pass

    async def _deliver(self) -> None:
        """Bring what is durable and was not said yet into the log."""
        checkpoint = self._tap.newest
        if checkpoint is None:
            return
        said = len(messages_of(checkpoint))
        if said > self._delivered:
            await self._say(self._outbox(checkpoint))
        self._delivered = said

    async def _say(self, entries: tuple[KeyedEntry, ...]) -> None:
        self._telling.appended(await self._journal.deliver(entries))
        names = [name for each in entries for name in activated(each.entry)]
        if names:
            # from the next turn on their words are in the system text, where nothing cuts them
            settings = self._journal.settings
            known = settings.kit.over(self._base.kit()).skills
            names = [name for name in names if name in known]
            active = tuple(dict.fromkeys((*settings.active_skills, *names)))
            active = active[:MAX_GUIDES]  # one too many was refused by its tool
            here = len(self._journal.transcript) - 1
            taught = {name: here for name in active if name not in settings.active_skills}
            self._journal.set(
                msgspec.structs.replace(settings, active_skills=active, taught=settings.taught | taught)
            )

    async def _end(self, agent: AgentResult) -> Ended:
        result = DialogResult(
            run_id=self.run_id, stop_reason=agent.stop_reason, text=agent.answer, usage=agent.usage
        )
        match agent.stop_reason:
            case "finished" | "length" | "refused":
                if agent.error:
                    self._telling.noticed(agent.stop_reason, agent.error)
                if self._resumed and self._tap.newest:
                    await let_go(self._base, self._journal, self._tap.newest)
                return Ended(result)  # its checkpoints stay to be looked at, until the next turn begins
            case "cancelled":
                await self._forget(self._resumed)
                return Ended(result)
            case "needs_approval":
                standing = await self._ask()
                return Ended(msgspec.structs.replace(result, waiting=standing.open_cards), standing)
            case "conflict":
                return await self._taken_over()
            case reason:
                error, newest = self._failure(reason, agent.error or reason), self._tap.newest
                failed = msgspec.structs.replace(result, error=error)
                return Ended(failed, newest and Standing(newest))

    def _failure(self, reason: AgentStopReason, words: str) -> TurnFailedError:
        """Return why there is no whole answer; where the provider gave none, its own error is the cause."""
        failure = self._heard.failure if self._heard and reason == "error" else None
        error = TurnFailedError(reason if failure is None else reason_of(failure), words)
        error.__cause__ = failure
        return error

    async def _ask(self) -> Standing:
        """Show the cards of the questions that wait."""
        assert self._tap.newest is not None
        told = self._resumed.waiting if self._resumed else ()
        passed_on = [each.card_id for each in told if each.is_answered]
        standing, indexes = await ask(self._base, self._journal, self._tap.newest, passed_on=passed_on)
        self._telling.appended(indexes)
        return standing

    async def _forget(self, standing: Standing | None) -> None:
        """Let the thread go, and say of cards that were left open that nobody waits for them."""
        if standing is not None:
            cards = await cards_of(self._base, self._journal, standing.checkpoint)
            await self._say(cards.close(standing.waiting))
        await self._base.stores.erase_thread(self._journal.id)
        self._superseded = None

    async def _unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work`, or give it up when the run is cancelled meanwhile."""
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()

        def give_up() -> None:
            loop.call_soon_threadsafe(task.cancel)

        forget = self._scope.add_callback(give_up)
        try:
            return await task
        except asyncio.CancelledError:
            itself = asyncio.current_task()
            if self._scope.cancelled and itself is not None and not itself.cancelling():
                raise _StoppedEarly from None
            raise
        finally:
            forget()

    def cut_off(self) -> Ended:
        """Return the end of a run whose task was stopped from outside; it can be gone on with."""
        return self._left(DialogResult(run_id=self.run_id, stop_reason="cancelled"))

    def _failed(self, error: DialoomError) -> Ended:
        return self._left(DialogResult(run_id=self.run_id, stop_reason="error", error=error))

    def _left(self, result: DialogResult) -> Ended:
        """Return the end of a run that broke off: what is durable can be gone on with, and is said."""
        newest = self._tap.newest
        if newest is None:
            return Ended(result, self._superseded)
        resumed = self._resumed
        waiting = resumed.waiting if resumed and newest is resumed.checkpoint else ()
        return Ended(result, Standing(newest, waiting), self._outbox(newest))

    def _outbox(self, checkpoint: Checkpoint) -> tuple[KeyedEntry, ...]:
        return outbox(checkpoint, after=self._delivered, registry=self._base.cards)


class _StoppedEarly(Exception):  # noqa: N818 - what happened, not an error
    """The run was cancelled before its graph began."""
