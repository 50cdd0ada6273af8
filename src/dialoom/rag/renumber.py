"""The citations of an answer numbered in the order in which they come, while it streams."""

import re
import unicodedata

import regex

from dialoom.rag.cite import FENCE, INNER, cited_in

_LONGEST_OPEN = 400
_SPECIAL = re.compile(r"[\n`\[【［]")
_WHOLE = re.compile(r"[\[【［]([^\[\]【】［］\n`]{1,60})[\]】］]")
_OPEN = re.compile(r"[\[【［]([^\[\]【】［］\n`]{0,60})")
_CITES = regex.compile(INNER, regex.IGNORECASE)
_MAYBE_FENCE = re.compile(r" {0,3}(`+|~+|)")
_TICKS = re.compile("`+")


class CitationNumbers:
    """Rewrites `[7] ... [2] ... [7]` as `[1] ... [2] ... [1]`; any cut into deltas gives the same text.

    `feed` returns what may be shown now. It holds back what later text decides: a bracket that can become a
    citation or the words of a link, and code that is open, for up to 400 characters of it. `close` returns
    the rest. What is in code or a link, and a bracket that cites no source, stays as it is.
    """

    def __init__(self, sources: int) -> None:
        self._sources = sources
        self._places: dict[int, int] = {}
        self._rest = ""
        self._fence = ""
        self._begins_line = True
        self._is_plain = False
        self._is_escaped = False

    @property
    def order(self) -> list[int]:
        """The numbers cited so far as they were written, each once: the first of them is now 1."""
        return list(self._places)

    def feed(self, delta: str) -> str:
        """Take the next piece of the answer; return what can be shown of it and of what was held."""
        self._rest += delta
        return self._decided(ended=False)

    def close(self) -> str:
        """End the answer; return the rest of it."""
        return self._decided(ended=True)

    def _decided(self, *, ended: bool) -> str:
        text, shown, at = self._rest, list[str](), 0
        while at < len(text):
            if self._begins_line and not self._begin_line(text, at, ended=ended):
                break
            found = _SPECIAL.search(text, at)
            end = found.start() if found else len(text)
            if end > at:
                self._is_escaped = text[end - 1] == "\\"
                shown.append(text[at:end])
                at = end
                continue
            size, said = self._special(text, at, ended=ended)
            if not size:
                break
            shown.append(said)
            at += size
        self._rest = text[at:]
        return "".join(shown)

    def _begin_line(self, text: str, at: int, *, ended: bool) -> bool:
        """Find out what kind of line begins at `at`; False when that cannot be told yet."""
        stop = text.find("\n", at, at + _LONGEST_OPEN)
        is_whole = stop >= 0 or ended or len(text) - at >= _LONGEST_OPEN
        line = text[at : stop if stop >= 0 else at + _LONGEST_OPEN]
        if not is_whole and self._may_be_fence(line):
            return False
        self._is_plain = bool(self._fence)
        closing = line.strip()
        if self._fence:
            if len(closing) >= len(self._fence) and not closing.strip(self._fence[0]):
                self._fence = ""
        elif opened := FENCE.match(line):
            self._fence, self._is_plain = opened[1], True
        self._begins_line = False
        return True

    def _may_be_fence(self, line: str) -> bool:
        """Whether more of a line that has begun like this can open a fence, or close the one that is open."""
        if self._fence:
            return not line.strip().strip(self._fence[0]).strip()
        mark = _MAYBE_FENCE.match(line)
        assert mark is not None  # it may be empty
        return mark.end() == len(line) or mark[1].startswith("```")

    def _special(self, text: str, at: int, *, ended: bool) -> tuple[int, str]:
        """How much of a line end, code or bracket at `at` is decided, and what is shown for it."""
        escaped, self._is_escaped = self._is_escaped, False
        if text[at] == "\n":
            self._begins_line = True
            return 1, "\n"
        if self._is_plain:
            return 1, text[at]
        if text[at] == "`":
            size = _code(text, at, ended=ended)
            return size, text[at : at + size]
        return (1, text[at]) if escaped else self._bracket(text, at, ended=ended)

    def _bracket(self, text: str, at: int, *, ended: bool) -> tuple[int, str]:
        whole = _WHOLE.match(text, at)
        if whole is None:
            opened = _OPEN.match(text, at)
            assert opened is not None  # there is a bracket at `at`
            inner = unicodedata.normalize("NFKC", opened[1])
            is_open = not ended and opened.end() == len(text)
            held = is_open and _CITES.fullmatch(inner, partial=True) is not None
            return (0, "") if held else (1, text[at])
        numbers = cited_in(whole[1], self._sources)
        if not numbers:
            return len(whole[0]), whole[0]
        if whole.end() == len(text) and not ended:
            return 0, ""  # a parenthesis may follow
        if text[whole.end() : whole.end() + 1] == "(":
            return len(whole[0]), whole[0]
        return len(whole[0]), self._renumbered(whole[0], numbers)

    def _renumbered(self, bracket: str, numbers: list[int]) -> str:
        places = [self._places.setdefault(number, len(self._places) + 1) for number in numbers]
        if places == numbers:
            return bracket
        inner = unicodedata.normalize("NFKC", bracket[1:-1])
        found = _CITES.fullmatch(inner)
        assert found is not None  # it cites
        comma = "、" if "、" in inner else ", "
        start, end = found.span(1)
        listed = comma.join(map(str, dict.fromkeys(places)))
        return f"{bracket[0]}{inner[:start]}{listed}{inner[end:]}{bracket[-1]}"


def renumbered(answer: str, sources: int) -> tuple[str, list[int]]:
    """A whole answer with its citations numbered anew, and the numbers that they had, in order."""
    numbers = CitationNumbers(sources)
    return numbers.feed(answer) + numbers.close(), numbers.order


def _code(text: str, at: int, *, ended: bool) -> int:
    """How many characters from the backticks at `at` are code or plain ticks; 0 when later text decides."""
    run = _TICKS.match(text, at)
    assert run is not None  # there is one
    size = len(run[0])
    stop = text.find("\n", at, at + _LONGEST_OPEN)
    last = stop if stop >= 0 else min(len(text), at + _LONGEST_OPEN)
    is_whole = ended or stop >= 0 or len(text) > last
    for closing in _TICKS.finditer(text, run.end(), last):
        if len(closing[0]) == size and (closing.end() < last or is_whole):
            return closing.end() - at
    return size if is_whole else 0
