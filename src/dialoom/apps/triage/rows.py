"""Files of tickets and of earlier cases: lines of JSON or one array of it, in UTF-8, UTF-16 or GB18030.

Such files are exports of other programs: a row that cannot be used is left out and told, the others count.
"""

import codecs
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final, Generic, TypeVar

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line

MAX_BYTES: Final = 64 * 1024 * 1024
MAX_ROWS: Final = 20_000
MAX_ID: Final = 200
MAX_TEXT: Final = 100_000
"""Characters of one field. A longer text is no ticket but a log file that somebody attached."""
MAX_TOLD: Final = 10
_CHINESE: Final = "gb18030"
_WIDE: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_Id = Annotated[str, msgspec.Meta(max_length=MAX_ID)] | int
_Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """What a customer wrote."""

    id: str
    text: str


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that was solved before."""

    id: str
    category: str
    title: str
    text: str
    resolution: str


class LeftOut(msgspec.Struct, frozen=True):
    """A row that is not used. `number` counts lines, or the items of an array, from 1."""

    number: int
    why: str


Row = TypeVar("Row", Ticket, Case)


class Rows(msgspec.Struct, Generic[Row], frozen=True):
    """What the file `name` holds, in its order, and what of it cannot be used."""

    name: str
    rows: tuple[Row, ...]
    left_out: tuple[LeftOut, ...]

    def warnings(self) -> list[str]:
        """Return a line for each of the first rows that are left out, and one for how many more there are."""
        told = [f"{self.name}:{each.number} is left out: {each.why}" for each in self.left_out[:MAX_TOLD]]
        more = len(self.left_out) - len(told)
        return [*told, f"{self.name}: {more} more rows are left out"] if more else told

    def nothing(self, wanted: str) -> str:
        """Say that no row is usable, and that each should hold what is `wanted`."""
        first = f" (row {self.left_out[0].number}: {self.left_out[0].why})" if self.left_out else ""
        return f"{self.name} holds nothing usable{first}; write one JSON object with {wanted} on each line"


def read_tickets(path: Path) -> Rows[Ticket]:
    """Read the tickets of a file. Raises `UsageError` when it cannot be read at all."""
    return _rows(path, _TicketRow, _ticket)


def read_cases(path: Path) -> Rows[Case]:
    """Read the cases of a file. Raises `UsageError` when it cannot be read at all."""
    return _rows(path, _CaseRow, _case)


class _TicketRow(msgspec.Struct, frozen=True):
    id: _Id
    text: _Text


class _CaseRow(msgspec.Struct, frozen=True):
    id: _Id
    category: Annotated[str, msgspec.Meta(max_length=MAX_ID)]
    title: _Text
    text: _Text
    resolution: _Text


_Read = TypeVar("_Read", _TicketRow, _CaseRow)


def _ticket(row: _TicketRow) -> Ticket:
    return Ticket(id=_worded("id", str(row.id)), text=_worded("text", row.text))


def _case(row: _CaseRow) -> Case:
    return Case(
        id=_worded("id", str(row.id)),
        category=_worded("category", row.category),
        title=row.title.strip(),
        text=_worded("text", row.text),
        resolution=_worded("resolution", row.resolution),
    )


def _worded(name: str, text: str) -> str:
    text = text.strip()
    if not text:
        raise ValueError(f"{name} is empty")
    return text


def _rows(path: Path, kind: type[_Read], make: Callable[[_Read], Row]) -> Rows[Row]:
    name = one_line(str(path))
    rows: dict[str, Row] = {}
    left_out: list[LeftOut] = []
    decoder = msgspec.json.Decoder(kind)
    for number, item in enumerate(_items(name, _bytes(path, name)), start=1):
        if not item.strip():
            continue
        try:
            row = make(decoder.decode(item))
            if row.id in rows:
                raise ValueError(f"the id {one_line(row.id, 40)!r} was there before")
        except (ValueError, RecursionError) as error:  # also what UTF-8 and msgspec raise
            left_out.append(LeftOut(number, one_line(str(error))))
            continue
        rows[row.id] = row
        if len(rows) > MAX_ROWS:
            raise UsageError(f"{name} holds more than {MAX_ROWS} rows; split it")
    return Rows(name, tuple(rows.values()), tuple(left_out))


def _bytes(path: Path, name: str) -> bytes:
    try:
        if not (path.is_file() or path.is_fifo()):
            raise UsageError(f"{_no_file(path, name)}; name one with a JSON object on each line")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}; check the file") from error
    if len(data) > MAX_BYTES:
        raise UsageError(f"{name} is larger than {MAX_BYTES // 1024**2} MiB; split it")
    return data


def _no_file(path: Path, name: str) -> str:
    if path.is_dir():
        return f"{name} is a folder, not a file"
    return f"{name} is a device, not a file" if path.exists() else f"there is no file {name}"


def _items(name: str, data: bytes) -> Iterable[bytes]:
    """Return the rows as JSON in UTF-8, not looked at yet."""
    data = _narrow(name, data).removeprefix(codecs.BOM_UTF8)
    if data.lstrip()[:1] != b"[":
        return _lines(data)
    try:
        return map(bytes, msgspec.json.decode(_whole(data), type=list[msgspec.Raw]))
    except (ValueError, RecursionError) as error:
        told = one_line(str(error))
        raise UsageError(f"{name} begins like a JSON array and is none: {told}; mend it") from error


def _narrow(name: str, data: bytes) -> bytes:
    """Return UTF-16 that is marked as such in UTF-8. Refuse other wide letters: no line could be read."""
    try:
        if data.startswith(_WIDE):
            data = data.decode("utf-16").encode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} begins like UTF-16 and is none; save it as UTF-8") from error
    if b"\0" in data[:2]:
        raise UsageError(f"{name} is not UTF-8, GB18030 or marked UTF-16; save it as UTF-8")
    return data


def _whole(data: bytes) -> bytes:
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode(_CHINESE).encode()
    return data


def _lines(data: bytes) -> Iterator[bytes]:
    """Return lines in UTF-8. A file is in one encoding, that of most of its lines; the others are torn."""
    lines = data.splitlines()
    foreign = [line for line in lines if not line.isascii()]
    chinese = sum(not _reads_as(line, "utf-8") and _reads_as(line, _CHINESE) for line in foreign)
    if 2 * chinese <= len(foreign):
        return iter(lines)
    return (line.decode(_CHINESE).encode() if _reads_as(line, _CHINESE) else line for line in lines)


def _reads_as(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
