"""The answer that numbered passages themselves hold: their best sentences, each with its number."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from dialoom.llm.messages import SourcePart
from dialoom.llm.offline.asking import subject_of, tells_number, tells_time, wants_number, wants_time
from dialoom.llm.offline.kin import kin_of
from dialoom.llm.offline.units import Unit, cut
from dialoom.llm.offline.words import is_pair, terms, weight

MAX_QUOTES = 3
LEAST_COVERAGE = 0.2
"""The share of what a question asks about that a sentence must touch to count as an answer."""
_NEXT_BEST = 0.65
_MOST_ROWS = 8
_HEADING_SHARE = 0.6
_AGREED_SHARE = 0.2
_RANK_STEP = 0.04
_SEAM_SHARE = 0.3
_COMPANION = 0.6
_KIN_SHARE = 0.7
_AS_GOOD = 0.8
"""How much of what its source's name says of a question a sentence has to say itself to go before it."""
_MAX_QUOTE_CHARS = 420
_SHORT_BYTES = 24
_TIME_FITS = 1.5
_TIME_MISSING = 0.6
_NUMBER_FITS = 1.15
_NUMBER_MISSING = 0.9
_ADDRESS = re.compile(r"(?<!\S)\S+@\S+")


class Quote(msgspec.Struct, frozen=True):
    """Sentences of one passage, in their order, and the number to cite."""

    sentences: tuple[str, ...]
    index: int


class _Passage(msgspec.Struct, frozen=True):
    source: SourcePart
    units: list[Unit]
    words: list[set[str]]
    headings: list[set[str]]


class _Found(NamedTuple):
    """A passage with its sentences' scores, and what its best sentence is worth as an answer of its own.

    `said` is the share of the question in the sentence itself, `fits` whether it is of the kind asked for.
    """

    score: float
    passage: _Passage
    scores: list[float]
    said: float
    fits: bool


def best_quotes(question: str, sources: Sequence[SourcePart]) -> tuple[Quote, ...]:
    """Return one to three quotes that answer `question`, best first; none when no passage touches it."""
    passages = [_read(source) for source in sources]
    asked = _Asked(question, passages)
    ranked = sorted(
        (found for rank, passage in enumerate(passages) for found in _best_of(passage, asked, rank)),
        key=lambda found: -found.score,
    )
    quotes: list[Quote] = []
    told: set[str] = set()
    for found in ranked:
        if found.score < ranked[0].score * _NEXT_BEST or len(quotes) == MAX_QUOTES:
            break
        sentences = _around_best(found.passage.units, found.scores)
        # the first may answer by a title alone, or without a time; more of that kind are beside the point
        also = found.said >= LEAST_COVERAGE and (found.fits or not ranked[0].fits)
        if sentences and told.isdisjoint(sentences) and (also or not quotes):
            quotes.append(Quote(sentences, found.passage.source.index))
            told.update(sentences)
    return tuple(quotes)


class _Asked:
    """What a question asks about, weighed against how common each term is among the sentences."""

    def __init__(self, question: str, passages: Sequence[_Passage]) -> None:
        known = [words for passage in passages for words in passage.words]
        seen = Counter(term for words in known for term in words)
        subject = subject_of(question)
        self.kin = kin_of(question)
        told = seen.copy()
        for said, others in self.kin:
            most = max((seen[other] for other in others), default=0)
            told |= Counter(dict.fromkeys(said, most))  # as common as the commonest of them
        self.worth = {term: _worth(term, told[term], len(known)) for term in subject.terms}
        self.total = sum(self.worth.values()) or 1.0
        self.usual = sum(map(len, known)) / (len(known) or 1) or 1.0
        self.wants_time, self.wants_number = wants_time(question), wants_number(question)
        every = set(seen).union(*(words for passage in passages for words in passage.headings))
        self.is_untold = not self._tells(every, subject.named)

    def _tells(self, words: set[str], wanted: frozenset[str]) -> bool:
        """Whether words say one of those wanted, themselves or otherwise; what is not wanted is told."""
        meant = (others for said, others in self.kin if not wanted.isdisjoint(said))
        return not wanted or not words.isdisjoint(wanted.union(*meant))

    def matched(self, words: set[str]) -> float:
        meant = {term for said, others in self.kin if not others.isdisjoint(words) for term in said}
        return sum(
            worth * (1.0 if term in words else _KIN_SHARE)
            for term, worth in self.worth.items()
            if term in words or term in meant
        )


def _worth(term: str, count: int, sentences: int) -> float:
    rarity = math.log(1 + (sentences - count + 0.5) / (count + 0.5))
    seam = not count and is_pair(term)
    return weight(term) * rarity * (_SEAM_SHARE if seam else 1.0)


def _read(source: SourcePart) -> _Passage:
    units = [_as_title(unit, source.title) for unit in cut(source.text)]
    title = set(terms(source.title))
    return _Passage(
        source,
        units,
        [set(terms(_ADDRESS.sub(" ", unit.text))) for unit in units],
        [set(terms(unit.heading)) | title for unit in units],
    )


def _as_title(unit: Unit, title: str) -> Unit:
    """What a source is named after is its title, however much it reads like a sentence."""
    if unit.kind == "sentence" and _is_named(title, unit):
        return msgspec.structs.replace(unit, kind="heading")
    return unit


def _is_named(title: str, unit: Unit) -> bool:
    return f", {title}".endswith(f", {unit.text}")


def _best_of(passage: _Passage, asked: _Asked, rank: int) -> list[_Found]:
    """Return what is found in a passage; nothing when it is beside the point."""
    if asked.is_untold:
        return []
    scores: list[float] = []
    said: list[float] = []
    covered = 0.0
    for at, (unit, words) in enumerate(zip(passage.units, passage.words, strict=True)):
        heading = passage.headings[at]
        is_bare = unit.kind == "heading" and at + 1 == len(passage.units)  # what stands under it is elsewhere
        own = 0.0 if is_bare else asked.matched(words)
        # below a title that names the matter, a time alone may be the answer to "when"
        counts = own or (asked.wants_time and unit.kind == "sentence" and tells_time(unit.text))
        matched = own + _heading_worth(words, heading, asked) if counts else 0.0
        covered = max(covered, matched / asked.total)
        said.append(0.0 if unit.kind == "heading" else own / asked.total)
        scores.append(_score(unit, matched, len(words) / asked.usual, asked=asked))
    if covered < LEAST_COVERAGE:
        return []
    if (name := _place_of_name(passage)) is not None:
        # it stands above all that the source says, and leads to the first sentence only for want of better
        told = asked.matched(passage.words[name]) / asked.total
        if max(said) >= max(_AS_GOOD * told, LEAST_COVERAGE):
            scores[name] = 0.0
    best = scores.index(max(scores))
    about = asked.matched(set[str]().union(*passage.words, *passage.headings)) / asked.total
    score = scores[best] * about / (1 + _RANK_STEP * rank)
    fits = not asked.wants_time or tells_time(passage.units[best].text)
    return [_Found(score, passage, scores, said[best], fits)]


def _place_of_name(passage: _Passage) -> int | None:
    """Return where the title that the source is named after stands in it."""
    places = (at for at, unit in enumerate(passage.units) if _is_named(passage.source.title, unit))
    return next(places, None)


def _heading_worth(words: set[str], heading: set[str], asked: _Asked) -> float:
    """What the title above a sentence adds: what it alone says, and a little for what both say."""
    return _HEADING_SHARE * asked.matched(heading - words) + _AGREED_SHARE * asked.matched(heading & words)


def _score(unit: Unit, matched: float, length: float, *, asked: _Asked) -> float:
    score = matched / (0.75 + 0.25 * max(length, 0.5))
    if asked.wants_time and unit.kind != "row":
        return score * (_TIME_FITS if tells_time(unit.text) else _TIME_MISSING)
    if asked.wants_number and unit.kind != "heading":
        return score * (_NUMBER_FITS if tells_number(unit.text) else _NUMBER_MISSING)
    return score


def _around_best(units: Sequence[Unit], scores: Sequence[float]) -> tuple[str, ...]:
    """Return the best unit and the neighbour it needs: what a question or title leads to, a close second.

    Nothing when there are but titles and questions: they say what an answer is about, and no answer.
    """
    at = max(range(len(units)), key=lambda place: scores[place])
    chosen = [at]
    while _leads_on(units, chosen[-1]) and len(chosen) < 4:
        chosen.append(chosen[-1] + 1)
    while units[at].kind == "heading" and len(chosen) < _MOST_ROWS and _is_next_row(units, chosen[-1]):
        chosen.append(chosen[-1] + 1)  # the names of columns lead to every row, and not to the first alone
    if chosen[-1] == at or _is_short(units[chosen[-1]]):
        chosen = sorted({*chosen, *_companion(units, scores, chosen[-1])})
    spoken = [place for place in chosen if not _is_preface(units[place])]
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
