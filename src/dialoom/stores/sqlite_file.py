"""One SQLite file: opened only when it is ours and of a layout we know, with errors people understand."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from dialoom.base.errors import ConflictError, StoreError, UsageError
from dialoom.base.files import make_private
from dialoom.base.ids import new_id
from dialoom.base.text import one_line
from dialoom.rag.errors import CorruptIndexError, ReadOnlyError
from dialoom.stores.sqlite_lexical import CREATE, CURRENT, rebuild_words, words_are_current
from dialoom.stores.sqlite_opener import (
    SqliteKind,
    connect,
    create_when_empty,
    is_busy,
    result_code,
    switch_to_wal,
)
from dialoom.stores.sqlite_rows import all_chunks

_OLDEST = 1
_AGAIN = "dialoom ingest DIR"
_NO_ROOM = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
"""What SQLite says when it cannot make the files that it keeps beside the index."""
_SCHEMA = (
    "CREATE TABLE manifest (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE sources (
        source TEXT PRIMARY KEY, root TEXT NOT NULL, size INTEGER NOT NULL, modified_ns INTEGER NOT NULL,
        content_hash TEXT NOT NULL, recipe TEXT NOT NULL, error TEXT NOT NULL) WITHOUT ROWID""",
    "CREATE INDEX sources_by_root ON sources (root)",
    "CREATE TABLE documents (id TEXT PRIMARY KEY, source TEXT) WITHOUT ROWID",
    "CREATE INDEX documents_by_source ON documents (source)",
    # numbers are never used again, so a reader that knows one knows what it stands for
    """CREATE TABLE chunks (
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, doc_id TEXT NOT NULL,
        text TEXT NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL, page INTEGER,
        heading_path TEXT NOT NULL, metadata TEXT NOT NULL)""",
    "CREATE INDEX chunks_by_document ON chunks (doc_id)",
    # numbers: the chunks of the rows, as little-endian int64; data: unit rows, as little-endian float16
    """CREATE TABLE vectors (
        version INTEGER PRIMARY KEY AUTOINCREMENT, doc_id TEXT NOT NULL, dim INTEGER NOT NULL,
        numbers BLOB NOT NULL, data BLOB NOT NULL)""",
    "CREATE INDEX vectors_by_document ON vectors (doc_id)",
    "INSERT INTO manifest VALUES ('generation', '0')",
    CREATE,
    CURRENT,
)
KNOWLEDGE = SqliteKind(
    holds="knowledge",
    application_id=0x446C6D4B,  # "DlmK": knowledge of dialoom
    layout=2,
    schema=_SCHEMA,
)


def open_index_file(path: str | os.PathLike[str], *, read_only: bool) -> sqlite3.Connection:
    """Open an index, or make a new one where there is nothing.

    WAL and synchronous=FULL: a commit that returned survives a power cut. Raises `CorruptIndexError` for a
    file that is no index, `StoreError` for one of another program, a newer dialoom or a place that cannot
    be used; such a file is left as it is. The index of an older dialoom is brought up to date, which a reader
    cannot do and refuses with `StoreError`. A reader in a folder where nothing can be made takes an index
    that nobody is writing to for one that never changes.
    """
    target = Path(path)
    with translated(target):
        if target.is_dir():
            raise StoreError(f"{target} is a folder; name a file in it, like {target / 'knowledge.sqlite'}")
        if not read_only:
            target.parent.mkdir(parents=True, exist_ok=True)
            return _prepared(connect(target, "rwc"), target, read_only=False)
        if not target.is_file() or not target.stat().st_size:
            raise StoreError(f"there is no index at {target}; make one with: dialoom ingest DIR")
        try:
            return _prepared(connect(target, "ro"), target, read_only=True)
        except sqlite3.OperationalError as error:
            if result_code(error) not in _NO_ROOM or _is_being_written(target):
                raise
        return _prepared(connect(target, "ro", extra=("immutable=1",)), target, read_only=True)


def _prepared(connection: sqlite3.Connection, target: Path, *, read_only: bool) -> sqlite3.Connection:
    try:
        _prepare(connection, target, read_only=read_only)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_being_written(target: Path) -> bool:
    """Whether there are commits beside the file that are not in it yet."""
    log = target.with_name(f"{target.name}-wal")
    return log.exists() and log.stat().st_size > 0


def copy_index_file(connection: sqlite3.Connection, target: Path) -> None:
    """Write one moment of an index to a new file, whole or not at all, while others read and write it.

    Raises `StoreError`, also for a file that is there already.
    """
    if not target.parent.is_dir():
        raise StoreError(f"there is no folder {target.parent} for the copy; make it first")
    with translated(target):
        fresh = target.with_name(f".{target.name}.{new_id()}")
        try:
            connection.execute("VACUUM INTO ?", (str(fresh),))
            make_private(fresh)
            _sync(fresh)
            target.open("xb").close()  # what is there already is not replaced
            fresh.replace(target)
        except FileExistsError as error:
            raise StoreError(f"{target} is there already; choose another name for the copy") from error
        finally:
            fresh.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _prepare(connection: sqlite3.Connection, target: Path, *, read_only: bool) -> None:
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if not empty or read_only:
        _check_ours(connection, target)
    if read_only:
        if not _is_current(connection):
            raise StoreError(f"{target} was written by an older dialoom; bring it up to date: {_AGAIN}")
        return
    if empty:
        create_when_empty(connection, KNOWLEDGE)
        _check_ours(connection, target)
    switch_to_wal(connection)
    if not _is_current(connection):
        _upgrade(connection)
    connection.execute("PRAGMA synchronous = FULL")


def _is_current(connection: sqlite3.Connection) -> bool:
    layout = connection.execute("PRAGMA user_version").fetchone()[0]
    return bool(layout == KNOWLEDGE.layout) and words_are_current(connection)


def _upgrade(connection: sqlite3.Connection) -> None:
    """Make the words from the chunks; all else of the older layout is read as it is."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _is_current(connection):  # another process may have been first
            rebuild_words(connection, all_chunks(connection))
            connection.execute(f"PRAGMA user_version = {KNOWLEDGE.layout}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _check_ours(connection: sqlite3.Connection, target: Path) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != KNOWLEDGE.application_id:
        raise CorruptIndexError(f"{target} is a database of another program; choose another path")
    layout = connection.execute("PRAGMA user_version").fetchone()[0]
    if layout < _OLDEST:
        raise CorruptIndexError(f"{target} has no layout we know; remove it and ingest again")
    if layout > KNOWLEDGE.layout:
        raise StoreError(f"{target} was written by a newer dialoom (layout {layout}); upgrade to use it")


@contextmanager
def translated(target: Path) -> Generator[None]:
    """Errors of SQLite and of the file system become ours: the seam of this package."""
    try:
        yield
    except sqlite3.Error as error:
        raise _store_error(error, target) from error
    except OSError as error:
        reason = (error.strerror or "error").lower()
        raise StoreError(f"the index {target} cannot be used ({reason}); choose another path") from error
    except UnicodeEncodeError as error:
        raise UsageError("a chunk holds half a surrogate pair; replace it before storing") from error


def _store_error(error: sqlite3.Error, target: Path) -> StoreError:
    code = result_code(error)
    if is_busy(error):
        return ConflictError(f"the index {target} is being written by another process; try again")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return CorruptIndexError(f"{target} is not a whole index; restore it, or remove it and ingest again")
    if code == sqlite3.SQLITE_READONLY:
        return ReadOnlyError(f"the index {target} cannot be written; check its permissions")
    return StoreError(f"the index {target} cannot be used ({one_line(str(error), 80)}); check the disk")
