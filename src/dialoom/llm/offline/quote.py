"""The answer that numbered passages themselves hold: their best sentences, each with its number."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from dialoom.llm.messages import SourcePart
from dialoom.llm.offline.units import Unit, cut
from dialoom.llm.offline.words import is_pair, terms, weight

MAX_QUOTES = 3
LEAST_COVERAGE = 0.2
"""The share of what a question asks about that a sentence must touch to count as an answer."""
_NEXT_BEST = 0.65
_MOST_ROWS = 8
_HEADING_SHARE = 0.6
_RANK_STEP = 0.04
_SEAM_SHARE = 0.3
_COMPANION = 0.6
_MAX_QUOTE_CHARS = 420
_SHORT_BYTES = 24
_ASKS_A_NUMBER = re.compile(
    r"how (many|much|long|old|often|far|late|soon)|which (year|day|price)|what (fee|price|date|time)|"
    r"\bcost|多少|几|多久|多长|多大|何时|什么时候",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d|[零二三四五六七八九十百千万]")


class Quote(msgspec.Struct, frozen=True):
    """Sentences of one passage, in their order, and the number to cite."""

    sentences: tuple[str, ...]
    index: int


class _Passage(msgspec.Struct, frozen=True):
    source: SourcePart
    units: list[Unit]
    words: list[set[str]]
    headings: list[set[str]]


def best_quotes(question: str, sources: Sequence[SourcePart]) -> tuple[Quote, ...]:
    """Return one to three quotes that answer `question`, best first; none when no passage touches it."""
    passages = [_read(source) for source in sources]
    asked = _Asked(question, (words for passage in passages for words in passage.words))
    ranked = sorted(
        (found for rank, passage in enumerate(passages) for found in _best_of(passage, asked, rank)),
        key=lambda found: -found[0],
    )
    quotes: list[Quote] = []
    said: set[str] = set()
    for score, passage, scores in ranked:
        if score < ranked[0][0] * _NEXT_BEST or len(quotes) == MAX_QUOTES:
            break
        sentences = _around_best(passage.units, scores)
        if said.isdisjoint(sentences):
            quotes.append(Quote(sentences, passage.source.index))
            said.update(sentences)
    return tuple(quotes)


class _Asked:
    """What a question asks about, weighed against how common each term is among the sentences."""

    def __init__(self, question: str, sentences: Iterable[set[str]]) -> None:
        known = list(sentences)
        seen = Counter(term for words in known for term in words)
        self.worth = {term: _worth(term, seen[term], len(known)) for term in set(terms(question))}
        self.total = sum(self.worth.values()) or 1.0
        self.usual = sum(map(len, known)) / (len(known) or 1) or 1.0
        self.number = _ASKS_A_NUMBER.search(question) is not None

    def matched(self, words: set[str]) -> float:
        return sum(worth for term, worth in self.worth.items() if term in words)


def _worth(term: str, count: int, sentences: int) -> float:
    rarity = math.log(1 + (sentences - count + 0.5) / (count + 0.5))
    seam = not count and is_pair(term)
    return weight(term) * rarity * (_SEAM_SHARE if seam else 1.0)


def _read(source: SourcePart) -> _Passage:
    units = cut(source.text)
    title = set(terms(source.title))
    return _Passage(
        source,
        units,
        [set(terms(unit.text)) for unit in units],
        [set(terms(unit.heading)) | title for unit in units],
    )


def _best_of(passage: _Passage, asked: _Asked, rank: int) -> list[tuple[float, _Passage, list[float]]]:
    """Return the passage with its sentences' scores and their best; nothing when it is beside the point."""
    scores: list[float] = []
    covered = 0.0
    for unit, words, heading in zip(passage.units, passage.words, passage.headings, strict=True):
        own = asked.matched(words)
        with_heading = own + _HEADING_SHARE * asked.matched(heading - words)
        covered = max(covered, with_heading / asked.total if own else 0.0)
        scores.append(_score(unit, own and with_heading, len(words) / asked.usual, asked=asked))
    if covered < LEAST_COVERAGE:
        return []
    about = asked.matched(set[str]().union(*passage.words, *passage.headings)) / asked.total
    best = max(scores) * about / (1 + _RANK_STEP * rank)
    return [(best, passage, scores)]


def _score(unit: Unit, matched: float, length: float, *, asked: _Asked) -> float:
    score = matched / (0.75 + 0.25 * max(length, 0.5))
    if asked.number and unit.kind != "heading":
        score *= 1.15 if _NUMBER.search(unit.text) else 0.9
    return score


def _around_best(units: Sequence[Unit], scores: Sequence[float]) -> tuple[str, ...]:
    """Return the best unit and the neighbour it needs: what a question or title leads to, a close second."""
    at = max(range(len(units)), key=lambda place: scores[place])
    chosen = [at]
    while _leads_on(units, chosen[-1]) and len(chosen) < 4:
        chosen.append(chosen[-1] + 1)
    while units[at].kind == "heading" and len(chosen) < _MOST_ROWS and _is_next_row(units, chosen[-1]):
        chosen.append(chosen[-1] + 1)  # the names of columns lead to every row, and not to the first alone
    if chosen[-1] == at or _is_short(units[chosen[-1]]):
        chosen = sorted({*chosen, *_companion(units, scores, chosen[-1])})
    spoken = [place for place in chosen if not _is_preface(units[place])] or chosen
    sentences: list[str] = []
    for place in spoken:
        if sentences and sum(map(len, sentences)) + len(units[place].text) > _MAX_QUOTE_CHARS:
            break
        sentences.append(units[place].text)
    return tuple(sentences)


def _leads_on(units: Sequence[Unit], at: int) -> bool:
    if at + 1 == len(units):
        return False
    return units[at].leads_on or units[at + 1].asks


def _is_next_row(units: Sequence[Unit], at: int) -> bool:
    return units[at].kind == "row" and at + 1 < len(units) and units[at + 1].kind == "row"


def _companion(units: Sequence[Unit], scores: Sequence[float], at: int) -> list[int]:
    if units[at].kind == "row":
        return []
    near = [
        place for place in (at + 1, at - 1) if 0 <= place < len(units) and units[place].kind == "sentence"
    ]
    close = [
        place for place in near if scores[place] >= _COMPANION * scores[at] and not _is_preface(units[place])
    ]
    if close:
        return [max(close, key=lambda place: scores[place])]
    return near[:1] if _is_short(units[at]) else []


def _is_short(unit: Unit) -> bool:
    return len(unit.text.encode()) < _SHORT_BYTES  # an ideograph says about as much as three letters


def _is_preface(unit: Unit) -> bool:
    return unit.kind == "heading" or unit.asks
