"""Threads for nodes and stores that block: bounded, shared by all graphs, never in the way of the exit."""

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from threading import Condition, Thread, local
from typing import Any, Final, TypeVar

from dialoom.graph.forks import in_forked_child

T = TypeVar("T")

DEFAULT_SIZE: Final = 64
STORE_SIZE: Final = 16
MAX_LENT: Final = 4 * DEFAULT_SIZE


class WorkerPool:
    """Runs plain functions on at most `size` threads, made when first needed.

    The threads are daemons: a node that never returns must not keep the interpreter from exiting, which is
    what the pools of the standard library do. For the same reason the place of an abandoned call is lent
    out again (up to `MAX_LENT` places), and a worker that waits for other workers lends its own, so that
    neither a stuck node nor a run inside a node can use the pool up.
    """

    def __init__(self, size: int = DEFAULT_SIZE, name: str = "dialoom-worker") -> None:
        self._name = name
        self._changed = Condition()
        self._jobs: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._size = size
        self._lent = 0
        self._threads = 0
        self._idle = 0
        self._here = local()

    def submit(self, fn: Callable[[], T]) -> "Future[T]":
        """Run `fn` on a worker, in a copy of the caller's context variables."""
        future: Future[T] = Future()
        context = copy_context()
        with self._changed:
            self._jobs.append((future, lambda: context.run(fn)))
            self._staff()
        return future

    def abandon(self, future: "Future[Any]") -> None:
        """Stop waiting for `future`: it never starts, or its result is dropped and its place lent out."""
        if future.cancel() or not self._lend():
            return
        future.add_done_callback(lambda _: self._take_back())

    @contextmanager
    def lending(self) -> Generator[None]:
        """Hold around a wait for other workers; lends the place of the calling thread if it is a worker."""
        lent = getattr(self._here, "is_worker", False) and self._lend()
        try:
            yield
        finally:
            if lent:
                self._take_back()

    def _lend(self) -> bool:
        with self._changed:
            if self._lent >= MAX_LENT:
                return False
            self._lent += 1
            self._staff()
            return True

    def _take_back(self) -> None:
        with self._changed:
            self._lent -= 1

    def _staff(self) -> None:
        if len(self._jobs) > self._idle and self._threads < self._size + self._lent:
            self._threads += 1
            Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
        else:
            self._changed.notify()

    def _work(self) -> None:
        self._here.is_worker = True
        while True:
            with self._changed:
                while not self._jobs and not self._too_many():
                    self._idle += 1
                    self._changed.wait()
                    self._idle -= 1
                if self._too_many():
                    self._threads -= 1
                    self._changed.notify()  # the call it was woken for is another's now
                    return
                future, call = self._jobs.popleft()
            _complete(future, call)
            del future, call  # an idle worker keeps nothing alive

    def _too_many(self) -> bool:
        return self._threads > self._size + self._lent


def _complete(future: "Future[Any]", call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - handed to whoever waits, whatever it is
        future.set_exception(error)
    else:
        future.set_result(result)


class _Shared:
    """The pools of this process. A forked child, which has none of the threads, makes its own."""

    nodes = WorkerPool()
    stores = WorkerPool(STORE_SIZE, "dialoom-store")


def node_pool() -> WorkerPool:
    """Return the pool on which every graph runs its blocking nodes."""
    return _Shared.nodes


def store_pool() -> WorkerPool:
    """Return the pool for blocking stores: their own, so that busy nodes cannot hold up a commit."""
    return _Shared.stores


def _start_over() -> None:
    _Shared.nodes = WorkerPool()
    _Shared.stores = WorkerPool(STORE_SIZE, "dialoom-store")


in_forked_child(_start_over)
