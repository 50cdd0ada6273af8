"""The text of a Word document, from its XML events. Knows nothing of files."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, assert_never

from dialoom.rag.types import Heading

_WORD = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main ",
    "http://purl.oclc.org/ooxml/wordprocessingml/main ",
)
_MATH = (
    "http://schemas.openxmlformats.org/officeDocument/2006/math ",
    "http://purl.oclc.org/ooxml/officeDocument/math ",
)
# A text box is written twice, as a choice and as the fallback for old readers; the choice is read.
_FALLBACK = "http://schemas.openxmlformats.org/markup-compatibility/2006 Fallback"
_DROPPED = frozenset({"del", "moveFrom"})
_SPACES = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_CONTAINERS = frozenset({"p", "tr", "tc"})
_LEVELS = frozenset("012345678")
_HEADING_NAME = re.compile(r"heading ([1-9])")


def local_name(name: str) -> str:
    """The name inside the WordprocessingML namespaces, or `""` for any other element."""
    for space in _WORD:
        if name.startswith(space):
            return name[len(space) :]
    return "t" if name.startswith(_MATH) and name.endswith(" t") else ""


def _value(attributes: Mapping[str, str]) -> str:
    return next((text for name, text in attributes.items() if local_name(name) == "val"), "")


class HeadingStyles:
    """Which paragraph styles are headings, and of which level, whatever the language of the program."""

    def __init__(self) -> None:
        self.levels: dict[str, int] = {}
        self._style = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        word = local_name(name)
        if word == "style":
            self._style = next((text for key, text in attributes.items() if local_name(key) == "styleId"), "")
        elif word == "name":
            value = _value(attributes).lower()
            if named := _HEADING_NAME.fullmatch(value):
                self.levels[self._style] = int(named[1])
            elif value == "title":
                self.levels[self._style] = 1
        elif word == "outlineLvl" and _value(attributes) in _LEVELS:
            self.levels.setdefault(self._style, int(_value(attributes)) + 1)

    def end(self, name: str) -> None:
        if local_name(name) == "style":
            self._style = ""


class _Paragraph:
    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.level = 0
        self.listed = False
        self.boxes: list[str] = []


class _Row:
    def __init__(self) -> None:
        self.cells: list[str] = []
        self.nested: list[str] = []


class _Cell:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.rows: list[str] = []


_Kind = Literal["text", "list", "row"]


class WordText:
    """Collects the text of the parts it is fed, in reading order.

    A table row is one line, its cells set apart by ` | `; the rows of a nested table follow the row that
    holds it; a text box follows the paragraph it is anchored in.
    """

    def __init__(self, levels: Mapping[str, int]) -> None:
        self._levels = levels
        self._blocks: list[str] = []
        self._length = 0
        self._last: _Kind = "text"
        self._headings: list[Heading] = []
        self._open: list[_Paragraph | _Row | _Cell] = []
        self._muted = 0
        self._in_text = False

    def result(self) -> tuple[str, tuple[Heading, ...]]:
        """All the text so far, and its headings."""
        return "".join(self._blocks), tuple(self._headings)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        word = local_name(name)
        if self._muted or word in _DROPPED or name == _FALLBACK:
            self._muted += 1
        elif word == "p":
            self._open.append(_Paragraph())
        elif word == "tr":
            self._open.append(_Row())
        elif word == "tc":
            self._open.append(_Cell())
        elif word and self._open and isinstance(paragraph := self._open[-1], _Paragraph):
            self._inside(paragraph, word, attributes)

    def end(self, name: str) -> None:
        if self._muted:
            self._muted -= 1
            return
        word = local_name(name)
        if word == "t":
            self._in_text = False
        elif word in _CONTAINERS:
            self._close(self._open.pop())

    def characters(self, text: str) -> None:
        if self._in_text and not self._muted and isinstance(paragraph := self._open[-1], _Paragraph):
            paragraph.pieces.append(text)

    def _inside(self, paragraph: _Paragraph, word: str, attributes: Mapping[str, str]) -> None:
        if word == "t":
            self._in_text = True
        elif word in _SPACES and (
            word == "br" or not attributes
        ):  # a tab stop has attributes, a tab has none
            paragraph.pieces.append(_SPACES[word])
        elif word == "pStyle":
            paragraph.level = self._levels.get(_value(attributes), 0)
        elif word == "outlineLvl" and _value(attributes) in _LEVELS:
            paragraph.level = int(_value(attributes)) + 1
        elif word == "numPr":
            paragraph.listed = True

    def _close(self, ended: _Paragraph | _Row | _Cell) -> None:
        around = self._open[-1] if self._open else None
        match ended:
            case _Paragraph():
                self._close_paragraph(ended, around)
            case _Cell():
                if isinstance(around, _Row):
                    around.cells.append(" ".join(ended.lines))
                    around.nested.extend(ended.rows)
            case _Row():
                rows = [" | ".join(ended.cells).rstrip(), *ended.nested]
                if isinstance(around, _Cell):
                    around.rows.extend(rows)
                elif isinstance(around, _Paragraph):
                    around.boxes.extend(rows)
                else:
                    self._write(rows, "row")
            case _:
                assert_never(ended)

    def _close_paragraph(self, ended: _Paragraph, around: _Paragraph | _Row | _Cell | None) -> None:
        text = "".join(ended.pieces).strip()
        lines = [line for line in (text, *ended.boxes) if line]
        if isinstance(around, _Paragraph):
            around.boxes.extend(lines)
        elif isinstance(around, _Cell):
            around.lines.extend(lines)
        elif ended.level and text:
            self._write([text], "text", level=ended.level)
            self._write(ended.boxes, "text")
        elif ended.listed and text:
            self._write([f"- {text}"], "list")
            self._write(ended.boxes, "text")
        else:
            self._write(lines, "text")

    def _write(self, lines: Sequence[str], kind: _Kind, *, level: int = 0) -> None:
        for line in lines:
            if not line:
                continue
            if self._blocks:
                gap = "\n" if kind == self._last != "text" else "\n\n"
                self._blocks.append(gap)
                self._length += len(gap)
            if level:
                self._headings.append(Heading(min(level, 6), " ".join(line.split()), self._length))
            self._blocks.append(line)
            self._length += len(line)
            self._last = kind
