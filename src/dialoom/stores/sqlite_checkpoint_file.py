"""The SQLite file of checkpoints: opened only when it is ours, with errors people understand."""

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from dialoom.base.errors import ConflictError, StoreError
from dialoom.base.text import one_line

Synchronous = Literal["full", "normal"]

APPLICATION_ID: Final = 0x446C6D47  # "DlmG": checkpoints of graphs of dialoom
LAYOUT: Final = 1
BUSY_SECONDS: Final = 20.0
_PAUSE: Final = 0.02
_SCHEMA: Final = (
    # numbers are never used again, so no row can come to belong to another thread
    "CREATE TABLE thread (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE)",
    # base: the version whose row holds the state this one is folded from, or begins the thread; size: bytes
    # of that row's body before it was compressed; since: the same of all rows after it up to this one
    """CREATE TABLE checkpoint (
        thread INTEGER NOT NULL, version INTEGER NOT NULL, id TEXT NOT NULL, created REAL NOT NULL,
        base INTEGER NOT NULL, size INTEGER NOT NULL, since INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (thread, version)) WITHOUT ROWID""",
)


def open_checkpoint_file(path: Path, synchronous: Synchronous) -> sqlite3.Connection:
    """Open a file of checkpoints for writing, or make a new one where there is nothing.

    Raises StoreError for a file of another program, of a newer dialoom, a damaged one and a place that
    cannot be used; such a file is left as it is.
    """
    with translated(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = connect(path, "rwc")
        try:
            _prepare(connection, path, synchronous)
        except BaseException:
            connection.close()
            raise
    return connection


def connect(path: Path, mode: Literal["ro", "rwc"]) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def _prepare(connection: sqlite3.Connection, path: Path, synchronous: Synchronous) -> None:
    if _is_empty(connection):
        _create(connection)
    _check_ours(connection, path)
    _switch_to_wal(connection)
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("PRAGMA secure_delete = ON")  # what is erased leaves no bytes behind
    connection.execute("PRAGMA journal_size_limit = 67108864")


def _is_empty(connection: sqlite3.Connection) -> bool:
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return tables == 0 and connection.execute("PRAGMA application_id").fetchone()[0] == 0


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    if _is_empty(connection):  # another process may have been first while this one waited
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
    connection.execute("COMMIT")


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Change the journal, which asks for the file alone and may not wait for it."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
        else:
            return


def _check_ours(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreError(f"{path} is a file of another program; choose another path for checkpoints")
    layout = connection.execute("PRAGMA user_version").fetchone()[0]
    if layout > LAYOUT:
        raise StoreError(f"{path} was written by a newer dialoom (layout {layout}); upgrade to use it")


@contextmanager
def translated(path: str | os.PathLike[str]) -> Generator[None]:
    """Errors of SQLite and of the file system become ours: the seam of this store."""
    try:
        yield
    except sqlite3.Error as error:
        raise store_error(error, path) from error
    except OSError as error:
        reason = (error.strerror or "error").lower()
        raise StoreError(f"{path} cannot be used ({reason}); choose another path or free it") from error


def store_error(error: sqlite3.Error, path: str | os.PathLike[str]) -> StoreError:
    """Return what an error of SQLite means to the caller."""
    if _is_busy(error):
        return ConflictError(f"{path} was locked by another process for {BUSY_SECONDS:g} seconds; try again")
    match _code(error):
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreError(
                f"{path} holds no whole file of checkpoints; restore it, or choose another path"
            )
        case sqlite3.SQLITE_FULL:
            return StoreError(f"the disk of {path} is full; free some space, then try again")
        case sqlite3.SQLITE_READONLY:
            return StoreError(f"{path} cannot be written; check its permissions")
        case _:
            return StoreError(f"{path} cannot be used ({one_line(str(error), 80)}); check the disk")


def _is_busy(error: sqlite3.Error) -> bool:
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(error: sqlite3.Error) -> int:
    """The primary result code; 0 for what Python's module raises by itself."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
