"""Delimited text as a table, and a table as CSV that a spreadsheet takes for data only."""

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.server.dataset_store import MAX_COLUMNS, Cell, DatasetColumn

_PIECE = 1024 * 1024
_SAMPLE = 64 * 1024
_NUMBER = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,4})?")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_BOM = "\ufeff"


class TableLayout(msgspec.Struct, frozen=True):
    """How a file of delimited text is read, and the columns its first row names."""

    encoding: str
    delimiter: str
    columns: list[DatasetColumn]


def find_layout(path: Path) -> TableLayout:
    """Look through a file: its encoding, its delimiter, its columns and which of them are numbers.

    UTF-16 is known by its mark; then UTF-8 is tried, then GB 18030, then Latin-1. Raises `UsageError` when
    there is no table in it.
    """
    encoding = _encoding(path)
    with path.open(encoding=encoding, newline="") as file:
        delimiter = _delimiter(file.read(_SAMPLE))
    rows = _all_rows(path, encoding, delimiter)
    names = _names(next(rows, None) or ())
    numbers, filled = [True] * len(names), [False] * len(names)
    for row in rows:
        for at, cell in enumerate(row[: len(names)]):
            if cell:
                filled[at] = True
                numbers[at] = numbers[at] and _NUMBER.fullmatch(cell.strip()) is not None
    columns = [
        DatasetColumn(name, "number" if numbers[at] and filled[at] else "text")
        for at, name in enumerate(names)
    ]
    return TableLayout(encoding, delimiter, columns)


def table_rows(path: Path, layout: TableLayout) -> Iterator[list[Cell]]:
    """Yield the rows below the first; an empty cell is None."""
    rows = _all_rows(path, layout.encoding, layout.delimiter)
    next(rows, None)
    for row in rows:
        yield [cell or None for cell in row]


def csv_pieces(
    columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, bom: bool, size: int = 64 * 1024
) -> Iterator[bytes]:
    """Yield the table as CSV in pieces of about `size` bytes; cells that would be formulas get a quote."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    if bom:
        buffer.write(_BOM)
    writer.writerow([harmless(name) for name in columns])
    for row in rows:
        writer.writerow([harmless(cell) for cell in row])
        if buffer.tell() >= size:
            yield buffer.getvalue().encode()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue().encode()


def harmless(cell: Cell) -> Cell:
    """Return a cell no spreadsheet takes for a formula; numbers, also negative ones, stay as they are."""
    if isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def _encoding(path: Path) -> str:
    with path.open("rb") as file:
        marked = file.read(2) in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}
    for name in ("utf-16",) if marked else ("utf-8-sig", "gb18030"):
        decoder = codecs.getincrementaldecoder(name)()
        try:
            with path.open("rb") as file:
                while piece := file.read(_PIECE):
                    decoder.decode(piece)
                decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            continue
        return name
    return "latin-1"


def _delimiter(sample: str) -> str:
    """Return what stands most often in the first line, a comma when nothing does."""
    line = next((line for line in sample.splitlines() if line.strip()), "")
    return max(",\t;|", key=line.count)


def _all_rows(path: Path, encoding: str, delimiter: str) -> Iterator[list[str]]:
    with path.open(encoding=encoding, newline="") as file:
        lines = (line.replace("\x00", "\ufffd") for line in file)
        try:
            yield from (row for row in csv.reader(lines, delimiter=delimiter) if row)
        except csv.Error as error:
            raise UsageError(f"the file is no table of text: {one_line(str(error))}; mend it") from error


def _names(row: Sequence[str]) -> list[str]:
    if not any(cell.strip() for cell in row):
        raise UsageError("the file has no first row that names its columns; add one")
    if len(row) > MAX_COLUMNS:
        raise UsageError(f"the file has {len(row)} columns; at most {MAX_COLUMNS} are taken")
    names: list[str] = []
    for at, cell in enumerate(row):
        name = one_line(cell, 200) or f"column {at + 1}"
        while name in names:
            name = f"{name} ({at + 1})"
        names.append(name)
    return names
