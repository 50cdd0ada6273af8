"""What a SQLite file of checkpoints is made of."""

import sqlite3
from pathlib import Path
from typing import Final

from dialoom.stores.sqlite_opener import SqliteKind, Synchronous

_SCHEMA: Final = (
    # numbers are never used again, so no row can come to belong to another thread
    "CREATE TABLE thread (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE)",
    # place: thread and version in one number, because a row that goes to the end of a table without a second
    # index costs a third less; base: the version whose row holds the state this one is folded from, or begins
    # the thread; size: bytes of that row's body before it was compressed; since: the same of all rows after
    # it up to this one
    """CREATE TABLE checkpoint (
        place INTEGER PRIMARY KEY, id TEXT NOT NULL, created REAL NOT NULL,
        base INTEGER NOT NULL, size INTEGER NOT NULL, since INTEGER NOT NULL, body BLOB NOT NULL)""",
)
CHECKPOINTS: Final = SqliteKind(
    holds="checkpoints",
    application_id=0x446C6D47,  # "DlmG": checkpoints of graphs of dialoom
    layout=2,
    schema=_SCHEMA,
)


def open_checkpoints(path: Path, synchronous: Synchronous) -> sqlite3.Connection:
    """Open a file for writing; one of layout 1 is brought up, in one transaction."""
    connection = CHECKPOINTS.open(path, synchronous=synchronous)
    try:
        with CHECKPOINTS.translated(path):
            if _layout(connection) < CHECKPOINTS.layout:
                _bring_up(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _layout(connection: sqlite3.Connection) -> int:
    layout: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return layout


def _bring_up(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    if _layout(connection) < CHECKPOINTS.layout:  # another process may have been first while this one waited
        connection.execute("ALTER TABLE checkpoint RENAME TO older")
        connection.execute(_SCHEMA[1])
        connection.execute(
            "INSERT INTO checkpoint SELECT thread << 32 | version, id, created, base, size, since, body"
            " FROM older ORDER BY thread, version"
        )
        connection.execute("DROP TABLE older")
        connection.execute(f"PRAGMA user_version = {CHECKPOINTS.layout}")
    connection.execute("COMMIT")
