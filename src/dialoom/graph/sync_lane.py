"""A run on the thread that asked for it, without an event loop."""

from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from itertools import count
from math import inf
from threading import Event as Flag
from time import monotonic
from typing import Any, TypeVar

from dialoom.base.cancel import CancelScope
from dialoom.graph.commit import Outcome
from dialoom.graph.context import NodeContext
from dialoom.graph.drive import drive
from dialoom.graph.guard import Chance, persevere, timed_out
from dialoom.graph.lane import Failure, Task, attempt, caught, lines_of, try_guarded
from dialoom.graph.publish import Publisher
from dialoom.graph.result import RunResult
from dialoom.graph.run import Run
from dialoom.graph.stop import StopSignal
from dialoom.graph.table import NodeSpec
from dialoom.graph.threads import node_pool

T = TypeVar("T")
MAX_WAIT = 4_000_000.0
"""Seconds, 46 days: what a lock of any platform takes as a wait."""


class SyncLane:
    """Runs a lone node right here, the blocking ones of a parallel superstep on at most `limit` workers.

    Nothing here suspends, so `drive` can run the whole engine.
    """

    may_block = True
    cancelled: BaseException | None = None

    def __init__(
        self, stop: StopSignal, publisher: Publisher | None, limit: int, *, chance: Chance | None
    ) -> None:
        self._stop = stop
        self._publisher = publisher
        self._limit = limit
        self._chance = chance

    def end(self) -> None:
        """Do nothing: nothing goes on beside what runs here."""

    def begin_nodes(self) -> None:
        """Do nothing: a stop is not let in while a node runs here."""

    def end_nodes(self) -> None:
        """Do nothing."""

    def caught(self, node: str, error: BaseException) -> Outcome:
        return caught(node, error)

    async def run_nodes(self, tasks: Sequence[Task]) -> Sequence[Outcome]:
        if len(tasks) == 1:
            return [await self._one(tasks[0])]
        outcomes: list[Outcome] = [None] * len(tasks)
        blocking = [at for at, (spec, _) in enumerate(tasks) if spec.blocking]
        workers = [
            worker
            for limit, turns in lines_of(tasks, blocking, self._limit)
            for worker in self._start(tasks, deque(turns), outcomes, limit=limit)
        ]
        for at, task in enumerate(tasks):
            if not task[0].blocking and self._stop.reason is None:
                outcomes[at] = await self._one(task)
        if workers:
            self._join(workers)
        # a copy: a worker left behind may still write into its own
        return list(outcomes)

    async def in_store(self, call: Callable[[], T], *, blocking: bool) -> T:  # noqa: ARG002 - may block here
        return call()

    async def drain(self, publisher: Publisher) -> None:
        """Return at once: a run without an event loop has observers, which keep up, and no reader."""

    async def wait_for(self, signal: CancelScope) -> None:
        over = Flag()
        signal.add_callback(over.set)
        self._wait(over, inf)

    async def try_once(self, spec: NodeSpec, context: NodeContext) -> Outcome | Failure:
        if spec.timeout is None:
            return await try_guarded(spec, context)
        own, leash = context.leashed(spec.timeout, monotonic)
        future = node_pool().submit(lambda: drive(try_guarded(spec, own)))
        over = Flag()
        future.add_done_callback(lambda _: over.set())
        while not future.done() and not context.stop_requested and (seconds := leash.left()) > 0:
            self._wait(over, seconds)
        if future.done():
            return future.result()
        leash.orphaned()
        node_pool().abandon(future)
        return None if context.stop_requested else timed_out(spec, leash)

    async def pause(self, seconds: float) -> None:
        self._wait(Flag(), seconds)

    def _one(self, task: Task) -> Coroutine[Any, Any, Outcome]:
        if task[0].guarded:
            return persevere(task, self, self._publisher, chance=self._chance)
        return attempt(*task, self._publisher)

    def _wait(self, over: Flag, seconds: float) -> None:
        """Block until `over` is set, a stop is requested or `seconds` are over."""
        forget = self._stop.add_callback(over.set)
        left = self._stop.remaining()
        try:
            with node_pool().lending():
                over.wait(min(seconds, inf if left is None else left, MAX_WAIT))
        finally:
            forget()

    def _start(
        self, tasks: Sequence[Task], waiting: deque[int], outcomes: list[Outcome], *, limit: int
    ) -> list["Future[None]"]:
        def work() -> None:
            while self._stop.reason is None:
                try:
                    at = waiting.popleft()
                except IndexError:
                    return
                outcomes[at] = drive(self._one(tasks[at]))

        return [node_pool().submit(work) for _ in range(min(len(waiting), limit))]

    def _join(self, workers: Sequence["Future[None]"]) -> None:
        """Wait for `workers` or a stop, whichever is first; leave behind those that still run."""
        over = Flag()
        left = count(len(workers) - 1, -1)
        for worker in workers:
            worker.add_done_callback(lambda _: over.set() if next(left) == 0 else None)
        forget = self._stop.add_callback(over.set)
        try:
            with node_pool().lending():
                over.wait(self._stop.remaining())
        finally:
            forget()
            left_behind = [worker for worker in workers if not worker.done()]
            for worker in left_behind:
                node_pool().abandon(worker)
        for worker in workers:
            if worker not in left_behind:
                worker.result()  # raises what no node may be kept from raising, such as SystemExit


def carry_here(run: Run) -> RunResult:
    """Execute `run`, whose nodes are all plain functions, on this thread."""
    return drive(Run.carry(lambda: run, _lane_of))


def _lane_of(run: Run) -> SyncLane:
    return SyncLane(run.stop, run.publisher, run.options.max_concurrency, chance=run.chance)
