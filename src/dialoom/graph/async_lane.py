"""A run as a task on an event loop."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from dialoom.base.cancel import CancelScope
from dialoom.base.clock import Clock
from dialoom.graph.commit import Outcome
from dialoom.graph.context import Leash, NodeContext
from dialoom.graph.drive import drive
from dialoom.graph.guard import Chance, persevere, timed_out
from dialoom.graph.lane import Failure, Task, attempt, caught, lines_of, try_guarded
from dialoom.graph.loops import post, resolve
from dialoom.graph.publish import Publisher
from dialoom.graph.stop import StopSignal
from dialoom.graph.table import NodeSpec
from dialoom.graph.threads import node_pool, store_pool
from dialoom.graph.timeout import Timeout
from dialoom.graph.trouble import error_of

T = TypeVar("T")


class AsyncLane:
    """Runs async nodes in the task that made it, blocking ones on workers, at most `limit` at once.

    A stop request cancels this task while it waits for nodes, the
    way `asyncio.timeout` does, and is told from a cancellation by others by counting.
    """

    __slots__ = (
        "_asked", "_cancels", "_chance", "_clock", "_in_nodes", "_limit", "_loop", "_publisher",
        "_stop", "_task", "_timer", "cancelled",
    )  # fmt: skip
    may_block = False

    def __init__(
        self,
        stop: StopSignal,
        publisher: Publisher | None,
        limit: int,
        *,
        clock: Clock,
        chance: Chance | None,
    ) -> None:
        self.cancelled: BaseException | None = None
        self._stop = stop
        self._publisher = publisher
        self._limit = limit
        self._clock = clock
        self._chance = chance
        self._loop = asyncio.get_running_loop()
        self._task = _current_task(self._loop)
        self._cancels = self._task.cancelling()
        self._in_nodes = False
        self._asked = False
        seconds = stop.remaining()
        self._timer = None if seconds is None else self._loop.create_task(self._expire(seconds))
        stop.carrier = self

    def end(self) -> Coroutine[Any, Any, None] | None:
        self._stop.carrier = None
        return None if self._timer is None else self._end_timer(self._timer)

    def begin_nodes(self) -> None:
        self._in_nodes = True

    def end_nodes(self) -> None:
        self._in_nodes = False
        if self._asked:
            self._asked = False
            self._task.uncancel()

    def caught(self, node: str, error: BaseException) -> Outcome:
        if not isinstance(error, asyncio.CancelledError):
            return caught(node, error)
        if self._task.cancelling() - self._asked > self._cancels:
            self._cancelled_by_others(error)
        return None if self._stop.cancelled else _stray(node, error)

    async def run_nodes(self, tasks: Sequence[Task]) -> Sequence[Outcome]:
        outcomes: list[Outcome] = [None] * len(tasks)
        self.begin_nodes()
        try:
            if len(tasks) == 1:
                spec, context = tasks[0]
                outcomes[0] = await self._one(spec, context)
            else:
                await self._many(tasks, outcomes)
        except asyncio.CancelledError as error:
            if self._task.cancelling() - self._asked > self._cancels:
                self._cancelled_by_others(error)
        finally:
            self.end_nodes()
        return outcomes

    async def in_store(self, call: Callable[[], T], *, blocking: bool) -> T:
        if not blocking:
            return call()
        future, done = self._watch(store_pool().submit(call))
        while not done.done():
            try:
                await asyncio.wait({done})
            except asyncio.CancelledError as error:
                self._cancelled_by_others(error)
        return future.result()

    async def drain(self, publisher: Publisher) -> None:
        if publisher.mailbox is None:
            return
        try:
            await publisher.mailbox.room()
        except asyncio.CancelledError as error:
            self._cancelled_by_others(error)

    async def wait_for(self, signal: CancelScope) -> None:
        come: asyncio.Future[None] = self._loop.create_future()
        forget = [
            scope.add_callback(lambda: post(self._loop, lambda: resolve(come)))
            for scope in (signal, self._stop)
        ]
        try:
            await come
        except asyncio.CancelledError as error:
            self._cancelled_by_others(error)
        finally:
            for each in forget:
                each()

    async def _many(self, tasks: Sequence[Task], outcomes: list[Outcome]) -> None:
        quick: list[int] = []
        waiting: list[int] = []
        for at, (spec, _) in enumerate(tasks):
            (waiting if spec.is_async or spec.blocking else quick).append(at)
        async with asyncio.TaskGroup() as group:
            for limit, line in lines_of(tasks, waiting, self._limit):
                turns = iter(line)
                # workers that pull, not a task for each node: a wide superstep costs a twelfth of that
                for _ in range(min(len(line), limit)):
                    group.create_task(self._work(turns, tasks, outcomes))
            await self._work(iter(quick), tasks, outcomes)

    async def _work(self, turns: Iterator[int], tasks: Sequence[Task], outcomes: list[Outcome]) -> None:
        for at in turns:
            if self._stop.reason is not None:
                return
            outcomes[at] = await self._one(*tasks[at])

    async def _one(self, spec: NodeSpec, context: NodeContext) -> Outcome:
        try:
            if spec.guarded:
                return await persevere((spec, context), self, self._publisher, chance=self._chance)
            if spec.blocking:
                return await self._on_worker(lambda: attempt(spec, context, self._publisher))
            return await attempt(spec, context, self._publisher)
        except asyncio.CancelledError as error:
            task = _current_task(self._loop)
            if task.cancelling() > (self._cancels if task is self._task else 0):
                raise
            return _stray(spec.name, error)

    async def try_once(self, spec: NodeSpec, context: NodeContext) -> Outcome | Failure:
        if spec.timeout is not None:
            return await (self._timed_on_worker if spec.blocking else self._timed)(
                spec, context, limits=spec.timeout
            )
        if spec.blocking:
            return await self._on_worker(lambda: try_guarded(spec, context))
        return await try_guarded(spec, context)

    async def pause(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    async def _on_worker(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        future, done = self._watch(node_pool().submit(lambda: drive(call())))
        try:
            await done
        except asyncio.CancelledError:
            node_pool().abandon(future)
            raise
        return future.result()

    async def _timed(self, spec: NodeSpec, context: NodeContext, *, limits: Timeout) -> Outcome | Failure:
        own, leash = context.leashed(limits, self._clock.monotonic)
        work = self._loop.create_task(try_guarded(spec, own))
        try:
            return work.result() if await self._in_time(work, leash) else timed_out(spec, leash)
        finally:
            leash.end()
            work.cancel()
            await asyncio.wait({work})

    async def _timed_on_worker(
        self, spec: NodeSpec, context: NodeContext, *, limits: Timeout
    ) -> Outcome | Failure:
        own, leash = context.leashed(limits, self._clock.monotonic)
        future, done = self._watch(node_pool().submit(lambda: drive(try_guarded(spec, own))))
        try:
            if await self._in_time(done, leash):
                return future.result()
        except asyncio.CancelledError:
            node_pool().abandon(future)
            raise
        leash.orphaned()
        node_pool().abandon(future)
        return timed_out(spec, leash)

    async def _in_time(self, done: "asyncio.Future[Any]", leash: Leash) -> bool:
        while not done.done() and (seconds := leash.left()) > 0:
            timer = self._loop.create_task(self._clock.sleep(seconds))
            try:
                await asyncio.wait({done, timer}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                timer.cancel()
                await asyncio.wait({timer})
        return done.done()

    def _watch(self, future: "Future[T]") -> tuple["Future[T]", "asyncio.Future[None]"]:
        done: asyncio.Future[None] = self._loop.create_future()
        future.add_done_callback(lambda _: post(self._loop, lambda: resolve(done)))
        return future, done

    async def _end_timer(self, timer: "asyncio.Task[None]") -> None:
        timer.cancel()
        while not timer.done():
            try:
                await asyncio.wait({timer})
            except asyncio.CancelledError as error:
                self._cancelled_by_others(error)

    async def _expire(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._stop.cancel("timeout")

    def hear_stop(self) -> None:
        post(self._loop, self._interrupt)

    def _interrupt(self) -> None:
        if self._in_nodes and not self._asked:
            self._asked = True
            self._task.cancel()

    def _cancelled_by_others(self, error: asyncio.CancelledError) -> None:
        self.cancelled = error
        self._stop.cancel()


def _stray(node: str, error: asyncio.CancelledError) -> Outcome:
    return error_of(node, error, prefix="nobody cancelled the run, but the node raised ")


def _current_task(loop: asyncio.AbstractEventLoop) -> "asyncio.Task[Any]":
    task = asyncio.current_task(loop)
    assert task is not None, "a run needs a task: await it, or use run_sync"
    return task
