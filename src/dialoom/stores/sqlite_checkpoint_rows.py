"""Statements over the rows of checkpoints; each runs within a transaction of its caller."""

import sqlite3
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from dialoom.graph.checkpoint import Checkpoint
from dialoom.stores.checkpoint_blob import Blob
from dialoom.stores.checkpoint_chain import SNAPSHOT_FLOOR, Head

LAST: Final = 2**62
"""Later than any version."""


class Row(NamedTuple):
    """One checkpoint as it is stored."""

    version: int
    id: str
    created: float
    base: int
    body: bytes


def find_head(connection: sqlite3.Connection, thread_id: str) -> tuple[int, Head] | None:
    """Return the number of a thread and its newest checkpoint, None when it is not there."""
    found: Any = connection.execute(
        "SELECT thread, version, checkpoint.id, base, size, since FROM thread JOIN checkpoint"
        " ON thread = number WHERE thread.id = ? ORDER BY version DESC LIMIT 1",
        (thread_id,),
    ).fetchone()
    return None if found is None else (found[0], Head(*found[1:]))


def find_number(connection: sqlite3.Connection, thread_id: str) -> int | None:
    found = connection.execute("SELECT number FROM thread WHERE id = ?", (thread_id,)).fetchone()
    return None if found is None else found[0]


def find_version(connection: sqlite3.Connection, number: int, checkpoint_id: str) -> int | None:
    """Return the version of the checkpoint with an id, None when the thread has none such.

    Looks through the whole thread, a millisecond for thousands: it is asked when a branch begins, while an
    index would cost every superstep a third more.
    """
    found = connection.execute(
        "SELECT version FROM checkpoint WHERE thread = ? AND id = ?", (number, checkpoint_id)
    ).fetchone()
    return None if found is None else found[0]


def is_id_of(connection: sqlite3.Connection, number: int, version: int, checkpoint_id: str) -> bool:
    """Tell whether a thread holds this version under this id."""
    found = connection.execute(
        "SELECT id FROM checkpoint WHERE thread = ? AND version = ?", (number, version)
    ).fetchone()
    return found is not None and found[0] == checkpoint_id


def add_thread(connection: sqlite3.Connection, thread_id: str) -> int:
    number = connection.execute("INSERT INTO thread (id) VALUES (?)", (thread_id,)).lastrowid
    assert number is not None, "an insert that did not raise has a row"
    return number


def add_row(connection: sqlite3.Connection, number: int, head: Head, created: float, body: bytes) -> None:
    connection.execute(
        "INSERT INTO checkpoint VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (number, head.version, head.id, created, head.base, head.size, head.since, body),
    )


def follow_head(connection: sqlite3.Connection, checkpoint: Checkpoint, blob: Blob) -> bool:
    """Add what changed to its thread in one statement; False, and nothing done, when more is to be decided.

    That is all most supersteps need: the version before is the parent, nobody has written this one (versions
    have no gaps, so the parent is the head), and not enough has changed for a snapshot.
    """
    added = connection.execute(
        "INSERT OR IGNORE INTO checkpoint"
        " SELECT thread, ?1, ?2, ?3, base, size, since + ?4, ?5"
        " FROM thread JOIN checkpoint ON thread = number"
        " WHERE thread.id = ?6 AND version = ?1 - 1 AND checkpoint.id = ?7 AND since + ?4 <= max(size, ?8)",
        (
            checkpoint.version,
            checkpoint.id,
            checkpoint.created,
            blob.size,
            blob.data,
            checkpoint.thread_id,
            checkpoint.parent_id,
            SNAPSHOT_FLOOR,
        ),
    ).rowcount
    return added == 1


def read_chain(connection: sqlite3.Connection, thread_id: str, upto: int = LAST) -> Sequence[Row]:
    """Return the row of the newest version up to `upto` and those its state is folded from, oldest first."""
    found = connection.execute(
        "SELECT version, checkpoint.id, created, base, body FROM thread JOIN checkpoint ON thread = number"
        " WHERE thread.id = ?1 AND version <= ?2 AND version >= (SELECT base FROM thread JOIN checkpoint"
        " ON thread = number WHERE thread.id = ?1 AND version <= ?2 ORDER BY version DESC LIMIT 1)"
        " ORDER BY version",
        (thread_id, upto),
    )
    return [Row(*each) for each in found]


def thread_ids(connection: sqlite3.Connection) -> list[str]:
    return [each[0] for each in connection.execute("SELECT id FROM thread ORDER BY id")]


def oldest_kept(
    connection: sqlite3.Connection, number: int, *, keep_last: int | None, since: float | None
) -> int:
    """Return the version from which on a thread keeps its checkpoints; its newest one at most."""
    newest = connection.execute("SELECT max(version) FROM checkpoint WHERE thread = ?", (number,)).fetchone()[
        0
    ]
    kept = 0 if keep_last is None else newest - keep_last + 1
    if since is not None:
        young = connection.execute(
            "SELECT min(version) FROM checkpoint WHERE thread = ? AND created >= ?", (number, since)
        ).fetchone()[0]
        kept = max(kept, newest if young is None else young)
    return kept


def delete_before(connection: sqlite3.Connection, number: int, version: int) -> int:
    return connection.execute(
        "DELETE FROM checkpoint WHERE thread = ? AND version < ?", (number, version)
    ).rowcount


def rebase(connection: sqlite3.Connection, number: int, version: int, body: bytes, *, size: int) -> None:
    """Make `version` hold the state, and what was folded from before it be folded from there."""
    before = connection.execute(
        "SELECT since FROM checkpoint WHERE thread = ? AND version = ?", (number, version)
    ).fetchone()[0]
    connection.execute(
        "UPDATE checkpoint SET base = ?1, size = ?2, since = since - ?3"
        " WHERE thread = ?4 AND base < ?1 AND version >= ?1",
        (version, size, before, number),
    )
    connection.execute(
        "UPDATE checkpoint SET body = ? WHERE thread = ? AND version = ?", (body, number, version)
    )


def delete_thread(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("DELETE FROM checkpoint WHERE thread = ?", (number,))
    connection.execute("DELETE FROM thread WHERE number = ?", (number,))
