"""CSV and TSV files: each row becomes readable lines, and no row is lost for being ragged."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from dialoom.rag.blank import is_blank
from dialoom.rag.errors import LoadError
from dialoom.rag.loaders.decode import decode
from dialoom.rag.loaders.loader import Loaded, Source
from dialoom.rag.loaders.plain import finish
from dialoom.rag.types import Document, LoadWarning, Metadata, RowSpan

_DELIMITERS = ",\t;|"
_SNIFFED_CHARACTERS = 65_536
_SNIFFED_ROWS = 50
_MOST_COLUMNS = 10_000
_BETWEEN_ROWS = "\n\n"


class CsvLoader:
    """One document per file. A row is a block of `column: value` lines, its place kept in `Document.rows`.

    The first row names the columns unless it holds numbers or repeats itself; metadata has `columns` and
    `rows`. Rows with too few or too many cells are kept and counted in the warning `ragged`.
    """

    def load(self, source: Source) -> Loaded:
        decoded = decode(source.data, source=source.id, declared=source.charset)
        delimiter = sniff_delimiter(decoded.text[:_SNIFFED_CHARACTERS])
        table = _Table(source)
        try:
            for cells in csv.reader(io.StringIO(decoded.text, newline=""), delimiter=delimiter):
                table.add(cells)
        except csv.Error as error:
            message = f"{source.id} has a cell of over {csv.field_size_limit()} characters; split it"
            raise LoadError("limit", message, source=source.id) from error
        loaded = finish(source, table.document(), decoded)
        return msgspec.structs.replace(loaded, warnings=loaded.warnings + table.warnings())


def sniff_delimiter(sample: str) -> str:
    """The delimiter that cuts most rows of `sample` into the same number of cells, more than one."""

    def fit(delimiter: str) -> tuple[float, int]:
        rows = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
        widths = Counter[int]()
        try:
            for row, _ in zip(rows, range(_SNIFFED_ROWS), strict=False):
                widths[len(row)] += bool(row)
        except csv.Error:
            return 0.0, 0
        width, count = max(widths.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
        return (count / widths.total(), width) if width > 1 else (0.0, 0)

    return max(_DELIMITERS, key=fit)


class _Table:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._columns: list[str] | None = None
        self._blocks: list[str] = []
        self._rows: list[RowSpan] = []
        self._length = 0
        self._number = 0
        self._ragged: list[int] = []

    def add(self, cells: Sequence[str]) -> None:
        if not any(cell.strip() for cell in cells):
            return
        if len(cells) > _MOST_COLUMNS:
            message = f"{self._source.id} has a row of {len(cells)} cells; at most {_MOST_COLUMNS} are read"
            raise LoadError("limit", message, source=self._source.id)
        if self._columns is None:
            named = _is_header(cells)
            self._columns = [cell.strip() if named else "" for cell in cells]
            if named:
                return
        self._number += 1
        if len(cells) != len(self._columns):
            self._ragged.append(self._number)
        self._write(cells)

    def _write(self, cells: Sequence[str]) -> None:
        block = "\n".join(
            f"{self._name(place)}: {cell.strip()}" for place, cell in enumerate(cells) if not is_blank(cell)
        )
        self._source.check_extracted(self._length + len(block))
        if self._number % 1_000 == 0:
            self._source.check_time()
        self._rows.append(RowSpan(self._number, self._length, self._length + len(block)))
        self._blocks.append(block)
        self._length += len(block) + len(_BETWEEN_ROWS)

    def _name(self, place: int) -> str:
        columns = self._columns or []
        return (columns[place] if place < len(columns) else "") or f"column {place + 1}"

    def document(self) -> Document:
        names = [self._name(place) for place in range(len(self._columns or []))]
        metadata: Metadata = {"columns": names, "rows": len(self._rows)}
        text = _BETWEEN_ROWS.join(self._blocks)
        return Document(id=self._source.id, text=text, rows=tuple(self._rows), metadata=metadata)

    def warnings(self) -> list[LoadWarning]:
        if not self._ragged:
            return []
        first = ", ".join(map(str, self._ragged[:5])) + (", ..." if len(self._ragged) > 5 else "")
        message = (
            f"{len(self._ragged)} rows of {self._source.id} have more or fewer cells than the first ({first})"
        )
        return [LoadWarning("ragged", message, self._source.id)]


def _is_header(cells: Iterable[str]) -> bool:
    names = [cell.strip() for cell in cells]
    filled = [name for name in names if name]
    return len(set(filled)) == len(filled) and not any(_is_number(name) for name in filled)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "").removesuffix("%"))
    except ValueError:
        return False
    return True
