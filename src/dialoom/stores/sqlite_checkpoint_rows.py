"""Statements over the rows of checkpoints; each runs within a transaction of its caller."""

import sqlite3
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from dialoom.graph.checkpoint import Checkpoint
from dialoom.graph.codec import UnreadableError
from dialoom.stores.checkpoint_chain import Head

LAST: Final = 4294967295
"""Later than any version, and what takes the version out of a place."""

# a row whose predecessor is not there, is another or has been rebased has no id, so it is ignored; as a
# SELECT from the table it goes into, this would cost as much again
_ADD: Final = "INSERT INTO checkpoint VALUES (?, ?, ?, ?, ?, ?, ?)"
_FOLLOW: Final = (
    "INSERT OR IGNORE INTO checkpoint VALUES"
    " (?1, (SELECT ?2 FROM checkpoint WHERE place = ?1 - 1 AND id = ?8 AND base = ?4), ?3, ?4, ?5, ?6, ?7)"
)


class Spot(NamedTuple):
    """Where a thread stands in the file: its number and its newest checkpoint."""

    number: int
    head: Head


class Row(NamedTuple):
    """One checkpoint as it is stored."""

    version: int
    id: str
    created: float
    base: int
    body: bytes

    def check(self) -> None:
        """Raise UnreadableError unless the columns hold what they are for, which SQLite does not see to."""
        if (type(self.id), type(self.created), type(self.base), type(self.body)) != (str, float, int, bytes):
            raise UnreadableError("a column holds another kind of value")


def place_of(number: int, version: int) -> int:
    """Return where the row of a version is; those of one thread lie side by side, in order."""
    return number << 32 | version


def find_spot(connection: sqlite3.Connection, thread_id: str) -> Spot | None:
    """Return where a thread stands, None when it is not there. Raises UnreadableError for a damaged row."""
    number = find_number(connection, thread_id)
    if number is None:
        return None
    found: Any = connection.execute(
        "SELECT place & 4294967295, id, base, size, since FROM checkpoint"
        " WHERE place BETWEEN ? AND ? ORDER BY place DESC LIMIT 1",
        (place_of(number, 0), place_of(number, LAST)),
    ).fetchone()
    if found is None:
        return None
    if [type(each) for each in found] != [int, str, int, int, int]:
        raise UnreadableError(
            f"checkpoint {found[0]} of thread {thread_id!r} cannot be gone on from: a column holds another"
            " kind of value; restore the file, or erase the thread"
        )
    return Spot(number, Head(*found))


def find_number(connection: sqlite3.Connection, thread_id: str) -> int | None:
    if not _can_be_there(thread_id):
        return None
    found = connection.execute("SELECT number FROM thread WHERE id = ?", (thread_id,)).fetchone()
    return None if found is None else found[0]


def find_version(connection: sqlite3.Connection, number: int, checkpoint_id: str) -> int | None:
    """Return the version of the checkpoint with an id, None when the thread has none such.

    Looks through the whole thread, a millisecond for thousands: it is asked when a branch begins, while an
    index would cost every superstep a third more.
    """
    if not _can_be_there(checkpoint_id):
        return None
    found = connection.execute(
        "SELECT place & 4294967295 FROM checkpoint WHERE place BETWEEN ? AND ? AND id = ?",
        (place_of(number, 0), place_of(number, LAST), checkpoint_id),
    ).fetchone()
    return None if found is None else found[0]


def is_id_of(connection: sqlite3.Connection, number: int, version: int, checkpoint_id: str) -> bool:
    """Tell whether a thread holds this version under this id."""
    found = connection.execute(
        "SELECT id FROM checkpoint WHERE place = ?", (place_of(number, version),)
    ).fetchone()
    return found is not None and found[0] == checkpoint_id


def add_thread(connection: sqlite3.Connection, thread_id: str) -> int:
    number = connection.execute("INSERT INTO thread (id) VALUES (?)", (thread_id,)).lastrowid
    assert number is not None, "an insert that did not raise has a row"
    return number


def add_row(connection: sqlite3.Connection, number: int, head: Head, created: float, body: bytes) -> None:
    connection.execute(
        _ADD,
        (place_of(number, head.version), head.id, created, head.base, head.size, head.since, body),
    )


def add_following(connection: sqlite3.Connection, rows: Sequence[tuple[Spot, Checkpoint, bytes]]) -> bool:
    """Add rows, each given as the spot it makes, where the row before is the parent and has the same base.

    Of the rows of one thread each is given after the one it follows. False, having added the first ones of
    some threads at most, when a row is not like that or is there already.
    """
    begun: set[int] = set()
    following: list[Sequence[Any]] = []
    for spot, checkpoint, body in rows:
        number, head = spot
        values = (
            number << 32 | head.version,
            head.id,
            checkpoint.created,
            head.base,
            head.size,
            head.since,
            body,
        )
        if number in begun:
            following.append(values)
            continue
        begun.add(number)
        if connection.execute(_FOLLOW, (*values, checkpoint.parent_id)).rowcount != 1:
            return False
    if following:
        connection.executemany(_ADD, following)
    return True


def read_chain(connection: sqlite3.Connection, thread_id: str, upto: int = LAST) -> Sequence[Row]:
    """Return the row of the newest version up to `upto` and those its state is folded from, oldest first."""
    if not _can_be_there(thread_id):
        return ()
    # the min: a damaged base neither hides the row nor brings in those of another thread
    found = connection.execute(
        "SELECT place & 4294967295, checkpoint.id, created, base, body FROM thread JOIN checkpoint"
        " ON place BETWEEN (number << 32) + (SELECT max(0, min(base, place & 4294967295)) FROM checkpoint"
        "  WHERE place BETWEEN number << 32 AND (number << 32) + ?2 ORDER BY place DESC LIMIT 1)"
        " AND (number << 32) + ?2"
        " WHERE thread.id = ?1 ORDER BY place",
        (thread_id, upto),
    )
    return [Row(*each) for each in found]


def thread_ids(connection: sqlite3.Connection) -> list[str]:
    return [each[0] for each in connection.execute("SELECT id FROM thread ORDER BY id")]


def oldest_kept(
    connection: sqlite3.Connection, number: int, *, keep_last: int | None, since: float | None
) -> int:
    """Return the version from which on a thread keeps its checkpoints; its newest one at most."""
    whole = place_of(number, 0), place_of(number, LAST)
    newest = connection.execute(
        "SELECT max(place) & 4294967295 FROM checkpoint WHERE place BETWEEN ? AND ?", whole
    ).fetchone()[0]
    kept = 0 if keep_last is None else newest - keep_last + 1
    if since is not None:
        young = connection.execute(
            "SELECT min(place) & 4294967295 FROM checkpoint WHERE place BETWEEN ? AND ? AND created >= ?",
            (*whole, since),
        ).fetchone()[0]
        kept = max(kept, newest if young is None else young)
    return kept


def delete_before(connection: sqlite3.Connection, number: int, version: int) -> int:
    return connection.execute(
        "DELETE FROM checkpoint WHERE place BETWEEN ? AND ?",
        (place_of(number, 0), place_of(number, version) - 1),
    ).rowcount


def rebase(connection: sqlite3.Connection, number: int, version: int, body: bytes, *, size: int) -> None:
    """Make `version` hold the state, and what was folded from before it be folded from there."""
    place = place_of(number, version)
    before = connection.execute("SELECT since FROM checkpoint WHERE place = ?", (place,)).fetchone()[0]
    connection.execute(
        "UPDATE checkpoint SET base = ?1, size = ?2, since = since - ?3"
        " WHERE place BETWEEN ?4 AND ?5 AND base < ?1",
        (version, size, before, place, place_of(number, LAST)),
    )
    connection.execute("UPDATE checkpoint SET body = ? WHERE place = ?", (body, place))


def delete_thread(connection: sqlite3.Connection, number: int) -> None:
    delete_before(connection, number, LAST)
    connection.execute("DELETE FROM thread WHERE number = ?", (number,))


def _can_be_there(name: str) -> bool:
    """Tell whether a name can be stored: one with half a surrogate pair cannot, so nothing has it."""
    return name.isascii() or not any("\ud800" <= each <= "\udfff" for each in name)
