"""The one way a SQLite file of ours is opened: made when missing, refused when it is not ours, in WAL."""

import os
import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import msgspec

from dialoom.base.errors import ConflictError, StoreError
from dialoom.base.files import make_private
from dialoom.base.text import one_line

Synchronous = Literal["full", "normal"]
BUSY_SECONDS: Final = 20.0
FILE_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)
"""What Python's module raises for a file it cannot use; a damaged one may have no UTF-8 to tell it in."""
_PAUSE: Final = 0.02


class SqliteKind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of file: how it is known, what it is made of, and what messages call its content.

    `application_id` and `layout` stand in the header of every file; a file of a higher layout is of a newer
    dialoom. `schema` makes an empty file one of this kind.
    """

    holds: str
    application_id: int
    layout: int
    schema: tuple[str, ...]

    def open(
        self, path: Path, *, read_only: bool = False, synchronous: Synchronous = "full"
    ) -> sqlite3.Connection:
        """Open a file, or make a new one where there is nothing; deleted content leaves no bytes behind.

        WAL; with "full" a commit that returned survives a power cut. Raises `StoreError` for a file of
        another program, of a newer dialoom, a damaged one and a place that cannot be used; such a file is
        left as it is.
        """
        with self.translated(path):
            if read_only and not path.is_file():
                raise StoreError(f"there are no {self.holds} at {path}; open it for writing to begin")
            if not read_only:
                path.parent.mkdir(parents=True, exist_ok=True)
            connection = connect(path, "ro" if read_only else "rwc")
            try:
                if not read_only:
                    create_when_empty(connection, self)
                self._check_ours(connection, path)
                if not read_only:
                    switch_to_wal(connection)
                    connection.execute(f"PRAGMA synchronous = {synchronous}")
                    connection.execute("PRAGMA secure_delete = ON")
                    connection.execute("PRAGMA journal_size_limit = 67108864")
            except BaseException:
                connection.close()
                raise
        return connection

    def open_reader(self, path: Path) -> sqlite3.Connection:
        """Open one more connection to a file that is open already; it cannot write."""
        with self.translated(path):
            return connect(path, "ro")

    @contextmanager
    def translated(self, path: str | os.PathLike[str]) -> Generator[None]:
        """Errors of SQLite and of the file system become ours: the seam of the stores."""
        try:
            yield
        except FILE_ERRORS as error:
            raise self.error(error, path) from error
        except OSError as error:
            reason = (error.strerror or "error").lower()
            raise StoreError(f"{path} cannot be used ({reason}); choose another path or free it") from error

    def error(self, error: Exception, path: str | os.PathLike[str]) -> StoreError:
        """Return what one of `FILE_ERRORS` means to the caller."""
        code = result_code(error) if isinstance(error, sqlite3.Error) else sqlite3.SQLITE_CORRUPT
        match code:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return ConflictError(
                    f"{path} was locked by another process for {BUSY_SECONDS:g} seconds; try again"
                )
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return StoreError(
                    f"{path} holds no whole file of {self.holds}; restore it, or choose another path"
                )
            case sqlite3.SQLITE_FULL:
                return StoreError(f"the disk of {path} is full; free some space, then try again")
            case sqlite3.SQLITE_READONLY:
                return StoreError(f"{path} cannot be written; check its permissions")
            case _:
                return StoreError(f"{path} cannot be used ({one_line(str(error), 80)}); check the disk")

    def _check_ours(self, connection: sqlite3.Connection, path: Path) -> None:
        if connection.execute("PRAGMA application_id").fetchone()[0] != self.application_id:
            raise StoreError(f"{path} is a file of another program; choose another path for {self.holds}")
        layout = connection.execute("PRAGMA user_version").fetchone()[0]
        if layout > self.layout:
            raise StoreError(f"{path} was written by a newer dialoom (layout {layout}); upgrade to use it")


def connect(path: Path, mode: Literal["ro", "rwc"], *, extra: Sequence[str] = ()) -> sqlite3.Connection:
    """Open a connection any thread may use, one at a time; `extra` are further options of the URI.

    A file that this makes can be read by its owner only, and so can the files that SQLite puts beside it.
    """
    options = "&".join([f"mode={mode}", *extra])
    is_new = mode == "rwc" and not path.exists()
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{options}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    if is_new:
        make_private(path)
    return connection


def create_when_empty(connection: sqlite3.Connection, kind: SqliteKind) -> None:
    """Make the tables of `kind` unless the file has any; a file of none that is marked is not empty."""
    if not _is_empty(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    if _is_empty(connection):  # another process may have been first while this one waited
        for statement in kind.schema:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {kind.application_id}")
        connection.execute(f"PRAGMA user_version = {kind.layout}")
    connection.execute("COMMIT")


def switch_to_wal(connection: sqlite3.Connection) -> None:
    """Change the journal, which asks for the file alone and may not wait for it."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
        else:
            return


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether another connection was in the way."""
    return result_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def result_code(error: sqlite3.Error) -> int:
    """The primary result code; 0 for what Python's module raises by itself."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _is_empty(connection: sqlite3.Connection) -> bool:
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return tables == 0 and connection.execute("PRAGMA application_id").fetchone()[0] == 0
