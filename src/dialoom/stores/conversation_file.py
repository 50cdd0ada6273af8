"""The SQLite file of conversations: opened only when it is ours, with errors people understand."""

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from dialoom.base.errors import ConflictError, StoreError
from dialoom.base.text import one_line

APPLICATION_ID = 0x446C6D43  # "DlmC": conversations of dialoom
LAYOUT = 1
BUSY_SECONDS = 20.0
_PAUSE = 0.02
_SCHEMA = (
    # numbers are never used again, so no row can come to belong to another conversation
    """CREATE TABLE conversation (
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
        created REAL NOT NULL, updated REAL NOT NULL, about TEXT NOT NULL,
        length INTEGER NOT NULL, visible INTEGER NOT NULL, indexed INTEGER NOT NULL)""",
    "CREATE INDEX conversation_by_change ON conversation (updated DESC, id)",
    # number: conversation number << 32 | place in the log, from 1; shown: the same with the index in the
    # visible list, NULL when truncated; body: an entry as JSON, or NULL where `keep` says what was kept
    """CREATE TABLE record (
        number INTEGER PRIMARY KEY, shown INTEGER, key TEXT, keep INTEGER, body TEXT,
        CHECK ((keep IS NULL) != (body IS NULL)))""",
    "CREATE UNIQUE INDEX record_shown ON record (shown) WHERE shown IS NOT NULL",
    "CREATE UNIQUE INDEX record_key ON record (number >> 32, key) WHERE key IS NOT NULL",
    # rows are numbered as records are; a title has place 0
    """CREATE VIRTUAL TABLE word USING fts5 (words, columnsize = 0, tokenize = "ascii tokenchars '_'")""",
    """CREATE TABLE draft (
        conversation INTEGER NOT NULL, slot TEXT NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (conversation, slot)) WITHOUT ROWID""",
    "CREATE TABLE content (hash TEXT PRIMARY KEY, bytes BLOB NOT NULL)",
    """CREATE TABLE attachment (
        conversation INTEGER NOT NULL, hash TEXT NOT NULL, name TEXT NOT NULL, mime TEXT NOT NULL,
        size INTEGER NOT NULL, PRIMARY KEY (conversation, hash)) WITHOUT ROWID""",
    "CREATE INDEX attachment_by_hash ON attachment (hash)",
    # conversations with records behind `indexed`: their words are still to be put in
    "CREATE TABLE unindexed (number INTEGER PRIMARY KEY)",
    # one row, while words of deleted conversations are still to be merged away
    "CREATE TABLE leftover (merging INTEGER PRIMARY KEY)",
)


def open_conversation_file(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """Open a file of conversations, or make a new one where there is nothing.

    WAL and synchronous=FULL: a commit that returned survives a power cut. Raises `StoreError` for a file
    of another program, of a newer dialoom, a damaged one and a place that cannot be used; such a file is
    left as it is.
    """
    with translated(path):
        if read_only and not path.is_file():
            raise StoreError(f"there are no conversations at {path}; open it for writing to begin")
        if not read_only:
            path.parent.mkdir(parents=True, exist_ok=True)
        connection = _connect(path, "ro" if read_only else "rwc")
        try:
            _prepare(connection, path, read_only=read_only)
        except BaseException:
            connection.close()
            raise
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """Open one more connection to a file that is open already; it cannot write."""
    with translated(path):
        return _connect(path, "ro")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def _prepare(connection: sqlite3.Connection, path: Path, *, read_only: bool) -> None:
    if read_only:
        _check_ours(connection, path)
        return
    if _is_empty(connection):
        _create(connection)
    _check_ours(connection, path)
    _switch_to_wal(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")  # what is deleted leaves no bytes behind
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
        raise StoreError(f"{path} is a file of another program; choose another path for conversations")
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
        return ConflictError(f"{path} is being written by another process; try again")
    match _code(error):
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreError(f"{path} holds no whole conversations file; restore it, or choose another path")
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
