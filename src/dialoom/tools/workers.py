"""Threads for tools that block: reused, bounded, and never in the way of the interpreter's exit."""

import os
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from queue import SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import Final, TypeVar

_T = TypeVar("_T")

MAX_THREADS: Final = 256


class Workers:
    """Runs plain functions on at most `size` daemon threads, started when no idle one is left.

    A tool that never returns keeps its thread, which is why these are daemons: the pools of the standard
    library wait for theirs at exit. With all threads taken, calls wait for one within their own timeout.
    """

    def __init__(self, size: int = MAX_THREADS) -> None:
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._idle = Semaphore(0)
        self._lock = Lock()
        self._threads = 0
        self._size = size

    def submit(self, body: Callable[[], _T]) -> "Future[_T]":
        """Run `body` on a thread, in a copy of the caller's context variables."""
        future: Future[_T] = Future()
        context = copy_context()
        self._jobs.put(lambda: _complete(future, lambda: context.run(body)))
        if not self._idle.acquire(blocking=False):
            self._start_one()
        return future

    def _start_one(self) -> None:
        with self._lock:
            if self._threads >= self._size:
                return
            self._threads += 1
            name = f"dialoom-tool-{self._threads}"
        Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while True:
            self._jobs.get()()
            self._idle.release()


def tool_workers() -> Workers:
    """Return the threads that all tools of this process share; a forked child has its own."""
    process = os.getpid()
    workers = _by_process.get(process)
    return workers or _by_process.setdefault(process, Workers())


_by_process: dict[int, Workers] = {}


def _complete(future: "Future[_T]", body: Callable[[], _T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = body()
    except BaseException as error:  # noqa: BLE001 - handed to whoever waits, whatever it is
        future.set_exception(error)
    else:
        future.set_result(result)
