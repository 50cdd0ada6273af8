"""How a file of points is laid out: encoding, comments, delimiter, header, and what its columns hold."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from dialoom.apps.geo.names import CHINESE
from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.rag.loaders.decode import decode

MAX_BYTES: Final = 128 * 1024 * 1024
MAX_ROWS: Final = 2_000_000
MAX_COLUMNS: Final = 200
SAMPLES: Final = 5
_LOOKED_AT = 50
_HEAD = 4_096
_MARKS = ("#", "!", "%", "//")
_DELIMITERS = ("\t", ";", ",", "|")
_NULL_WORDS = frozenset({"", "nan", "null", "na", "n/a", "none", "-", "*"})
_NULL_NUMBERS = frozenset({-99999.0, -9999.0})
_BLANKED = 1.70141e38
"""Surfer's blanked value; this and all above it hold nothing."""
_COMMA_DECIMAL = re.compile(r"[+-]?\d{1,300},\d{1,300}")
_MOSTLY = 0.9


class Hints(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said about the file; a field left as it is, is found out."""

    encoding: str = "auto"
    delimiter: str | None = None
    skip_rows: int = 0
    null_values: tuple[str, ...] = ()


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One column: `values` are its numbers, NaN where there is none; empty for a column of text."""

    index: int
    name: str
    dtype: str
    samples: tuple[str, ...]
    nulls: int
    values: list[float]

    @property
    def low(self) -> float | None:
        return min((value for value in self.values if not math.isnan(value)), default=None)

    @property
    def high(self) -> float | None:
        return max((value for value in self.values if not math.isnan(value)), default=None)


class PointFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was read. `header_row` counts from 0 among all lines, None without a header."""

    encoding: str
    delimiter: str
    decimal: str
    comment_prefix: str | None
    header_row: int | None
    columns: list[Column]
    rows: list[list[str]]

    def column(self, name: str | int) -> Column:
        """Return a column by its name or its index. Raises `UsageError` when there is none."""
        for each in self.columns:
            if name in (each.name, each.index):
                return each
        known = ", ".join(each.name for each in self.columns[:20])
        raise UsageError(f"the file has no column {one_line(str(name), 40)!r}; it has {known}")


def read_points(data: bytes, name: str, hints: Hints) -> PointFile:
    """Read a file of points. Raises `UsageError` (`LoadError` for what is no text) that says what to mend."""
    if len(data) > MAX_BYTES:
        raise UsageError(f"{name} has {len(data)} bytes; at most {MAX_BYTES} are read, split it")
    declared = _named_in_chinese(data) if hints.encoding == "auto" else hints.encoding
    decoded = decode(data, source=name, declared=declared)
    lines = list(enumerate(decoded.text.split("\n")))[hints.skip_rows :]
    mark = next((mark for _, line in lines[:_LOOKED_AT] for mark in _MARKS if line.startswith(mark)), None)
    comments = [line for _, line in lines if mark and line.startswith(mark)]
    kept = [(at, line) for at, line in lines if line.strip() and not (mark and line.startswith(mark))]
    if len(kept) > MAX_ROWS:
        raise UsageError(f"{name} has {len(kept)} rows; at most {MAX_ROWS} are read, split it")
    if not kept:
        raise UsageError(f"{name} holds no rows; choose another file")
    delimiter = hints.delimiter or _delimiter([line for _, line in kept[:_LOOKED_AT]])
    rows = [_cells(line, delimiter) for _, line in kept]
    decimal = _decimal(rows[:_LOOKED_AT], delimiter)
    nulls = frozenset(word.strip().lower() for word in hints.null_values)
    has_header = _is_header(rows, decimal)
    names = rows[0] if has_header else _named_above(comments, mark, delimiter, len(rows[0]))
    body = rows[1:] if has_header else rows
    if not body:
        raise UsageError(f"{name} has a header and no rows; choose another file")
    return PointFile(
        encoding=decoded.encoding,
        delimiter=delimiter,
        decimal=decimal,
        comment_prefix=mark,
        header_row=kept[0][0] if has_header else None,
        columns=_columns(names, body, decimal, nulls),
        rows=body,
    )


def number(cell: str, decimal: str, nulls: frozenset[str] = frozenset()) -> float | None:
    """Return a cell's number, NaN for one that holds nothing, None for one that holds something else."""
    word = cell.strip().lower()
    if word in _NULL_WORDS or word in nulls:
        return math.nan
    try:
        value = float(word.replace(",", ".") if decimal == "," else word)
    except ValueError:
        return None
    empty = value in _NULL_NUMBERS or abs(value) >= _BLANKED
    return math.nan if empty else value


def _named_in_chinese(data: bytes) -> str | None:
    """Return GB18030 when the first lines hold a known name in it: too little for a guess by letters."""
    head = data[:_HEAD].decode("gb18030", "ignore")
    return "gb18030" if any(name in head for name in CHINESE) and not _is_utf8(data) else None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _delimiter(lines: Sequence[str]) -> str:
    """Return what splits most lines into the same number of columns, white space when nothing does."""
    best, score = " ", 0.0
    for candidate in (*_DELIMITERS, " "):
        counts = Counter(len(_cells(line, candidate)) for line in lines)
        width, agreeing = counts.most_common(1)[0]
        share = agreeing / len(lines)
        if width >= 2 and share > score + 1e-9:
            best, score = candidate, share
    return best


def _cells(line: str, delimiter: str) -> list[str]:
    cells = line.split() if delimiter == " " else line.split(delimiter)
    return [cell.strip().strip('"') for cell in cells[:MAX_COLUMNS]]


def _decimal(rows: Iterable[Sequence[str]], delimiter: str) -> str:
    if delimiter == ",":
        return "."
    cells = [cell for row in rows for cell in row]
    commas = any(_COMMA_DECIMAL.fullmatch(cell) for cell in cells)
    points = any("." in cell and number(cell, ".") is not None for cell in cells)
    return "," if commas and not points else "."


def _is_header(rows: Sequence[Sequence[str]], decimal: str) -> bool:
    return all(number(cell, decimal) is None or not cell for cell in rows[0])


def _named_above(comments: Sequence[str], mark: str | None, delimiter: str, width: int) -> list[str]:
    """Return the names that the last comment gives, when it has one for each column."""
    for comment in reversed(comments[:_LOOKED_AT]):
        cells = _cells(comment.removeprefix(mark or "").strip(), delimiter)
        if len(cells) == width and all(number(cell, ".") is None for cell in cells):
            return cells
    return [f"column {at + 1}" for at in range(width)]


def _columns(
    names: Sequence[str], rows: Sequence[Sequence[str]], decimal: str, nulls: frozenset[str]
) -> list[Column]:
    columns: list[Column] = []
    for index, name in enumerate(names):
        cells = [row[index] if index < len(row) else "" for row in rows]
        read = [number(cell, decimal, nulls) for cell in cells]
        empty = sum(value is not None and math.isnan(value) for value in read)
        wrong = sum(value is None for value in read)
        is_number = wrong <= (1 - _MOSTLY) * max(len(read) - empty, 1) and empty < len(read)
        samples = [cell for cell in cells[:_LOOKED_AT] if cell][:SAMPLES]
        columns.append(
            Column(
                index=index,
                name=_unused(one_line(name, 80) or f"column {index + 1}", [each.name for each in columns]),
                dtype="number" if is_number else "text",
                samples=tuple(one_line(sample, 80) for sample in samples),
                nulls=empty + (wrong if is_number else 0),
                values=[math.nan if value is None else value for value in read] if is_number else [],
            )
        )
    return columns


def _unused(name: str, taken: Sequence[str]) -> str:
    return name if name not in taken else f"{name} ({len(taken) + 1})"
