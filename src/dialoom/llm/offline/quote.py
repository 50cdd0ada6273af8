"""The answer that numbered passages themselves hold: their best sentences, each with its number."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from dialoom.llm.messages import SourcePart
from dialoom.llm.offline.asking import (
    denies,
    subject_of,
    tells_number,
    tells_time,
    tells_way,
    wants_number,
    wants_time,
    wants_way,
)
from dialoom.llm.offline.kin import kin_of
from dialoom.llm.offline.units import Unit, cut
from dialoom.llm.offline.words import FILLER_WEIGHT, is_chinese, is_pair, terms, weight

MAX_QUOTES = 3
LEAST_COVERAGE = 0.2
"""The share of what a question asks about that a sentence must touch to count as an answer."""
LEAST_OF_ONE = 0.45
"""The share that a passage must touch where its best sentence and title have but one word of the question."""
LEAST_OF_PAIR = 0.58
"""The same where that word is a pair of ideographs, and no more than half of those asked about."""
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
_NEAR = 3
_TIME_FITS = 1.5
_TIME_MISSING = 0.6
_WAY_FITS = 1.3
_WAY_DENIED = 0.8
_NUMBER_FITS = 1.15
_NUMBER_MISSING = 0.9
_PLACE = re.compile(r"(?:pages?|rows?|record) ")
_ADDRESS = re.compile(r"(?<!\S)\S+@\S+")


class Quote(msgspec.Struct, frozen=True):
    """Sentences of one passage, in their order, and the number to cite.

    `is_torn` says that it begins with an item of a list whose title the passage does not hold.
    """

    sentences: tuple[str, ...]
    index: int
    is_torn: bool = False


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
        chosen = _around_best(found.passage.units, found.scores, asked)
        sentences = _told(chosen)
        # the first may answer by a title alone, or without a time; more of that kind are beside the point
        also = found.said >= LEAST_COVERAGE and (found.fits or not ranked[0].fits)
        if sentences and told.isdisjoint(sentences) and (also or not quotes):
            quotes.append(Quote(sentences, found.passage.source.index, is_torn=_is_torn(chosen[0])))
            told.update(sentences)
    return tuple(quotes)


class _Asked:
    """What a question asks about, weighed against how common each term is among the sentences."""

    def __init__(self, question: str, passages: Sequence[_Passage]) -> None:
        known = [words for passage in passages for words in passage.words]
        seen = Counter(term for words in known for term in words)
        subject = subject_of(question)
        self.named = subject.named
        self.kin = kin_of(question)
        told = seen.copy()
        for said, others in self.kin:
            most = max((seen[other] for other in others), default=0)
            told |= Counter(dict.fromkeys(said, most))  # as common as the commonest of them
        self.worth = {term: _worth(term, told[term], len(known)) for term in subject.terms}
        self.total = sum(self.worth.values()) or 1.0
        self.ideographs = len(
            {char for term in self.worth if is_pair(term) for char in term if weight(char) == 1}
        )
        self.usual = sum(map(len, known)) / (len(known) or 1) or 1.0
        self.wants_time, self.wants_number = wants_time(question), wants_number(question)
        self.wants_way = wants_way(question)
        every = set(seen).union(*(words for passage in passages for words in passage.headings))
        self.is_untold = not self._tells(every, self.named)

    def _tells(self, words: set[str], wanted: frozenset[str]) -> bool:
        """Whether words say one of those wanted, themselves or otherwise; what is not wanted is told."""
        meant = (others for said, others in self.kin if not wanted.isdisjoint(said))
        return not wanted or not words.isdisjoint(wanted.union(*meant))

    def matched(self, words: set[str]) -> float:
        meant = self._meant(words)
        return sum(
            worth * (1.0 if term in words else _KIN_SHARE)
            for term, worth in self.worth.items()
            if term in words or term in meant
        )

    def is_answered_by(self, text: str) -> bool:
        """Whether a text tells what kind of thing is asked for: a time, or a way to do something."""
        return (self.wants_time and tells_time(text)) or (self.wants_way and tells_way(text))

    def least(self, words: set[str]) -> float:
        """The share of the question that a passage has to touch whose best sentence and title say `words`."""
        told = self.worth.keys() & (words | self._meant(words))
        said = [term for term in told if weight(term) > FILLER_WEIGHT]
        if len(said) != 1 or not self.named.isdisjoint(said):
            return LEAST_COVERAGE
        is_small = is_pair(said[0]) and 2 * len(said[0]) <= self.ideographs
        return LEAST_OF_PAIR if is_small else LEAST_OF_ONE

    def _meant(self, words: set[str]) -> set[str]:
        return {term for said, others in self.kin if not others.isdisjoint(words) for term in said}


def _worth(term: str, count: int, sentences: int) -> float:
    rarity = math.log(1 + (sentences - count + 0.5) / (count + 0.5))
    seam = not count and is_pair(term)
    return weight(term) * rarity * (_SEAM_SHARE if seam else 1.0)


def _read(source: SourcePart) -> _Passage:
    units = [_under(_section(source.title), _as_title(unit, source.title)) for unit in cut(source.text)]
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


def _section(title: str) -> str:
    """The title of the section that a source's name ends with, "" when it ends with a page or a record."""
    name = title.partition(", ")[2]
    return "" if _PLACE.match(name) else name


def _under(section: str, unit: Unit) -> Unit:
    if not unit.is_listed or unit.lead or unit.kind != "sentence":
        return unit
    return msgspec.structs.replace(unit, lead=section)


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
        # below a title that names the matter, a time alone may be the answer to "when", a way to "how"
        counts = own or (unit.kind == "sentence" and asked.is_answered_by(unit.text))
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
    if about < asked.least(passage.words[best] | passage.headings[best]):
        return []
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
    score = matched / (0.85 + 0.15 * max(length, 0.5))
    if asked.wants_time and unit.kind != "row":
        return score * (_TIME_FITS if tells_time(unit.text) else _TIME_MISSING)
    if asked.wants_number and unit.kind != "heading":
        return score * (_NUMBER_FITS if tells_number(unit.text) else _NUMBER_MISSING)
    if asked.wants_way and unit.kind == "sentence":
        return score * (_WAY_FITS if tells_way(unit.text) else _WAY_DENIED if denies(unit.text) else 1.0)
    return score


def _around_best(units: Sequence[Unit], scores: Sequence[float], asked: _Asked) -> list[Unit]:
    """Return the best unit and what it needs: what a question or title leads to, or a close second beside it.

    Nothing when there are but titles and questions: they say what an answer is about, and no answer.
    """
    at = max(range(len(units)), key=lambda place: scores[place])
    chosen = [at]
    is_above = asked.wants_number and not tells_number(units[at].text) and _is_above_numbers(units, at)
    if is_above:
        chosen.append(at + 1)
    while _leads_on(units, chosen[-1]) and len(chosen) < 4:
        chosen.append(chosen[-1] + 1)
    while (
        (units[at].leads_on or is_above) and len(chosen) < _MOST_ROWS and _is_next_listed(units, chosen[-1])
    ):
        chosen.append(chosen[-1] + 1)  # a title or the names of columns lead to all that is listed under them
    if chosen[-1] == at or _is_short(units[chosen[-1]]):
        chosen = sorted({*chosen, *_companion(units, scores, chosen[-1])})
    if asked.wants_way:
        chosen += _way_below(units, chosen)
    return [units[place] for place in chosen if not _is_preface(units[place])]


def _told(units: Sequence[Unit]) -> tuple[str, ...]:
    """The words of units one after the other, as far as a quote goes."""
    sentences: list[str] = []
    for before, unit in zip((None, *units), units, strict=False):
        if sentences and sum(map(len, sentences)) + len(unit.text) > _MAX_QUOTE_CHARS:
            break
        sentences.append(_by_itself(unit, before))
    return tuple(sentences)


def _is_torn(unit: Unit) -> bool:
    return unit.is_listed and not unit.lead and unit.kind != "row"


def _by_itself(unit: Unit, before: Unit | None) -> str:
    """A unit's words; an item or a row comes with what it stands under, unless that was said just now."""
    words = unit.named or unit.text
    is_told = before is not None and unit.lead in (before.lead, before.text)
    if not unit.lead or is_told or unit.lead.casefold() in words.casefold():
        return words
    end = unit.lead.rstrip(":： ")
    if is_chinese(end):
        return f"{end}{words}" if end.endswith("？") else f"{end}：{words}"
    return f"{end} {words}" if end.endswith("?") else f"{end}: {words}"


def _leads_on(units: Sequence[Unit], at: int) -> bool:
    if at + 1 == len(units):
        return False
    return units[at].leads_on or units[at + 1].asks


def _way_below(units: Sequence[Unit], chosen: Sequence[int]) -> list[int]:
    """The next sentence in the same section that tells what to do, unless one of those chosen does."""
    last = chosen[-1]
    if any(tells_way(units[place].text) for place in chosen) or units[last].kind != "sentence":
        return []
    near = range(last + 1, min(last + 1 + _NEAR, len(units)))
    return [
        place
        for place in near
        if units[place].kind == "sentence"
        and units[place].heading == units[last].heading
        and tells_way(units[place].text)
    ][:1]


def _is_above_numbers(units: Sequence[Unit], at: int) -> bool:
    """Whether a list begins below a sentence, with the numbers that it does not tell itself."""
    below = units[at + 1 : at + 2]
    return not _is_of_list(units[at]) and any(unit.is_listed and tells_number(unit.text) for unit in below)


def _is_next_listed(units: Sequence[Unit], at: int) -> bool:
    return at + 1 < len(units) and all(_is_of_list(unit) for unit in units[at : at + 2])


def _is_of_list(unit: Unit) -> bool:
    return unit.kind == "row" or unit.is_listed


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
