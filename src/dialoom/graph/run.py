"""One run: supersteps until there is a reason to stop. The engine's only loop, for sync and async alike."""

from collections.abc import Sequence
from threading import RLock
from typing import TYPE_CHECKING, Protocol

import msgspec

from dialoom.base.cancel import Cancelled
from dialoom.base.errors import ConflictError, UsageError
from dialoom.base.ids import new_id
from dialoom.graph.batch import Key, batch_of, gather, is_waiting
from dialoom.graph.checkpoint import Checkpoint
from dialoom.graph.commit import Step, accept_input, conclude
from dialoom.graph.context import Nest, NodeContext
from dialoom.graph.errors import GraphChangedError
from dialoom.graph.frontier import TaskNote
from dialoom.graph.lane import Lane
from dialoom.graph.memo import Memo
from dialoom.graph.options import RunOptions
from dialoom.graph.position import Position, Start, find, thread_of
from dialoom.graph.publish import Origin, Publisher
from dialoom.graph.result import NodeError, RunResult, StopReason
from dialoom.graph.setup import Setup
from dialoom.graph.state import settled
from dialoom.graph.stop import StopSignal
from dialoom.graph.trouble import error_of, refused
from dialoom.graph.turns import Turn

if TYPE_CHECKING:
    from dialoom.graph.mailbox import Mailbox


class Saver(Protocol):
    """Where the checkpoints of a run go: a store, or the task of the run around it."""

    @property
    def blocking(self) -> bool: ...
    def save(self, checkpoint: Checkpoint) -> None: ...


class Run:
    """One execution of a graph: decides purely, does through a lane, commits to the store, then tells."""

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
        thread_id = thread_of(start, options.thread_id)
        self.run_id = new_id()
        self.thread_id = self.run_id if thread_id is None else thread_id
        self.options = options
        self.clock = setup.clock
        self.chance = setup.chance
        self.stop = StopSignal(options.control, options.timeout, setup.clock)
        self.publisher: Publisher | None = None if nest is None else nest.publisher
        self._is_nested = nest is not None
        self._ns = () if nest is None else nest.ns
        self._store: Saver | None = saver or setup.store
        if mailbox is not None or setup.observers:
            origin = Origin(run_id=self.run_id, thread_id=self.thread_id, ns=())
            self.publisher = Publisher(origin, setup.observers, mailbox, clock=setup.clock)
        self._setup = setup
        self._start = start
        self._known_thread = thread_id
        self._position = Position()
        self._steps = 0
        self._errors: tuple[NodeError, ...] = ()
        self._orphans = 0
        self._memos: dict[Key, Memo] = {}
        self._kept = 0
        self._store_blocks = self._store is not None and self._store.blocking
        self._over = False
        self._lock = RLock()

    async def execute(self, lane: Lane) -> RunResult:
        """Run to the end, whatever it is. Raises UsageError and GraphChangedError before anything happened.

        RunFailedError comes on top for those who asked for it.
        """
        if self._setup.store is None or self._known_thread is None:
            return await self._execute(lane)
        turns, turn = self._setup.turns, Turn(self._known_thread, self.stop.scope)
        if not turns.take(turn, self.options.on_conflict):
            return self._end_outside(refused("", _running_already(self._known_thread)))
        try:
            if not turn.come.cancelled:
                await lane.wait_for(turn.come)
            return await self._execute(lane) if turn.come.cancelled else self._end_outside(None)
        finally:
            turns.leave(turn)

    async def _execute(self, lane: Lane) -> RunResult:
        trouble = await self._find(lane)
        if self.publisher is not None and not self._is_nested:
            self.publisher.run_begin(self._setup.table.name)
        try:
            if trouble is not None:
                reason = self._fail(0, (trouble,))
            else:
                reason = await self._enter(lane) or await self._supersteps(lane)
        except BaseException:
            # Ctrl-C in a node, say: what is committed stays, and all who take part hear that it is over
            self.stop.scope.cancel()
            self._finish("cancelled")
            raise
        return self._end(reason)

    def _end_outside(self, trouble: NodeError | None) -> RunResult:
        """End the run, for `trouble` or as it is to stop, and leave a thread alone that is not its own."""
        if self.publisher is not None:
            self.publisher.run_begin(self._setup.table.name)
        if trouble is None:
            return self._end(self.stop.reason() or "cancelled")
        self._fail(0, (trouble,))
        return self._end("conflict")

    def _end(self, reason: StopReason) -> RunResult:
        result = self._finish(reason)
        return result.raise_for_error() if self.options.raise_on_error else result

    @property
    def deps(self) -> object:
        return self.options.deps

    def stop_requested(self) -> bool:
        return self.stop.reason() is not None

    def raise_if_stopped(self) -> None:
        self.stop.raise_if_requested()

    def emit(self, node: str, step: int, value: object) -> None:
        publisher = self.publisher
        if publisher is not None:
            if publisher.mailbox is not None:
                publisher.mailbox.wait_for_room()
            publisher.chunk(step, node, value)

    async def aemit(self, node: str, step: int, value: object) -> None:
        if self.stop.reason() is not None:
            await _let_the_stop_in()
        publisher = self.publisher
        if publisher is not None:
            if publisher.mailbox is not None and publisher.mailbox.full():
                await publisher.mailbox.room()
            publisher.chunk(step, node, value)

    def orphaned(self) -> None:
        with self._lock:
            self._orphans += 1

    def memo(self, context: NodeContext) -> Memo:
        """Return what the task of `context` remembers. Raises Cancelled when its superstep is over."""
        key = (context.node, context.item)
        with self._lock:
            if self._over or context.step != self._steps + 1:
                raise Cancelled
            if key not in self._memos:
                notes = {(note.node, note.item): note for note in self._position.frontier.notes}
                note = notes.get(key) or TaskNote(node=context.node, item=context.item)
                self._memos[key] = Memo(note, ns=self._ns, keep=self._keep, blocking=self._store_blocks)
            return self._memos[key]

    def nest(self, context: NodeContext) -> Nest:
        at = "" if context.item is None else f"[{context.item}]"
        ns = (*self._ns, f"{context.node}{at}")
        return Nest(
            memo=self.memo(context),
            scope=self.stop.scope,
            publisher=None if self.publisher is None else self.publisher.within(ns),
            ns=ns,
            channels=self._setup.table.channels,
            options=self.options,
            clock=self.clock,
            remaining=self.stop.remaining(),
        )

    async def _find(self, lane: Lane) -> NodeError | None:
        """Take the starting position; returns what kept the store from giving it."""
        try:
            self._position = await find(self._setup, lane, self._start, self._known_thread)
        except (UsageError, GraphChangedError):
            self.stop.scope.close()
            raise
        except Exception as error:  # noqa: BLE001 - seam: stores are foreign code
            return error_of("", error, prefix="could not read the thread: ")
        return None

    async def _enter(self, lane: Lane) -> StopReason | None:
        """Bring the input in as checkpoint 0; a thread resumed with nothing new to say needs none."""
        position, start = self._position, self._start
        step = accept_input(self._setup.table, position.state, position.frontier, start.inputs or {})
        if position.rewrites and step.finished:
            step = msgspec.structs.replace(step, ops=(*position.rewrites, *step.ops))
        failure = self._fail(0, step.errors) if step.errors else None
        if not step.finished:
            return failure
        store = self._store
        silent = start.is_silent and not step.ops
        if store is not None and not silent:
            failed = await self._save(lane, store, step, 0)
            if failed is not None:
                return failed
        self._advance(step, 0)
        return failure

    async def _supersteps(self, lane: Lane) -> StopReason:
        table, store, publisher = self._setup.table, self._store, self.publisher
        has_maps = table.has_maps
        while (reason := self._why_stop()) is None:
            position, number = self._position, self._steps + 1
            frontier = position.frontier
            if has_maps or frontier.sends or frontier.notes:
                step = await self._in_batch(lane, number)
            else:
                tasks = [
                    (table.nodes[name], NodeContext(self, name, position.state, number))
                    for name in frontier.ready
                ]
                outcomes = await lane.run_nodes(tasks)
                notes = self._close_memos() if self._memos else ()
                step = conclude(table, position.state, self._position.frontier, outcomes, notes)
            if publisher is not None:
                publisher.close_nodes(number)
            if step.errors or step.halt:
                reason = self._fail(number, step.errors) if step.errors else "halted"
            if step.finished or (step.frontier.notes and step.frontier != frontier):
                if store is not None and (failed := await self._save(lane, store, step, number)) is not None:
                    return failed
                self._advance(step, number)
            elif reason is None and self.stop.reason() is None:
                reason = self._fail(number, (_nothing_came_of(step.frontier.nodes),))
            if publisher is not None:
                await lane.drain(publisher)
            if reason is not None:
                return reason
        return reason

    async def _in_batch(self, lane: Lane, number: int) -> Step:
        """Carry out a superstep in which not every task is simply a node."""
        table, position = self._setup.table, self._position
        batch = batch_of(table, position.state, position.frontier)
        tasks = [
            (
                table.nodes[unit.node],
                NodeContext(self, unit.node, position.state, number, unit.input, unit.item),
            )
            for unit in batch.units
        ]
        outcomes = await lane.run_nodes(tasks)
        whole, notes = gather(table, batch, outcomes, self._close_memos())
        return conclude(table, position.state, self._position.frontier, whole, notes)

    def _close_memos(self) -> list[TaskNote]:
        """Return what the tasks of this superstep have noted; they can note no more."""
        with self._lock:
            for memo in self._memos.values():
                memo.close()
            notes = [memo.note() for memo in self._memos.values()]
            self._memos = {}
        return notes

    def _keep(self) -> None:
        """Make durable what the running tasks have noted so far. Raises what the store raises."""
        with self._lock:
            store, position = self._store, self._position
            if store is None or self._over or not self._memos:
                return
            self._kept += 1
            frontier = position.frontier.noted(memo.note() for memo in self._memos.values())
            checkpoint = self._checkpoint(Step(position.state, frontier), self._steps, f".{self._kept}")
            store.save(checkpoint)
            self._position = Position(position.state, frontier, checkpoint.version, checkpoint.id)

    def _why_stop(self) -> StopReason | None:
        frontier = self._position.frontier
        if not frontier.ready and not frontier.sends:
            return "finished"
        if frontier.notes and is_waiting(self._setup.table, self._position.state, frontier):
            return "interrupted"
        return self.stop.reason() or ("max_steps" if self._steps >= self.options.max_steps else None)

    async def _save(self, lane: Lane, store: Saver, step: Step, number: int) -> StopReason | None:
        """Make `step` durable; returns what kept it from that."""
        checkpoint = self._checkpoint(step, number)
        try:
            await lane.in_store(lambda: store.save(checkpoint), blocking=store.blocking)
        except Exception as error:  # noqa: BLE001 - seam: stores are foreign code
            failure = self._fail(number, (error_of("", error, prefix="could not save the checkpoint: "),))
            return "conflict" if isinstance(error, ConflictError) else failure
        position = self._position
        self._position = Position(position.state, position.frontier, checkpoint.version, checkpoint.id)
        return None

    def _advance(self, step: Step, number: int) -> None:
        """Make `step`, which is durable where there is a store, what this run stands on, and tell it."""
        before = self._position.frontier
        self._position = self._position.moved(step.state, step.frontier)
        self._steps = number
        if self.publisher is not None and number:
            if step.frontier.notes and not self._is_nested:
                fresh = [each for each in step.frontier.interrupts if each not in before.interrupts]
                self.publisher.interrupted(number, fresh)
            changed = tuple(dict.fromkeys(op.channel for op in step.ops))
            self.publisher.step_committed(number, step.finished, changed, self._position.checkpoint_id)

    def _checkpoint(self, step: Step, number: int, part: str = "") -> Checkpoint:
        position = self._position
        return Checkpoint(
            id=f"{self.run_id}:{number}{part}",
            thread_id=self.thread_id,
            version=position.version + 1,
            parent_id=position.checkpoint_id,
            run_id=self.run_id,
            step=number,
            created=self.clock.now(),
            fingerprint=self._setup.fingerprint,
            frontier=step.frontier,
            ops=step.ops,
            state=step.state,
            interrupts=step.frontier.interrupts if step.frontier.notes else (),
            state_version=self._setup.state_version,
        )

    def _fail(self, number: int, errors: tuple[NodeError, ...]) -> StopReason:
        self._errors += errors
        if self.publisher is not None:
            self.publisher.failed(number, errors)
        # what fails while a run is being stopped fails because of that more often than not
        return self.stop.reason() or "error"

    def _finish(self, reason: StopReason) -> RunResult:
        with self._lock:
            self._over = True
        result = RunResult(
            state=settled(self._position.state),
            stop_reason=reason,
            steps=self._steps,
            run_id=self.run_id,
            thread_id=self.thread_id,
            checkpoint_id=self._position.checkpoint_id,
            errors=self._errors,
            interrupts=self._position.frontier.interrupts,
            orphans=self._orphans,
        )
        if self.publisher is not None and not self._is_nested:
            self.publisher.run_finished(result)
        self.stop.scope.close()
        return result


def _running_already(thread_id: str) -> str:
    wait = "wait for it, or run with on_conflict='queue' or 'cancel_previous'"
    return f"thread {thread_id!r} is running already; {wait}"


def _nothing_came_of(nodes: Sequence[str]) -> NodeError:
    # without this a run would try the same nodes for ever
    reason = "it raised Cancelled or Interrupted by hand; fail with an error, or call ctx.interrupt(payload)"
    return refused(nodes[0], reason)


async def _let_the_stop_in() -> None:
    """Suspend, so that the cancellation a stop request brings can reach a node that does nothing but emit."""
    import asyncio  # there already, or nothing here could wait

    await asyncio.sleep(0)
