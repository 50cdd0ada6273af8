"""A run on the thread that asked for it, without an event loop."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import count
from threading import Event as Flag
from typing import TypeVar

from dialoom.graph.commit import Outcome
from dialoom.graph.drive import drive
from dialoom.graph.lane import Task, attempt
from dialoom.graph.publish import Publisher
from dialoom.graph.result import RunResult
from dialoom.graph.run import Run
from dialoom.graph.stop import StopSignal
from dialoom.graph.threads import node_pool

T = TypeVar("T")


class SyncLane:
    """Runs a lone node right here, the blocking ones of a parallel superstep on at most `limit` workers.

    Nothing here suspends, so `drive` can run the whole engine.
    """

    def __init__(self, stop: StopSignal, publisher: Publisher | None, limit: int) -> None:
        self._stop = stop
        self._publisher = publisher
        self._limit = limit

    async def run_nodes(self, tasks: Sequence[Task]) -> Sequence[Outcome]:
        if len(tasks) == 1:
            return [await attempt(*tasks[0], self._publisher)]
        outcomes: list[Outcome] = [None] * len(tasks)
        blocking = deque(at for at, (spec, _) in enumerate(tasks) if spec.blocking)
        workers = self._start(tasks, blocking, outcomes)
        for at, (spec, context) in enumerate(tasks):
            if not spec.blocking and self._stop.reason() is None:
                outcomes[at] = await attempt(spec, context, self._publisher)
        if workers:
            self._join(workers)
        # a copy: a worker left behind may still write into its own
        return list(outcomes)

    async def in_store(self, call: Callable[[], T], *, blocking: bool) -> T:  # noqa: ARG002 - may block here
        return call()

    async def drain(self, publisher: Publisher) -> None:
        """Return at once: a run without an event loop has observers, which keep up, and no reader."""

    def _start(
        self, tasks: Sequence[Task], waiting: deque[int], outcomes: list[Outcome]
    ) -> list["Future[None]"]:
        def work() -> None:
            while self._stop.reason() is None:
                try:
                    at = waiting.popleft()
                except IndexError:
                    return
                outcomes[at] = drive(attempt(*tasks[at], self._publisher))

        return [node_pool().submit(work) for _ in range(min(len(waiting), self._limit))]

    def _join(self, workers: Sequence["Future[None]"]) -> None:
        """Wait for `workers` or a stop, whichever is first; leave behind those that still run."""
        over = Flag()
        left = count(len(workers) - 1, -1)
        for worker in workers:
            worker.add_done_callback(lambda _: over.set() if next(left) == 0 else None)
        forget = self._stop.scope.add_callback(over.set)
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
    return drive(run.execute(SyncLane(run.stop, run.publisher, run.options.max_concurrency)))
