"""One try of a piece of foreign work: bounded in time, stopped on request, its late end never missed."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, NamedTuple, TypeAlias

import msgspec

from dialoom.base.cancel import Cancelled, CancelReason, CancelScope
from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.tools.workers import tool_workers

_log = logging.getLogger("dialoom.tools")


class Returned(NamedTuple):
    """The work came to its end with this."""

    value: object


class Raised(NamedTuple):
    """The work failed with this. `sys.exit()` is a failure of the work as well, and not the program's end."""

    error: Exception | SystemExit


class Stopped(NamedTuple):
    """The work was given up; whatever it still returns is dropped."""

    reason: CancelReason


Ending: TypeAlias = Returned | Raised | Stopped


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Foreign code to run: a coroutine function on the loop, a plain one in a worker thread.

    `on_stop` is called from a thread of its own when the work is given up.
    """

    name: str
    body: Callable[[], object]
    on_stop: Callable[[], None] | None = None


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How long a try may take, and how long it may take to stop. Seconds of `clock`."""

    timeout: float | None
    grace: float
    clock: Clock


class LateResults:
    """Owns work that was given up and has not ended; drops and counts what it returns in the end."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tasks: set[asyncio.Task[Ending]] = set()
        self.dropped = 0

    def expect(self, thread: "Future[Ending]") -> None:
        """Count the end of a worker's job, now or later; one that never began is forgotten."""
        thread.add_done_callback(self._drop_result)

    def keep(self, task: "asyncio.Task[Ending]") -> None:
        """Hold on to a task that was told to stop, until it does."""
        self._tasks.add(task)
        task.add_done_callback(self._let_go)

    def _let_go(self, task: "asyncio.Task[Ending]") -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        if task.exception() or not isinstance(task.result(), Stopped):
            self._drop()

    def _drop_result(self, thread: "Future[Ending]") -> None:
        if thread.cancelled():
            return
        if thread.exception() is None:
            match thread.result():
                case Returned(value) if inspect.iscoroutine(value):
                    value.close()  # nobody will await it
                case _:
                    pass
        self._drop()

    def _drop(self) -> None:
        with self._lock:
            self.dropped += 1
        _log.info("late tool result dropped")


async def attempt(job: Job, scope: CancelScope, *, bounds: Bounds, late: LateResults) -> Ending:
    """Run `job` once; return how it ended, `Stopped` as soon as `scope` is cancelled or time is over.

    Time being over cancels `scope`, so that the work can see it. A `BaseException` of the work, such as
    an interrupt, passes through; so does the cancellation of the calling task, after the work has stopped.
    """
    if scope.reason is not None:
        return Stopped(scope.reason)
    loop = asyncio.get_running_loop()
    work = loop.create_task(_run(job, scope, late))
    stop: asyncio.Future[None] = loop.create_future()
    leave = scope.add_callback(lambda: _wake(loop, stop))
    finished = False
    try:
        await _first_of({work, stop}, bounds.timeout, bounds.clock)
        finished = work.done()
        if not finished:
            scope.cancel("timeout")  # does nothing when cancelling is what ended the wait
    finally:
        leave()
        if not finished:
            scope.cancel("cancelled")
            await _wind_down(work, job, bounds=bounds, late=late)
    return work.result() if finished else Stopped(scope.reason or "cancelled")


async def _run(job: Job, scope: CancelScope, late: LateResults) -> Ending:
    try:
        if inspect.iscoroutinefunction(job.body):
            return Returned(await job.body())
        ending = await _in_thread(job.body, late)
        if isinstance(ending, Returned) and inspect.isawaitable(ending.value):
            return Returned(await ending.value)
    except asyncio.CancelledError:
        if scope.cancelled:
            raise
        return Raised(RuntimeError("the work was cancelled from within"))
    except Cancelled as cancelled:
        if scope.cancelled:
            return Stopped(cancelled.reason)
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - seam: foreign work runs here
        return Raised(error)
    return ending


async def _in_thread(body: Callable[[], object], late: LateResults) -> Ending:
    thread = tool_workers().submit(lambda: _caught(body))
    try:
        return await asyncio.wrap_future(thread)
    except asyncio.CancelledError:
        if not _failed(thread):
            late.expect(thread)
        raise


def _failed(thread: "Future[Ending]") -> bool:
    """Whether the job is over and ended in what is being raised now: then nothing of it is late."""
    return thread.done() and (thread.cancelled() or thread.exception() is not None)


def _caught(body: Callable[[], object]) -> Ending:
    """Return an exception instead of raising it: a future cannot carry `StopIteration`."""
    try:
        return Returned(body())
    except (Exception, SystemExit) as error:  # noqa: BLE001 - seam: foreign work runs here
        return Raised(error)


async def _wind_down(work: "asyncio.Task[Ending]", job: Job, *, bounds: Bounds, late: LateResults) -> None:
    if job.on_stop is not None:
        # not on a worker: all of those may be stuck, and this may be what frees one
        Thread(target=_tell, args=(job.name, job.on_stop), daemon=True).start()
    late.keep(work)
    work.cancel()
    await _first_of({work}, bounds.grace, bounds.clock)


def _tell(name: str, on_stop: Callable[[], None]) -> None:
    try:
        on_stop()
    except Exception:  # noqa: BLE001 - seam: foreign code is told to stop here
        _log.exception("cancelling a tool failed", extra={"tool": name})


async def _first_of(waits: "Iterable[asyncio.Future[Any]]", seconds: float | None, clock: Clock) -> None:
    """Wait until one of `waits` is done or `seconds` are over."""
    if seconds is None or clock is SYSTEM_CLOCK:
        # the loop's own timer costs a third of a task that sleeps
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return
    async with asyncio.TaskGroup() as group:
        timer = group.create_task(clock.sleep(seconds))
        await asyncio.wait({*waits, timer}, return_when=asyncio.FIRST_COMPLETED)
        timer.cancel()


def _wake(loop: asyncio.AbstractEventLoop, stop: "asyncio.Future[None]") -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(_settle, stop)


def _settle(stop: "asyncio.Future[None]") -> None:
    if not stop.done():
        stop.set_result(None)
