"""A passage cut into what can be quoted by itself: sentences, list items, and rows of a table."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import Literal

import msgspec

from dialoom.llm.json_values import fields_of
from dialoom.llm.offline.tables import TABLE_RULE, cells_of, columns_of, is_row

UnitKind = Literal["sentence", "heading", "row"]

MAX_UNITS = 2_000
MAX_UNIT_CHARS = 480
_FULL_LINE = 0.92
"""The share of the widest line that a wrapped line fills at least, with the word that went to the next."""

_ITEM = re.compile(r"\s*(?:[-*•·‣]|\(?\d{1,3}[.)、]|[a-z]\))\s+")
_CLAUSE = re.compile(r"\d{1,2}(?:\.\d{1,2})+\s")
_NUMBERED = re.compile(r"\d{1,3}[.)、]\s+")
_STAMP = re.compile(r"\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d")
_FIELD = re.compile(r"\s*[^\s:：][^:：]{0,39}[:：](?=\s|[^\s/])")
# possessive repeats: a run of marks is read once, however long a hostile text makes it
_SENTENCE = re.compile(
    r".+?(?:[.!?][\"'”’)]*+(?=\s++[\"'“‘(\[]?[^\sa-z])|[。！？；]++[\"'”’」』）]*+|$)", re.DOTALL
)
_CLOSERS = "\"'”’)」』）"
_BLANKS = re.compile(r"\s+")
_REFERENCE = re.compile(r"\[(\d+)\]")


class Unit(msgspec.Struct, frozen=True):
    """One quotable piece; `heading` is the title it stands under, empty when there is none.

    `is_listed` says that it is an item of a list or a row of a table, which may mean its contrary when it is
    read by itself; `lead` is what such a one stands under: the words before the list, or the title.
    `named` is a row of a table with the names of its columns.
    """

    text: str
    kind: UnitKind
    heading: str = ""
    is_listed: bool = False
    lead: str = ""
    named: str = ""

    @property
    def asks(self) -> bool:
        return self.text.endswith(("?", "？"))

    @property
    def leads_on(self) -> bool:
        """Whether the piece only announces the next one: a title, a question, words before a list."""
        return self.kind == "heading" or self.asks or self.text.endswith((":", "："))


def cut(passage: str) -> list[Unit]:
    """Return the units of a passage in their order, at most `MAX_UNITS`."""
    units: list[Unit] = []
    heading, lead = "", ""
    for number, block in enumerate(re.split(r"\n\s*\n", passage)):
        for unit in _units_of(block, is_first=not number):
            if unit.kind == "heading":
                heading = unit.text
                lead = lead if unit.is_listed else heading  # the names of columns are in every row
            elif not unit.is_listed:
                lead = unit.text if unit.leads_on else heading
            placed = msgspec.structs.replace(unit, heading="" if unit.kind == "heading" else heading)
            units.append(msgspec.structs.replace(placed, lead=lead) if _hangs(unit) else placed)
            if len(units) == MAX_UNITS:
                return units
    if "#" not in passage and all(unit.kind == "heading" for unit in units):
        # nothing stands under any of them: they are notes, one a line, and no titles
        return [Unit(unit.text, "sentence") for unit in units]
    return units


def _hangs(unit: Unit) -> bool:
    return unit.is_listed and unit.kind != "heading"


def _units_of(block: str, *, is_first: bool) -> Iterator[Unit]:
    written = [line for line in block.split("\n") if line.strip()]
    lines = [line for line in written if not TABLE_RULE.fullmatch(line)]
    if len(lines) > 1 and all(_FIELD.match(line) and not _starts_anew(line) for line in lines):
        yield Unit(tidy("; ".join(line.strip().rstrip(";；") for line in lines)), "row")
        return
    whole = _unwrapped(lines)
    columns = columns_of(written, is_first=is_first)
    is_inside = False
    for line, below in zip_longest(whole, whole[1:], fillvalue=""):
        if line.lstrip().startswith("#"):
            yield Unit(tidy(line.lstrip("# \t")), "heading")
        elif line.lstrip().startswith("{"):
            yield Unit(tidy(_record(line)), "row")
        elif is_stamped(line):
            yield Unit(tidy(line), "row")
        elif is_row(line):
            yield _row(line, columns)
        else:
            cells = is_inside and not _is_said(line)
            found = list(_sentences(line, leads=_leads(line, below), cells=cells))
            yield from found
            # a title in the middle of a block, without a number: the columns of a table that lost its lines
            is_inside = cells or (line != whole[0] and _NUMBERED.match(line) is None and _are_titles(found))


def _is_said(line: str) -> bool:
    return line.rstrip().endswith(tuple(".!?。！？")) or _starts_anew(line)


def _are_titles(units: Sequence[Unit]) -> bool:
    return all(unit.kind == "heading" for unit in units)


def _row(line: str, columns: tuple[str, ...]) -> Unit:
    cells = cells_of(line)
    words = tidy("; ".join(cells))
    if cells == columns:
        return Unit(words, "heading", is_listed=True)
    if len(cells) == len(columns):
        told = (
            f"{name}: {cell}" if name else cell for name, cell in zip(columns, cells, strict=True) if cell
        )
        return Unit(words, "row", is_listed=True, named=tidy("; ".join(told)))
    return Unit(words, "row", is_listed=True, named=tidy(": ".join(cells)) if len(cells) == 2 else "")


def _leads(line: str, below: str) -> bool:
    """Whether a numbered line is no item of a list but the title of what follows."""
    return bool(_NUMBERED.match(line) and below) and not _starts_anew(below)


def _unwrapped(lines: list[str]) -> list[str]:
    """Join the lines of a paragraph that was wrapped; a list item, row or title keeps its own line."""
    whole: list[str] = []
    widest = max(map(len, lines), default=0)
    for before, line in pairwise(["", *lines]):
        if whole and _continues(before, line, widest=widest):
            gap = "" if ord(whole[-1].rstrip()[-1]) > 0x2E80 else " "
            whole[-1] = whole[-1].rstrip() + gap + line.strip()
        else:
            whole.append(line)
    return whole


def _continues(before: str, line: str, *, widest: int) -> bool:
    if _starts_anew(before) or _starts_anew(line) or before.rstrip().endswith(tuple(".!?。！？：:；;")):
        return False
    word = line.lstrip().split(maxsplit=1)[0]
    if word[0].isupper() and len(before) + len(word) < _FULL_LINE * widest:
        return False  # it would have stood on the line before: this is a line of its own
    return len(before) >= 40 or word[0].islower()


def _starts_anew(line: str) -> bool:
    marked = line[:1].isspace() or line[:1] in {"#", "{"}
    return marked or is_row(line) or is_stamped(line) or bool(_ITEM.match(line))


def _sentences(line: str, *, leads: bool, cells: bool) -> Iterator[Unit]:
    item = _ITEM.match(line)
    found = _SENTENCE.findall(line[item.end() :] if item else line)
    is_set_in = line[:1] in {" ", "\t"} and len(found) == 1  # more of them are a paragraph
    is_listed = bool(cells or item or _CLAUSE.match(line) or is_set_in)
    for sentence in found:
        words = tidy(sentence)
        if not words:
            continue
        if not cells and (leads or not item) and _is_title(words):
            yield Unit(words, "heading")
        else:
            yield Unit(words, "sentence", is_listed=is_listed)


def _is_title(words: str) -> bool:
    """Whether words stand above a text rather than in it: few, without a number, a colon or a full stop."""
    said = words.rstrip(_CLOSERS)
    told = (
        not said or said[-1] in ".!?。！？；;,，、" or any(char in ":：" or char.isdigit() for char in said)
    )
    return not told and len(words) <= 60 and len(words.split()) <= 6


def _record(line: str) -> str:
    try:
        fields = fields_of(msgspec.json.decode(line))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return line
    return "; ".join(f"{name}: {value}" for name, value in fields.items()) or line


def is_stamped(text: str) -> bool:
    """Whether a line begins with a date or a time, as those of a log do."""
    return _STAMP.match(text) is not None


def tidy(text: str) -> str:
    """Return one line without marks of its own that would read as citations."""
    line = _REFERENCE.sub(r"(\1)", _BLANKS.sub(" ", text).strip("* "))
    return line if len(line) <= MAX_UNIT_CHARS else line[: MAX_UNIT_CHARS - 1].rstrip() + "…"
