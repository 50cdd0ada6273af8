"""One run: supersteps until there is a reason to stop. The engine's only loop, for sync and async alike."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec

from dialoom.base.cancel import Cancelled
from dialoom.base.errors import ConflictError, UsageError
from dialoom.base.ids import new_id
from dialoom.graph.batch import batch_of, gather, is_waiting
from dialoom.graph.commit import Outcome, Step, accept_input, conclude, conclude_lone
from dialoom.graph.context import Nest, NodeContext
from dialoom.graph.errors import GraphChangedError
from dialoom.graph.frontier import TaskNote
from dialoom.graph.lane import Lane, is_dict, read
from dialoom.graph.ledger import Ledger, Saver
from dialoom.graph.memo import Memo
from dialoom.graph.memos import ENDED, Memos
from dialoom.graph.ops import Op
from dialoom.graph.options import RunOptions
from dialoom.graph.position import Start, find, refuse_odd, thread_of
from dialoom.graph.publish import Emit, Origin, Publisher
from dialoom.graph.result import NodeError, RunResult, StopReason
from dialoom.graph.setup import Setup
from dialoom.graph.state import EMPTY, settled
from dialoom.graph.stop import StopSignal
from dialoom.graph.table import NodeSpec
from dialoom.graph.trouble import error_of, refused
from dialoom.graph.turns import Turn

if TYPE_CHECKING:
    from dialoom.graph.mailbox import Mailbox

_SHARED = Lock()
"""Held for what a run makes or counts where several of its threads may: seldom, so one serves all runs."""


class Run:
    """One execution of a graph: decides purely, does through a lane, commits to the store, then tells."""

    __slots__ = (
        "_errors", "_goes_straight", "_has_begun", "_known_thread", "_ledger", "_memos", "_ns", "_orphans",
        "_outer", "_rewrites", "_start", "_turn", "chance", "clock", "options", "publisher", "run_id",
        "setup", "stop", "thread_id",
    )  # fmt: skip

    def __init__(
        self,
        setup: Setup,
        start: Start,
        options: RunOptions,
        mailbox: "Mailbox | None" = None,
        *,
        nest: Nest | None = None,
        saver: Saver | None = None,
    ) -> None:
        if type(options) is not RunOptions or not (start.inputs is None or is_dict(start.inputs)):
            refuse_odd(start.inputs, options)
        thread_id = thread_of(start, options.thread_id)
        self.run_id = new_id()
        self.thread_id = self.run_id if thread_id is None else thread_id
        self.options = options
        self.clock = setup.clock
        self.chance = setup.chance
        self.stop = StopSignal(options.control, options.timeout, setup.clock)
        self.publisher: Publisher | None = None if nest is None else nest.publisher
        self._outer = nest
        self._ns = () if nest is None else nest.ns
        if mailbox is not None or setup.observers:
            origin = Origin(run_id=self.run_id, thread_id=self.thread_id, ns=())
            self.publisher = Publisher(origin, setup.observers, mailbox, clock=setup.clock)
        self.setup = setup
        self._start = start
        self._known_thread = thread_id
        self._ledger = Ledger(setup, saver or setup.store, run_id=self.run_id, thread_id=self.thread_id)
        self._errors: tuple[NodeError, ...] = ()
        self._orphans = 0
        self._goes_straight = self._has_begun = False
        self._turn: Turn | None = None
        self._rewrites: tuple[Op, ...] = ()
        self._memos: Memos | None = None  # most runs remember nothing

    @staticmethod
    async def carry(begin: Callable[[], "Run"], lane_of: Callable[["Run"], Lane]) -> RunResult:
        """Execute the run that `begin` makes to its end, whatever that is, through its own lane.

        Raises UsageError and GraphChangedError before anything happened, RunFailedError for those who asked
        for it, and what cancelled the lane from outside once the run is safely over.

        Nearly all supersteps of nearly all graphs are of one node, a success, and heard by nobody: for these
        nothing is made that nobody reads, and no coroutine stands between this one and the node's.
        """
        self = begin()
        del begin  # a run may take long, and thousands of them may wait
        lane, ledger = lane_of(self), self._ledger
        reason: StopReason | None = None
        try:
            begun = self._depart(lane) if self._is_new else await self._arrive(lane)
            reason = await self._bring_in(lane, begun) if isinstance(begun, Step) else begun
            while reason is None:
                spec = self._lone(may_block=lane.may_block)
                if spec is None:
                    reason = self._why_stop() or await self._settle(lane, await self._one_superstep(lane))
                    continue
                lane.begin_nodes()
                try:
                    output: Any = spec.fn(
                        NodeContext(self, spec.name, ledger.state, ledger.steps + 1, _unheard)
                    )
                    if spec.is_async:
                        output = await output
                except BaseException as error:  # noqa: BLE001 - seam: the lane raises on what is not for the engine
                    ended = self._concluded([lane.caught(spec.name, error)])
                else:
                    ended = self._advance(spec.name, output)
                finally:
                    lane.end_nodes()
                if ended is not None:
                    reason = ended if isinstance(ended, str) else await self._settle(lane, ended)
        finally:
            # also after Ctrl-C in a node, say: what is committed stays, and all who take part hear of the end
            if reason is None:
                self.stop.cancel()
            if (rest := lane.end()) is not None:
                await rest
            result = self._finish(reason or "cancelled")
        if lane.cancelled is not None:
            raise lane.cancelled
        return result.raise_for_error() if self.options.raise_on_error else result

    async def _arrive(self, lane: Lane) -> Step | StopReason | None:
        """Come to where a thread or a checkpoint stands, when it is this run's turn; then `_depart`."""
        reason = await self._wait_for_turn(lane)
        trouble = await self._find(lane) if reason is None else self._turned_away(reason)
        return self._depart(lane, reason, trouble)

    def _depart(
        self, lane: Lane, reason: StopReason | None = None, trouble: NodeError | None = None
    ) -> Step | StopReason | None:
        """Begin; returns why the run ends with that, or the step that brings the input in when it takes more.

        There is a `reason` or a `trouble` when the run did not get to where it is to start.
        """
        ledger, publisher = self._ledger, self.publisher
        self._goes_straight = (
            publisher is None
            and self.options.schedule == "superstep"
            and (lane.may_block or not ledger.blocking)
        )
        self._has_begun = True
        if publisher is not None and self._outer is None:
            publisher.run_begin(self.setup.table.name)
        failure = None if trouble is None else self._fail(0, (trouble,))
        if (ended := reason or failure) is not None:
            return ended
        step = self._entered()
        if step.errors or not step.finished or ledger.store is not None or publisher is not None:
            return step
        ledger.stand_on(step, 0, None)
        return None

    async def _wait_for_turn(self, lane: Lane) -> StopReason | None:
        """Wait for this run's turn on its thread; returns why it never came."""
        if self.setup.store is None or self._known_thread is None:
            return None
        turn = Turn(self._known_thread, self.stop)
        if not self.setup.turns.take(turn, self.options.on_conflict):
            return "conflict"
        self._turn = turn
        if not turn.come.cancelled:
            await lane.wait_for(turn.come)
        return None if turn.come.cancelled else self.stop.reason or "cancelled"

    def _turned_away(self, reason: StopReason) -> NodeError | None:
        if reason != "conflict":
            return None
        wait = "wait for it, or run with on_conflict='queue' or 'cancel_previous'"
        return refused("", f"thread {self._known_thread!r} is running already; {wait}")

    @property
    def deps(self) -> object:
        return self.options.deps

    def stop_requested(self) -> bool:
        return self.stop.reason is not None

    def raise_if_stopped(self) -> None:
        self.stop.raise_if_cancelled()

    def emitter(self, node: str, item: int | None, step: int) -> Emit:
        """Return what tells the values that a task emits."""
        return _unheard if self.publisher is None else self.publisher.emitter(node, item, step)

    async def aemit(self, emit: Emit, value: object) -> None:
        if self.stop.reason is not None:
            await _let_the_stop_in()
        if self.publisher is not None:
            await self.publisher.room()
        emit(value)

    def heartbeat(self) -> None:
        if self._outer is not None:
            self._outer.heartbeat()

    def orphaned(self) -> None:
        with _SHARED:
            self._orphans += 1

    def memo(self, context: NodeContext) -> Memo:
        """Return what the task of `context` remembers. Raises Cancelled when its superstep is over."""
        if context.step != self._ledger.steps + 1:
            raise Cancelled
        key, notes = (context.node, context.item), self._ledger.frontier.notes
        if (memos := self._memos) is None:
            with _SHARED:
                memos = self._memos = self._memos or Memos(self._ns)
        return memos.of(key, notes, self._ledger.keep, blocking=self._ledger.blocking)

    def nest(self, context: NodeContext) -> Nest:
        at = "" if context.item is None else f"[{context.item}]"
        ns = (*self._ns, f"{context.node}{at}")
        return Nest(
            memo=self.memo(context),
            scope=self.stop,
            publisher=None if self.publisher is None else self.publisher.within(ns),
            ns=ns,
            channels=self.setup.table.channels,
            options=self.options,
            clock=self.clock,
            remaining=self.stop.remaining(),
            heartbeat=self.heartbeat,
        )

    @property
    def _is_new(self) -> bool:
        return self._start.where is None and self._known_thread is None

    async def _find(self, lane: Lane) -> NodeError | None:
        """Take the starting position; returns what kept the store from giving it."""
        try:
            position = await find(self.setup, lane, self._start, self._known_thread)
        except (UsageError, GraphChangedError):
            raise
        except Exception as error:  # noqa: BLE001 - seam: stores are foreign code
            return error_of("", error, prefix="could not read the thread: ")
        self._ledger.begin_at(position)
        self._rewrites = position.rewrites
        return None

    def _entered(self) -> Step:
        """Return the step that brings the input in; without operations when a thread is only to go on."""
        ledger, start, rewrites = self._ledger, self._start, self._rewrites
        if ledger.state is EMPTY and not start.inputs and (entry := self.setup.entry) is not None:
            return entry
        step = accept_input(self.setup.table, ledger.state, ledger.frontier, start.inputs or {})
        return (
            msgspec.structs.replace(step, ops=(*rewrites, *step.ops)) if rewrites and step.finished else step
        )

    async def _bring_in(self, lane: Lane, step: Step) -> StopReason | None:
        """Commit what brings the input in as checkpoint 0, where there is anything to it."""
        failure = self._fail(0, step.errors) if step.errors else None
        if not step.finished:
            return failure
        silent = self._start.is_silent and not step.ops
        return await self._commit(lane, step, 0, silent=silent) or failure

    def _advance(self, name: str, output: Any) -> Step | StopReason | None:
        """Commit what the lone node `name` gave when it is a success; else return the step, for `_settle`.

        Returns why the run ends when the store failed.
        """
        ledger = self._ledger
        number = ledger.steps + 1
        if is_dict(output) and (self._memos is None or not self._memos.open):
            step = conclude_lone(self.setup.table, ledger.state, name, output)
        else:
            step = self._concluded([read(name, output)])
        if step.errors or step.halt or not step.finished:
            return step
        try:
            checkpoint = ledger.put(step, number)
        except Exception as error:  # noqa: BLE001 - seam: stores are foreign code
            return self._unsaved(error, number)
        ledger.stand_on(step, number, checkpoint)
        return None

    def _lone(self, *, may_block: bool) -> NodeSpec | None:
        """Return the node that is all there is to run next and can be run straight from the loop."""
        ledger = self._ledger
        frontier = ledger.frontier
        if not self._goes_straight or len(frontier.ready) != 1 or ledger.steps >= self.options.max_steps:
            return None
        spec = self.setup.table.nodes[frontier.ready[0]]
        if spec.alone is not frontier or (spec.blocking and not may_block):
            return None
        return None if self.stop.reason is not None else spec

    async def _one_superstep(self, lane: Lane) -> Step:
        """Carry out a superstep of any kind."""
        table, ledger, number = self.setup.table, self._ledger, self._ledger.steps + 1
        frontier = ledger.frontier
        if table.has_maps or frontier.sends or frontier.notes:
            return await self._in_batch(lane, number)
        tasks = [
            (
                table.nodes[name],
                NodeContext(self, name, ledger.state, number, self.emitter(name, None, number)),
            )
            for name in frontier.ready
        ]
        return self._concluded(await lane.run_nodes(tasks))

    def _concluded(self, outcomes: Sequence[Outcome]) -> Step:
        """Return what the superstep at hand, none of whose tasks is part of a map, comes to."""
        ledger, notes = self._ledger, self._noted()
        return conclude(self.setup.table, ledger.state, ledger.frontier, outcomes, notes)

    def _noted(self) -> Sequence[TaskNote]:
        """Return what the tasks of the superstep at hand have noted; they can note no more."""
        memos = self._memos
        return memos.close() if memos is not None and memos.open else ()

    async def _settle(self, lane: Lane, step: Step) -> StopReason | None:
        """Commit the superstep that was carried out, and tell of it; returns why the run ends with it."""
        number, before, publisher = self._ledger.steps + 1, self._ledger.frontier, self.publisher
        reason: StopReason | None = None
        if publisher is not None:
            publisher.close_nodes(number)
        if step.errors or step.halt:
            reason = self._fail(number, step.errors) if step.errors else "halted"
        if step.finished or (step.frontier.notes and step.frontier != before):
            if (failed := await self._commit(lane, step, number)) is not None:
                return failed
        elif reason is None and self.stop.reason is None:
            reason = self._fail(number, (_nothing_came_of(step.frontier.nodes),))
        if publisher is not None:
            await lane.drain(publisher)
        return reason

    async def _in_batch(self, lane: Lane, number: int) -> Step:
        """Carry out a superstep in which not every task is simply a node."""
        table, ledger = self.setup.table, self._ledger
        batch = batch_of(table, ledger.state, ledger.frontier)
        tasks = [
            (
                table.nodes[unit.node],
                NodeContext(
                    self,
                    unit.node,
                    ledger.state,
                    number,
                    self.emitter(unit.node, unit.item, number),
                    unit.input,
                    unit.item,
                ),
            )
            for unit in batch.units
        ]
        outcomes = await lane.run_nodes(tasks)
        whole, notes = gather(table, batch, outcomes, self._noted())
        return conclude(table, ledger.state, ledger.frontier, whole, notes)

    def _why_stop(self) -> StopReason | None:
        frontier = self._ledger.frontier
        if not frontier.ready and not frontier.sends:
            return "finished"
        if frontier.notes and is_waiting(self.setup.table, self._ledger.state, frontier):
            return "interrupted"
        return self.stop.reason or ("max_steps" if self._ledger.steps >= self.options.max_steps else None)

    async def _commit(
        self, lane: Lane, step: Step, number: int, *, silent: bool = False
    ) -> StopReason | None:
        """Make `step` durable unless it is `silent`, stand on it, tell it; returns what kept it from it."""
        ledger, before, checkpoint = self._ledger, self._ledger.frontier, None
        if ledger.store is not None and not silent:
            try:
                checkpoint = await lane.in_store(lambda: ledger.put(step, number), blocking=ledger.blocking)
            except Exception as error:  # noqa: BLE001 - seam: stores are foreign code
                return self._unsaved(error, number)
        ledger.stand_on(step, number, checkpoint)
        if self.publisher is not None and number:
            if step.frontier.notes and self._outer is None:
                fresh = [each for each in step.frontier.interrupts if each not in before.interrupts]
                self.publisher.interrupted(number, fresh)
            changed = tuple(dict.fromkeys(op.channel for op in step.ops))
            self.publisher.step_committed(number, step.finished, changed, ledger.checkpoint_id)
        return None

    def _unsaved(self, error: Exception, number: int) -> StopReason:
        failure = self._fail(number, (error_of("", error, prefix="could not save the checkpoint: "),))
        return "conflict" if isinstance(error, ConflictError) else failure

    def _fail(self, number: int, errors: tuple[NodeError, ...]) -> StopReason:
        self._errors += errors
        if self.publisher is not None:
            self.publisher.failed(number, errors)
        # what fails while a run is being stopped fails because of that more often than not
        return self.stop.reason or "error"

    def _finish(self, reason: StopReason) -> RunResult:
        with _SHARED:
            memos, self._memos = self._memos, self._memos or ENDED
        if memos is not None:
            memos.end()
        ledger = self._ledger
        frontier = ledger.frontier
        result = RunResult(
            state=settled(ledger.state),
            stop_reason=reason,
            steps=ledger.steps,
            run_id=self.run_id,
            thread_id=self.thread_id,
            checkpoint_id=ledger.checkpoint_id,
            errors=self._errors,
            interrupts=frontier.interrupts if frontier.notes else (),
            orphans=self._orphans,
        )
        if self.publisher is not None and self._outer is None and self._has_begun:
            self.publisher.run_finished(result)
        self.stop.close()
        if self._turn is not None:
            self.setup.turns.leave(self._turn)
        return result


def _nothing_came_of(nodes: Sequence[str]) -> NodeError:
    # without this a run would try the same nodes for ever
    reason = "it raised Cancelled or Interrupted by hand; fail with an error, or call ctx.interrupt(payload)"
    return refused(nodes[0], reason)


def _unheard(value: object) -> None:
    """Tell nobody what a node emits."""


async def _let_the_stop_in() -> None:
    """Suspend, so that the cancellation a stop request brings can reach a node that does nothing but emit."""
    import asyncio  # there already, or nothing here could wait

    await asyncio.sleep(0)
