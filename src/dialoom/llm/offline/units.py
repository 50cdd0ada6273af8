"""A passage cut into what can be quoted by itself: sentences, list items, and rows of a table."""

import re
from collections.abc import Iterator
from itertools import pairwise, zip_longest
from typing import Literal

import msgspec

from dialoom.llm.json_values import fields_of

UnitKind = Literal["sentence", "heading", "row"]

MAX_UNITS = 2_000
MAX_UNIT_CHARS = 480

_ITEM = re.compile(r"\s*(?:[-*•·‣]|\(?\d{1,3}[.)、]|[a-z]\))\s+")
_NUMBERED = re.compile(r"\d{1,3}[.)、]\s+")
_STAMP = re.compile(r"\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d")
_FIELD = re.compile(r"\s*[^\s:：][^:：]{0,39}[:：](?=\s|[^\s/])")
# possessive repeats: a run of marks is read once, however long a hostile text makes it
_SENTENCE = re.compile(
    r".+?(?:[.!?][\"'”’)]*+(?=\s++[\"'“‘(\[]?[^\sa-z])|[。！？；]++[\"'”’」』）]*+|$)", re.DOTALL
)
_CLOSERS = "\"'”’)」』）"
_TABLE_RULE = re.compile(r"[\s|:+=-]+")
_BLANKS = re.compile(r"\s+")
_REFERENCE = re.compile(r"\[(\d+)\]")


class Unit(msgspec.Struct, frozen=True):
    """One quotable piece; `heading` is the title it stands under, empty when there is none."""

    text: str
    kind: UnitKind
    heading: str = ""

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
    heading = ""
    for block in re.split(r"\n\s*\n", passage):
        for unit in _units_of(block):
            if unit.kind == "heading":
                heading = unit.text
            units.append(msgspec.structs.replace(unit, heading="" if unit.kind == "heading" else heading))
            if len(units) == MAX_UNITS:
                return units
    if "#" not in passage and all(unit.kind == "heading" for unit in units):
        # nothing stands under any of them: they are notes, one a line, and no titles
        return [Unit(unit.text, "sentence") for unit in units]
    return units


def _units_of(block: str) -> Iterator[Unit]:
    written = [line for line in block.split("\n") if line.strip()]
    lines = [line for line in written if not _TABLE_RULE.fullmatch(line)]
    columns = {above for above, line in pairwise(written) if "|" in line and _TABLE_RULE.fullmatch(line)}
    if len(lines) > 1 and all(_FIELD.match(line) and not _starts_anew(line) for line in lines):
        yield Unit(tidy("; ".join(line.strip().rstrip(";；") for line in lines)), "row")
        return
    whole = _unwrapped(lines)
    for line, below in zip_longest(whole, whole[1:], fillvalue=""):
        if line.lstrip().startswith("#"):
            yield Unit(tidy(line.lstrip("# \t")), "heading")
        elif line.lstrip().startswith("{"):
            yield Unit(tidy(_record(line)), "row")
        elif is_stamped(line):
            yield Unit(tidy(line), "row")
        elif _is_row(line):
            cells = "; ".join(cell.strip() for cell in line.strip().strip("|").split("|"))
            yield Unit(tidy(cells), "heading" if line in columns else "row")
        else:
            yield from _sentences(line, leads=_leads(line, below))


def _leads(line: str, below: str) -> bool:
    """Whether a numbered line is no item of a list but the title of what follows."""
    return bool(_NUMBERED.match(line) and below) and not _starts_anew(below)


def _unwrapped(lines: list[str]) -> list[str]:
    """Join the lines of a paragraph that was wrapped; a list item, row or title keeps its own line."""
    whole: list[str] = []
    for line in lines:
        if whole and _continues(whole[-1], line):
            gap = "" if ord(whole[-1].rstrip()[-1]) > 0x2E80 else " "
            whole[-1] = whole[-1].rstrip() + gap + line.strip()
        else:
            whole.append(line)
    return whole


def _continues(before: str, line: str) -> bool:
    if _starts_anew(before) or _starts_anew(line) or before.rstrip().endswith(tuple(".!?。！？：:；;")):
        return False
    longest = before.rsplit("\n", 1)[-1]
    return len(longest) >= 40 or line.lstrip()[:1].islower()


def _starts_anew(line: str) -> bool:
    marked = line[:1].isspace() or line[:1] in {"#", "{"}
    return marked or _is_row(line) or is_stamped(line) or bool(_ITEM.match(line))


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|") or " | " in line


def _sentences(line: str, *, leads: bool) -> Iterator[Unit]:
    item = _ITEM.match(line)
    for sentence in _SENTENCE.findall(line[item.end() :] if item else line):
        words = tidy(sentence)
        if words:
            yield Unit(words, "heading" if (leads or not item) and _is_title(words) else "sentence")


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
