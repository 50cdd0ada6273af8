"""Which row holds which token, in memory: the twin of an FTS5 table, with the same scores and order."""

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Generic, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from dialoom.rag.snapshot import DoubleVector, pages_by_score
from dialoom.rag.words import tokens

Key = TypeVar("Key")
_K1 = 1.2
_B = 0.75
_LEAST_IDF = 1e-6
_Ints = NDArray[np.int64]


class _Segment(msgspec.Struct, Generic[Key], frozen=True):
    """Rows and their tokens, never changed: of token `t` the postings are `starts[t]` to `starts[t + 1]`."""

    keys: Sequence[Key]
    numbers: _Ints
    """Of each row, rising: what it is known by in the index."""
    lengths: _Ints
    vocabulary: dict[str, int]
    starts: _Ints
    rows: _Ints
    counts: _Ints

    def postings(self, token: str) -> tuple[_Ints, _Ints]:
        term = self.vocabulary.get(token)
        if term is None:
            return self.rows[:0], self.counts[:0]
        part = slice(self.starts[term], self.starts[term + 1])
        return self.rows[part], self.counts[part]


class _Seen(msgspec.Struct, Generic[Key], frozen=True):
    """One moment of an index: its segments, which of their rows are still there, and how long those are."""

    segments: tuple[_Segment[Key], ...] = ()
    alive: tuple[NDArray[np.bool_], ...] = ()
    rows: int = 0
    norms: tuple[DoubleVector, ...] = ()
    """What the length of each row does to its scores."""

    def key(self, row: int) -> Key:
        for segment in self.segments:
            if row < len(segment.keys):
                return segment.keys[row]
            row -= len(segment.keys)
        raise IndexError(row)


class PostingIndex(Generic[Key]):
    """Keys found by the tokens of their texts. Any thread may call; a reader sees each change whole.

    Texts are read when they are first searched for, not when they are put.
    """

    def __init__(self, text_of: Callable[[Key], str]) -> None:
        self._text_of = text_of
        self._lock = Lock()
        self._numbers: dict[Key, int] = {}
        self._next = 0
        self._fresh: dict[Key, None] = {}
        self._gone: list[int] = []
        self._seen: _Seen[Key] = _Seen()

    def replace(self, remove: Iterable[Key], keys: Iterable[Key]) -> None:
        """Take out keys that are there and put others that are not, both at once."""
        with self._lock:
            for key in remove:
                if key in self._fresh:
                    del self._fresh[key]
                else:
                    self._gone.append(self._numbers.pop(key))
            fresh = dict.fromkeys(keys)
            self._fresh = self._fresh | fresh if self._fresh else fresh

    def search(
        self,
        wanted: Sequence[str],
        k: int,
        *,
        keep: Callable[[Sequence[Key]], Sequence[bool]] | None = None,
    ) -> list[tuple[Key, float]]:
        """The `k` keys with the highest BM25 for distinct tokens; equal ones in the order they were put.

        `keep` says which of some keys may be found, as in `Snapshot.search`.
        """
        seen = self._digested()
        scores = _scores(seen, wanted)
        rows = np.flatnonzero(scores)
        scores = scores[rows]
        found: list[tuple[Key, float]] = []
        if k <= 0 or not len(rows):
            return found
        for page in pages_by_score(scores, k, count=len(rows)):
            hits = [(seen.key(int(rows[place])), float(scores[place])) for place in page]
            wanted_hits = [True] * len(hits) if keep is None else keep([key for key, _ in hits])
            found += [hit for hit, good in zip(hits, wanted_hits, strict=True) if good]
            if len(found) >= k:
                break
        return found[:k]

    def _digested(self) -> _Seen[Key]:
        """Take in what was put and removed since, and return the moment that is then."""
        with self._lock:
            if not self._fresh and not self._gone:
                return self._seen
            seen = self._seen
            alive = [_buried(*pair, self._gone) for pair in zip(seen.segments, seen.alive, strict=True)]
            segments = [*seen.segments]
            if self._fresh:
                numbers = range(self._next, self._next + len(self._fresh))
                self._numbers.update(zip(self._fresh, numbers, strict=True))
                self._next = numbers.stop
                segments.append(_segment(list(self._fresh), numbers, map(self._text_of, self._fresh)))
                alive.append(np.ones(len(self._fresh), np.bool_))
            while len(segments) > 1 and len(segments[-2].keys) <= 2 * len(segments[-1].keys):
                last, second = (segments.pop(), alive.pop()), (segments.pop(), alive.pop())
                segments.append(_merged([second, last]))
                alive.append(np.ones(len(segments[-1].keys), np.bool_))
            self._fresh, self._gone = {}, []
            self._seen = _measured(segments, alive)
            return self._seen


def _measured(segments: Sequence[_Segment[Key]], alive: Sequence[NDArray[np.bool_]]) -> _Seen[Key]:
    rows = sum(int(each.sum()) for each in alive)
    total = sum(int(segment.lengths[each].sum()) for segment, each in zip(segments, alive, strict=True))
    average = total / rows if total else 1.0
    norms = [_K1 * (1 - _B + _B * segment.lengths.astype(np.float64) / average) for segment in segments]
    return _Seen(tuple(segments), tuple(alive), rows, tuple(norms))


def _scores(seen: _Seen[Key], wanted: Sequence[str]) -> DoubleVector:
    """BM25 of every row, 0 where no token is: FTS5's sums in its order, to the last bit."""
    parts = [np.zeros(len(segment.keys)) for segment in seen.segments]
    for token in wanted:
        found = [segment.postings(token) for segment in seen.segments]
        hits = sum(int(alive[at].sum()) for alive, (at, _) in zip(seen.alive, found, strict=True))
        if not hits:
            continue
        idf = math.log((seen.rows - hits + 0.5) / (hits + 0.5))
        idf = idf if idf > 0 else _LEAST_IDF
        for part, norm, (at, counts) in zip(parts, seen.norms, found, strict=True):
            part[at] += idf * ((counts * (_K1 + 1.0)) / (counts + norm[at]))
    living = [part * alive for part, alive in zip(parts, seen.alive, strict=True)]
    return np.concatenate(living) if living else np.empty(0)


def _segment(keys: Sequence[Key], numbers: Sequence[int], texts: Iterable[str]) -> _Segment[Key]:
    vocabulary: dict[str, int] = {}
    terms = array("q")
    lengths = np.zeros(len(keys), np.int64)
    for row, text in enumerate(texts):
        told = tokens(text)
        terms.extend(vocabulary.setdefault(token, len(vocabulary)) for token in told)
        lengths[row] = len(told)
    rows = np.repeat(np.arange(len(keys), dtype=np.int64), lengths)
    pairs, counts = np.unique(np.frombuffer(terms, np.int64) * max(len(keys), 1) + rows, return_counts=True)
    return _Segment(
        keys,
        np.array(numbers, np.int64),
        lengths,
        vocabulary,
        _starts(pairs // max(len(keys), 1), len(vocabulary)),
        pairs % max(len(keys), 1),
        counts.astype(np.int64),
    )


def _starts(terms: _Ints, count: int) -> _Ints:
    """Where the postings of each term begin, and where those of the last one end."""
    return np.concatenate([[0], np.cumsum(np.bincount(terms, minlength=count))]).astype(np.int64)


def _buried(segment: _Segment[Key], alive: NDArray[np.bool_], gone: Sequence[int]) -> NDArray[np.bool_]:
    dead = np.isin(segment.numbers, gone)
    return alive & ~dead if dead.any() else alive


def _merged(parts: Sequence[tuple[_Segment[Key], NDArray[np.bool_]]]) -> _Segment[Key]:
    """One segment of the living rows of several, which come in order."""
    vocabulary: dict[str, int] = {}
    columns: list[tuple[_Ints, _Ints, _Ints]] = []
    keys: list[Key] = []
    for segment, alive in parts:
        columns.append(_living_postings(segment, alive, vocabulary, first_row=len(keys)))
        keys += [key for key, lives in zip(segment.keys, alive, strict=True) if lives]
    terms, rows, counts = (np.concatenate(column) for column in zip(*columns, strict=True))
    order = np.lexsort((rows, terms))
    return _Segment(
        keys,
        np.concatenate([segment.numbers[alive] for segment, alive in parts]),
        np.concatenate([segment.lengths[alive] for segment, alive in parts]),
        vocabulary,
        _starts(terms, len(vocabulary)),
        rows[order],
        counts[order],
    )


def _living_postings(
    segment: _Segment[Key], alive: NDArray[np.bool_], vocabulary: dict[str, int], *, first_row: int
) -> tuple[_Ints, _Ints, _Ints]:
    """Terms in the numbers of `vocabulary`, which grows by them, rows from `first_row` on, and counts."""
    renamed = np.fromiter(
        (vocabulary.setdefault(token, len(vocabulary)) for token in segment.vocabulary),
        np.int64,
        len(segment.vocabulary),
    )
    terms = np.repeat(renamed, np.diff(segment.starts))
    row_of = first_row + np.cumsum(alive) - 1
    kept = alive[segment.rows]
    return terms[kept], row_of[segment.rows][kept], segment.counts[kept]
