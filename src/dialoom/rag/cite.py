"""Citations in an answer: `[1]`, `[1, 3]`, `[2-4]`, `[^1]`, 【1】 and their kin; code and links hold none."""

import re
import unicodedata

_OPEN = "[【［"
_CLOSE = "]】］"
_LONGEST_HELD = 24
BRACKET = re.compile(r"(?<!\\)[\[【［]([^\[\]【】［］\n]{1,60})[\]】］](?!\()")
INNER = (
    r"\s*(?:sources?|来源|资料)?\s*\^?"
    r"(\d{1,6}(?:\s*[-–—~]\s*\d{1,6})?(?:\s*[,;、]\s*\d{1,6}(?:\s*[-–—~]\s*\d{1,6})?)*)"
    r"\s*(?:†.*)?"
)
"""What stands in a bracket that cites, once it is NFKC; its group holds the numbers. Case does not count."""
_CITES = re.compile(INNER, re.IGNORECASE)
_NUMBERS = re.compile(r"(\d+)(?:\s*[-–—~]\s*(\d+))?")
FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_BACKTICKS = re.compile(r"`+")


def parse_citations(answer: str, sources: int) -> list[int]:
    """The numbers an answer cites, from 1 to `sources`, each once, in the order of first use."""
    parser = CitationParser(sources)
    parser.feed(answer)
    parser.close()
    return parser.cited


class CitationParser:
    """Reads an answer as it streams; any cut of the text into deltas gives the same citations.

    `feed` returns the text that may be shown now: all of it except an open bracket of up to 24 characters,
    so that a reader never sees half a citation. `close` returns what is still held back.
    """

    def __init__(self, sources: int) -> None:
        self._sources = sources
        self._cited: dict[int, None] = {}
        self._line: list[str] = []
        self._fence = ""
        self._held = ""

    @property
    def cited(self) -> list[int]:
        """What is cited so far; the line that is still open is read as if it ended here."""
        cited = dict(self._cited)
        if not self._fence:
            cited |= dict.fromkeys(self._read("".join(self._line)))
        return list(cited)

    def feed(self, delta: str) -> str:
        """Take the next piece of the answer; return what can be shown of it and of what was held."""
        *lines, rest = delta.split("\n")
        for line in lines:
            self._line.append(line)
            self._end_line()
        self._line.append(rest)
        return self._hold(self._held + delta)

    def close(self) -> str:
        """End the answer; return the rest of it."""
        self._end_line()
        held, self._held = self._held, ""
        return held

    def _hold(self, text: str) -> str:
        """Keep back a bracket that is open at the end of `text`; return what comes before it."""
        start = max(map(text.rfind, _OPEN))
        tail = text[start:] if start >= 0 else ""
        is_open = tail and len(tail) <= _LONGEST_HELD and not any(mark in tail for mark in _CLOSE + "\n")
        self._held = tail if is_open else ""
        return text[: len(text) - len(self._held)]

    def _end_line(self) -> None:
        line = "".join(self._line)
        self._line = []
        if self._fence:
            mark = line.strip()
            if len(mark) >= len(self._fence) and not mark.strip(self._fence[0]):
                self._fence = ""
        elif opened := FENCE.match(line):
            self._fence = opened[1]
        else:
            self._cited |= dict.fromkeys(self._read(line))

    def _read(self, line: str) -> list[int]:
        line = _without_code(line)
        numbers: list[int] = []
        for bracket in BRACKET.finditer(line):
            numbers += cited_in(bracket[1], self._sources)
        return numbers


def cited_in(inner: str, sources: int) -> list[int]:
    """The numbers, from 1 to `sources`, that a bracket with `inner` in it cites."""
    found = _CITES.fullmatch(unicodedata.normalize("NFKC", inner))
    spans = _NUMBERS.findall(found[1] if found else "")
    return [
        number
        for first, last in spans
        for number in range(max(int(first), 1), min(int(last or first), sources) + 1)
    ]


def _without_code(line: str) -> str:
    """The line with its code spans taken out: from a run of backticks to the next run of equal length."""
    if "`" not in line:
        return line
    runs = [(run.start(), run.end()) for run in _BACKTICKS.finditer(line)]
    following: dict[int, int] = {}
    closer: list[int | None] = [None] * len(runs)
    for place in reversed(range(len(runs))):
        length = runs[place][1] - runs[place][0]
        closer[place] = following.get(length)
        following[length] = place
    kept: list[str] = []
    end = place = 0
    while place < len(runs):
        last = closer[place]
        if last is not None:
            kept.append(line[end : runs[place][0]])
            end, place = runs[last][1], last
        place += 1
    return " ".join([*kept, line[end:]])
