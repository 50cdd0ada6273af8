"""Threads that read: each question sees one moment of the file and holds up no writer."""

import sqlite3
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from dialoom.base.errors import StoreError
from dialoom.stores.conversation_file import CONVERSATIONS

_T = TypeVar("_T")
_THREADS = 4


class ReaderPool:
    """Up to four questions at once, each on a connection of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="dialoom-reader")
        self._idle: deque[sqlite3.Connection] = deque()

    def submit(self, ask: Callable[[sqlite3.Connection], _T]) -> Future[_T]:
        """Ask within one read transaction. Raises `StoreError` when the pool is closed."""
        try:
            return self._threads.submit(self._ask, ask)
        except RuntimeError as error:
            raise StoreError(f"the store {self._path} is closed; open it again") from error

    def close(self) -> None:
        """Answer what was asked, then let go of the file."""
        self._threads.shutdown()
        while self._idle:
            self._idle.pop().close()

    def _ask(self, ask: Callable[[sqlite3.Connection], _T]) -> _T:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = CONVERSATIONS.open_reader(self._path)
        try:
            with CONVERSATIONS.translated(self._path):
                return _ask_at_one_moment(connection, ask)
        finally:
            self._idle.append(connection)


def _ask_at_one_moment(connection: sqlite3.Connection, ask: Callable[[sqlite3.Connection], _T]) -> _T:
    connection.execute("BEGIN")
    try:
        return ask(connection)
    finally:
        connection.rollback()
