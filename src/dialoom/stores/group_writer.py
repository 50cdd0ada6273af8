"""One thread that writes for all callers: those who wait together share one transaction."""

import logging
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from threading import Condition, Thread
from typing import Generic, Protocol, TypeAlias, TypeVar

from dialoom.base.errors import DialoomError, StoreError
from dialoom.stores.conversation_file import CONVERSATIONS
from dialoom.stores.sqlite_opener import FILE_ERRORS

_T = TypeVar("_T")
_log = logging.getLogger("dialoom.stores")

MAX_WAITING = 10_000
_MAX_GROUP = 256
_IDLE_SECONDS = 0.1
_MAX_UNTIDIED = 1000

Work: TypeAlias = Callable[[sqlite3.Connection], _T]
"""Decides, then writes: where it raises a `DialoomError` it has written nothing."""
Plan: TypeAlias = Callable[[], Work[_T]]
"""Prepares work outside the transaction: what costs time and needs no database."""


class GroupWriter:
    """Does what is submitted in the order it came; a future is done when its transaction is durable.

    Each work is kept whole or not at all. When a transaction of several fails, each is tried alone, so that
    one that cannot be written fails nobody else. `tidy` is called when nothing came for a moment, or much
    did without one, and again as long as it returns True; `close` does all that waits, tidying too.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: Path, *, tidy: Callable[[sqlite3.Connection], bool]
    ) -> None:
        self._connection = connection
        self._path = path
        self._tidy = tidy
        self._closed = False
        self._waiting: deque[_Pending] = deque()
        self._ready = Condition()
        # a daemon: a program that forgets to close still ends, and what was acknowledged is on the disk
        self._thread = Thread(target=self._run, name="dialoom-writer", daemon=True)
        self._thread.start()

    def submit(self, plan: Plan[_T]) -> Future[_T]:
        """Queue a plan. Raises `StoreError` when closed, or when 10,000 wait already."""
        request = _Request(plan)
        with self._ready:
            if self._closed:
                raise StoreError(f"the store {self._path} is closed; open it again")
            if len(self._waiting) >= MAX_WAITING:
                raise StoreError(f"{MAX_WAITING} writes to {self._path} wait already; await some of them")
            self._waiting.append(request)
            self._ready.notify()
        return request.future

    def close(self) -> None:
        """Finish what waits and end the thread; more than once is no error."""
        with self._ready:
            self._closed = True
            self._ready.notify()
        self._thread.join()

    def _run(self) -> None:
        untidied = 0
        pause: float | None = 0.0  # how long to wait before tidying; None when all is tidy
        while True:
            with self._ready:
                if not (self._waiting or self._closed or pause == 0):
                    self._ready.wait(pause)
                group = [self._waiting.popleft() for _ in range(min(_MAX_GROUP, len(self._waiting)))]
                closed = self._closed
            if group:
                self._write([request for request in group if request.begin()])
                untidied, pause = untidied + len(group), _IDLE_SECONDS
            if pause is not None and (not group or untidied >= _MAX_UNTIDIED):
                untidied, pause = 0, 0.0 if self._tidy_up() else None
            elif closed and not group:
                return

    def _tidy_up(self) -> bool:
        try:
            return self._tidy(self._connection)
        except Exception as error:  # noqa: BLE001 - seam: the thread goes on, for others wait for it
            # what is to be done stays marked in the file; the next write or opening goes on
            _roll_back(self._connection)
            _log.warning("tidying up conversations failed", extra={"reason": type(error).__name__})
            return False

    def _write(self, group: Sequence["_Pending"]) -> None:
        planned = [request for request in group if request.prepare()]
        if not planned:
            return
        busy = self._begin()
        error = busy or self._commit(planned)
        for request in planned:
            if error is None or busy is not None or len(planned) == 1:
                request.settle(error)
            else:
                request.settle(self._begin() or self._commit([request]))

    def _begin(self) -> StoreError | None:
        """Begin a transaction; return why there is none, which is then true for everyone who waits."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except FILE_ERRORS as error:
            return CONVERSATIONS.error(error, self._path)
        return None

    def _commit(self, group: Sequence["_Pending"]) -> Exception | None:
        """Do all and commit; return why nothing of it was kept, or None when it is durable."""
        try:
            for request in group:
                request.attempt(self._connection)
            self._connection.execute("COMMIT")
        except FILE_ERRORS as error:
            _roll_back(self._connection)
            return CONVERSATIONS.error(error, self._path)
        except Exception as error:  # noqa: BLE001 - seam: who asked gets the error, the thread goes on
            _roll_back(self._connection)
            return error
        return None


class _Pending(Protocol):
    """A request as the thread sees it, whatever its answer is."""

    def begin(self) -> bool: ...
    def prepare(self) -> bool: ...
    def attempt(self, connection: sqlite3.Connection) -> None: ...
    def settle(self, error: Exception | None) -> None: ...


class _Request(Generic[_T]):
    """One plan on its way to its answer."""

    def __init__(self, plan: Plan[_T]) -> None:
        self.future: Future[_T] = Future()
        self._plan = plan
        self._work: Work[_T]
        self._answer: Callable[[], None]

    def begin(self) -> bool:
        """Tell whether the caller still waits; from here on it can no longer withdraw."""
        return self.future.set_running_or_notify_cancel()

    def prepare(self) -> bool:
        try:
            self._work = self._plan()
        except Exception as error:  # noqa: BLE001 - seam: who asked gets the error, the thread goes on
            self.future.set_exception(error)
            return False
        return True

    def attempt(self, connection: sqlite3.Connection) -> None:
        """Do the work within a transaction; a refusal is an answer, unless something was written before."""
        changes = connection.total_changes
        try:
            result = self._work(connection)
        except DialoomError as refusal:
            if connection.total_changes != changes:
                raise
            self._answer = _refuser(self.future, refusal)
        else:
            self._answer = lambda: self.future.set_result(result)

    def settle(self, error: Exception | None) -> None:
        """Give the caller its answer, or the `error` that kept the transaction from being one."""
        if error is None:
            self._answer()
        else:
            self.future.set_exception(error)


def _refuser(future: Future[_T], refusal: DialoomError) -> Callable[[], None]:
    return lambda: future.set_exception(refusal)


def _roll_back(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):  # the first error is the one to tell
        connection.rollback()
