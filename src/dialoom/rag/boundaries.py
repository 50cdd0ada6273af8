"""Where a text may be cut: ends of sections, paragraphs, sentences, clauses, words, and whole characters."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import msgspec

_CLOSERS = "\"'”’」』）】》〉)\\]"
_PARAGRAPH = re.compile(r"\n[ \t\u3000]*\n\s*")
# Chinese ends need no space after them; a Latin one does, and "3.5" or "v1.2" has none. A run of dots is
# tried from its first one only: tried from each of them it would take time by the square.
_SENTENCE = re.compile(rf"[。！？…；][。！？…]*[{_CLOSERS}]*|(?<![.!?])[.!?]+[{_CLOSERS}]*+(?=\s)|\n")
_CLAUSE = re.compile(rf"[，、：]+[{_CLOSERS}]*|[,;:][{_CLOSERS}]*+(?=\s)")
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|No|Fig|Sec|approx)|\b[A-Za-z]|\.[A-Za-z])\.$"
)
# Marks that may not start a line in Chinese typesetting, and those that may not end one.
_NO_START = frozenset("。，、；：！？…”’」』）】》〉)]}.,;:!?%°")
_NO_END = frozenset("“‘「『（【《〈([{")
_PLAIN = re.compile(r"[\x20-\x7e\n\u3001-\u3020\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uff01-\uff5e]")
_CLUSTER_REACH = 64
_FIRST_WIDE = "\u2e80"  # from here on scripts that set no spaces between words


class Boundaries(msgspec.Struct, frozen=True):
    """Offsets at which a window may end, each list in order."""

    sections: list[int]
    paragraphs: list[int]
    sentences: list[int]
    clauses: list[int]


def find_boundaries(text: str, heading_starts: Sequence[int], *, start: int, stop: int) -> Boundaries:
    """One pass per kind over `text[start:stop]`; linear in its length. `heading_starts` are in order."""
    return Boundaries(
        sections=list(
            heading_starts[bisect_right(heading_starts, start) : bisect_left(heading_starts, stop)]
        ),
        paragraphs=[found.end() for found in _PARAGRAPH.finditer(text, start, stop)],
        sentences=[
            found.end()
            for found in _SENTENCE.finditer(text, start, stop)
            if found[0] != "." or not _ABBREVIATION.search(text, max(start, found.end() - 8), found.end())
        ],
        clauses=[found.end() for found in _CLAUSE.finditer(text, start, stop)],
    )


def safe_cut(text: str, place: int, *, floor: int) -> int:
    """The last place at or before `place` between two whole characters; `floor` when there is none.

    `floor` itself must be such a place.
    """
    if _is_plain_pair(text, place):
        return place
    import regex  # knows grapheme clusters; only text beyond plain letters comes here

    sure = place - 1
    while sure > max(floor, place - _CLUSTER_REACH) and not _is_plain_pair(text, sure):
        sure -= 1
    if not _is_plain_pair(text, sure):
        sure = floor
    cut = sure
    for cluster in regex.finditer(r"\X", text[sure : place + _CLUSTER_REACH]):
        if sure + cluster.end() > place:
            break
        cut = sure + cluster.end()
    return cut


def is_safe(text: str, place: int, *, floor: int) -> bool:
    """Whether `place` lies between two whole characters; `floor` must be such a place before it."""
    return safe_cut(text, place, floor=floor) == place


def word_cut(text: str, limit: int, *, least: int, floor: int) -> int:
    """The best end, from `least` to `limit`, of a window from `floor` that has no better one.

    After the last word, or between two Chinese characters; `limit` itself where there is neither.
    """
    for place in range(limit, least - 1, -1):
        if _parts_words(text, place) and is_safe(text, place, floor=floor):
            return place
    return limit


def word_start(text: str, place: int, end: int, *, floor: int) -> int:
    """The first place from `place` to before `end` where a word starts, in a window that began at `floor`.

    The first whole character where no word does, and `end` when there is none of these either.
    """
    for start in range(place, end):
        if _parts_words(text, start) and not text[start].isspace() and is_safe(text, start, floor=floor):
            return start
    return next((start for start in range(place, end) if is_safe(text, start, floor=floor)), end)


def _parts_words(text: str, place: int) -> bool:
    if not 0 < place < len(text):
        return True
    before, after = text[place - 1], text[place]
    if before.isspace() or after.isspace():
        return True
    return min(before, after) >= _FIRST_WIDE and before not in _NO_END and after not in _NO_START


def _is_plain_pair(text: str, place: int) -> bool:
    """Whether the characters around `place` are such that no cluster spans it."""
    if not 0 < place < len(text):
        return True
    return bool(_PLAIN.match(text, place - 1) and _PLAIN.match(text, place))
