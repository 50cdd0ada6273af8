"""Rows of data sets in orders that people asked for, found out once: the pages of one come at once then."""

from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Any, Final

import msgspec

from dialoom.stores.sqlite_opener import SqliteKind

MAX_ARRANGED: Final = 4
"""So many orders are kept, on disk until the connection ends; the one not asked for longest goes first."""


class Arrangement(msgspec.Struct, frozen=True):
    """Which rows of the table `rows_NUMBER`, and how they are sorted, as SQL with marks for the `values`."""

    number: int
    by: str
    where: str
    values: tuple[str, ...]


class ArrangedRows:
    """A connection of its own: who waits for a long sort holds up nobody who reads in the file's order.

    Methods block; any thread may call them.
    """

    def __init__(self, kind: SqliteKind, path: Path) -> None:
        self._kind = kind
        self._path = path
        self._lock = Lock()
        self._connection = kind.open_reader(path)
        self._kept: OrderedDict[Arrangement, tuple[int, int]] = OrderedDict()
        self._made = 0

    def close(self) -> None:
        """Let go of the file, and of all that is kept."""
        with self._lock:
            self._connection.close()

    def page(
        self, wanted: Arrangement, columns: str, *, offset: int, limit: int
    ) -> tuple[int, list[tuple[Any, ...]]]:
        """Return how many rows there are, and those from `offset` on."""
        with self._lock, self._kind.translated(self._path):
            made, total = self._kept.get(wanted) or self._arrange(wanted)
            self._kept[wanted] = made, total
            self._kept.move_to_end(wanted)
            asking = (
                f"SELECT {columns} FROM temp.arranged_{made} JOIN rows_{wanted.number} USING (n)"  # noqa: S608 - numbers
                " WHERE place > ? AND place <= ? ORDER BY place"
            )
            return total, self._connection.execute(asking, (offset, offset + limit)).fetchall()

    def forget(self, number: int) -> None:
        """Let go of what is kept of a table."""
        with self._lock, self._kind.translated(self._path):
            for wanted in [each for each in self._kept if each.number == number]:
                self._drop(wanted)

    def _arrange(self, wanted: Arrangement) -> tuple[int, int]:
        """Find an order out; return its number and how many rows it has."""
        while len(self._kept) >= MAX_ARRANGED:
            self._drop(next(iter(self._kept)))
        self._made += 1
        table = f"temp.arranged_{self._made}"
        self._connection.execute(f"CREATE TABLE {table} (place INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
        filling = (
            f"INSERT INTO {table} (n) SELECT n FROM rows_{wanted.number}{wanted.where} ORDER BY {wanted.by}"  # noqa: S608 - numbers and marks
        )
        return self._made, self._connection.execute(filling, wanted.values).rowcount

    def _drop(self, wanted: Arrangement) -> None:
        made, _ = self._kept.pop(wanted)
        self._connection.execute(f"DROP TABLE temp.arranged_{made}")
