"""Tables of any length in one SQLite file: paged, sorted and filtered there, never whole in memory."""

import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.ids import new_id
from dialoom.base.text import one_line, replace_surrogates
from dialoom.server.arranged import ArrangedRows, Arrangement
from dialoom.server.problems import ProblemError, not_found
from dialoom.stores.sqlite_opener import SqliteKind

MAX_COLUMNS = 500
MAX_ROWS = 10_000_000
_BATCH = 1_000

Cell: TypeAlias = str | int | float | None
"""One value. A text of a file stays the text it is, also in a column of numbers."""
DType: TypeAlias = Literal["text", "number"]

DATA_SETS: Final = SqliteKind(
    holds="data sets",
    application_id=0x446C6D44,  # "DlmD": data sets of dialoom
    layout=1,
    schema=(
        """CREATE TABLE data_set (
            number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, about TEXT NOT NULL)""",
    ),
)


class DatasetColumn(msgspec.Struct, frozen=True):
    """A column's name, and whether all of it are numbers."""

    name: str
    dtype: DType = "text"


class Dataset(msgspec.Struct, frozen=True):
    """A table without its rows."""

    id: str
    name: str
    columns: list[DatasetColumn]
    total: int


class Order(msgspec.Struct, frozen=True):
    """Which rows of a data set, in which order: those with `words` in a cell, sorted by the column `sort`."""

    words: str = ""
    sort: str | None = None
    desc: bool = False


class RowPage(msgspec.Struct, frozen=True):
    """Some rows of the `total` there are that were asked for."""

    total: int
    rows: list[tuple[Cell, ...]]


class DatasetStore:
    """Data sets of one file. Methods block; any thread may call them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writing = Lock()
        self._reading = Lock()
        self._writer = DATA_SETS.open(path)
        self._reader = DATA_SETS.open_reader(path)
        self._arranged = ArrangedRows(DATA_SETS, path)

    def close(self) -> None:
        """Let go of the file."""
        with self._writing, self._reading:
            self._arranged.close()
            self._reader.close()
            self._writer.close()

    def create(self, name: str, columns: Sequence[DatasetColumn], rows: Iterable[Sequence[Cell]]) -> Dataset:
        """Keep a table, all of it or nothing. A row that is too short is filled, one too long is an error."""
        if not 1 <= len(columns) <= MAX_COLUMNS:
            raise UsageError(f"a data set has 1 to {MAX_COLUMNS} columns, not {len(columns)}")
        with self._writing, self._transaction() as connection:
            dataset_id = new_id()
            number = connection.execute(
                "INSERT INTO data_set (id, about) VALUES (?, '')", (dataset_id,)
            ).lastrowid
            names = ", ".join(f"c{at}" for at in range(len(columns)))
            connection.execute(f"CREATE TABLE rows_{number} (n INTEGER PRIMARY KEY, {names})")
            marks = ", ".join("?" * len(columns))
            insert = f"INSERT INTO rows_{number} ({names}) VALUES ({marks})"  # noqa: S608 - numbers and marks
            total, prepared = 0, _prepared(rows, len(columns))
            while batch := list(islice(prepared, _BATCH)):
                total += len(batch)
                if total > MAX_ROWS:
                    raise UsageError(f"a data set has at most {MAX_ROWS} rows; split it")
                connection.executemany(insert, batch)
            dataset = Dataset(dataset_id, one_line(name, 255), list(columns), total)
            about = msgspec.json.encode(dataset).decode()
            connection.execute("UPDATE data_set SET about = ? WHERE number = ?", (about, number))
        return dataset

    def find(self, dataset_id: str) -> Dataset:
        """Return what a data set is. Raises `ProblemError` when there is none."""
        return self._find(dataset_id)[1]

    def page(self, dataset_id: str, order: Order, *, offset: int, limit: int) -> RowPage:
        """Return the rows from `offset` on in that order."""
        number, dataset = self._find(dataset_id)
        names = ", ".join(f"c{at}" for at in range(len(dataset.columns)))
        if order.words or order.sort is not None:
            wanted = _arrangement(number, dataset, order)
            return RowPage(*self._arranged.page(wanted, names, offset=offset, limit=limit))
        # rows are never taken out of a table, so a row's number is its place
        place, by = ("n <= ?", "n DESC") if order.desc else ("n > ?", "n")
        asking = f"SELECT {names} FROM rows_{number} WHERE {place} ORDER BY {by} LIMIT ?"  # noqa: S608 - numbers and marks
        first = dataset.total - offset if order.desc else offset
        return RowPage(dataset.total, self._ask(asking, [first, limit]))

    def all_rows(self, dataset_id: str) -> Iterator[tuple[Cell, ...]]:
        """Yield every row in its order, a thousand at a time, holding up nobody in between."""
        number, dataset = self._find(dataset_id)
        names = ", ".join(f"c{at}" for at in range(len(dataset.columns)))
        asking = f"SELECT n, {names} FROM rows_{number} WHERE n > ? ORDER BY n LIMIT {_BATCH}"  # noqa: S608 - numbers
        last = 0
        while rows := self._ask(asking, [last]):
            last = rows[-1][0]
            yield from (row[1:] for row in rows)

    def delete(self, dataset_id: str) -> None:
        """Forget a data set."""
        number, _ = self._find(dataset_id)
        with self._writing, self._transaction() as connection:
            connection.execute(f"DROP TABLE rows_{number}")
            connection.execute("DELETE FROM data_set WHERE number = ?", (number,))
        self._arranged.forget(number)

    def _find(self, dataset_id: str) -> tuple[int, Dataset]:
        found = self._ask("SELECT number, about FROM data_set WHERE id = ?", [dataset_id])
        if not found:
            raise not_found("data set", dataset_id, then="make it of its file again")
        number, about = found[0]
        return number, msgspec.json.decode(about, type=Dataset)

    def _ask(self, question: str, values: Sequence[Cell]) -> list[tuple[Any, ...]]:
        with self._reading, DATA_SETS.translated(self._path):
            return self._reader.execute(question, values).fetchall()

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        with DATA_SETS.translated(self._path):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise


def _prepared(rows: Iterable[Sequence[Cell]], width: int) -> Iterator[list[Cell]]:
    for at, row in enumerate(rows):
        if len(row) > width:
            raise UsageError(f"row {at + 1} has {len(row)} cells, the table has {width} columns")
        cells = [replace_surrogates(cell) if isinstance(cell, str) else cell for cell in row]
        yield [*cells, *[None] * (width - len(cells))]


def _arrangement(number: int, dataset: Dataset, order: Order) -> Arrangement:
    where, values = _filter(dataset, order.words)
    return Arrangement(number, _sort(dataset, order), where, tuple(values))


def _filter(dataset: Dataset, words: str) -> tuple[str, list[str]]:
    if not words:
        return "", []
    escaped = words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    tests = " OR ".join(f"c{at} LIKE ? ESCAPE '\\'" for at in range(len(dataset.columns)))
    return f" WHERE ({tests})", [f"%{escaped}%"] * len(dataset.columns)


def _sort(dataset: Dataset, order: Order) -> str:
    if order.sort is None:
        return "n DESC" if order.desc else "n"
    names = [column.name for column in dataset.columns]
    if order.sort not in names:
        known = ", ".join(names[:20])
        raise ProblemError(
            422, "invalid_input", f"no column {one_line(order.sort, 80)!r}; use one of {known}"
        )
    at = names.index(order.sort)
    key = f"CAST(c{at} AS REAL)" if dataset.columns[at].dtype == "number" else f"c{at}"
    return f"c{at} IS NULL, {key} {'DESC' if order.desc else 'ASC'}, n"
