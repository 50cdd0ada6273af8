"""One moment of a matrix, and the search in it: exact, or in the lists nearest to the question."""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from dialoom.rag.errors import DimensionMismatchError
from dialoom.rag.lists import Lists
from dialoom.rag.rows import check_query, check_rows, unit_rows
from dialoom.rag.types import FloatMatrix, FloatVector

_QUERIES_AT_ONCE = 64
_RUN = 64
_TAKEN_AT_ONCE = 512
_MOST_BY_LISTS = 100

Key = TypeVar("Key")
DoubleVector = NDArray[np.float64]


class Segment(msgspec.Struct, Generic[Key], frozen=True):
    """Rows of a matrix that only grows, seen up to a length; `keys` and `buffer` may be longer by now."""

    buffer: FloatMatrix
    keys: list[Key]
    length: int
    dead: NDArray[np.bool_] | None = None

    def living_keys(self) -> list[Key]:
        keys = self.keys[: self.length]
        if self.dead is None:
            return keys
        return [key for key, dead in zip(keys, self.dead, strict=True) if not dead]

    def living_rows(self) -> FloatMatrix:
        rows = self.buffer[: self.length]
        return rows if self.dead is None else rows[~self.dead]


class Snapshot(msgspec.Struct, Generic[Key], frozen=True):
    """One moment of a matrix: safe to search on any thread, never changed."""

    dim: int | None = None
    segments: tuple[Segment[Key], ...] = ()
    alive: int = 0
    lists: Lists | None = None

    @property
    def unlisted(self) -> float:
        """The share of the rows that are in no list and looked at one by one."""
        rows = sum(segment.length for segment in self.segments)
        return 1 - (self.lists.covered if self.lists else 0) / rows if rows else 0.0

    def search(
        self,
        query: FloatVector,
        k: int,
        *,
        min_score: float | None = None,
        keep: Callable[[Sequence[Key]], Sequence[bool]] | None = None,
    ) -> list[tuple[Key, float]]:
        """The `k` nearest rows by cosine, best first, equal ones in the order they were added.

        `keep` says which of some keys may be found; it is asked in order of score, a few at a time, until
        there are enough. `query` need not be of length 1. With lists, up to 100 rows and without `keep`,
        some of the nearest may be missed.
        """
        found: list[tuple[Key, float]] = []
        if k <= 0 or self.alive == 0:
            return found
        unit = unit_rows(check_query(query, self.dim)[None, :])[0]
        if keep is None and (near := self._listed_near(unit, k)):
            return [hit for hit in near if min_score is None or hit[1] >= min_score]
        scores = self._scores(unit)
        for page in pages_by_score(scores, k, count=self.alive):
            hits = [(self._key(row), float(scores[row])) for row in page]
            if min_score is not None:
                hits = [hit for hit in hits if hit[1] >= min_score]
            wanted = [True] * len(hits) if keep is None else keep([key for key, _ in hits])
            found += [hit for hit, good in zip(hits, wanted, strict=True) if good]
            if len(found) >= k or len(hits) < len(page):
                break
        return found[:k]

    def search_many(self, queries: FloatMatrix, k: int) -> list[list[tuple[Key, float]]]:
        """`search` for several questions at once, in much less time for each.

        Scores may differ from those of `search` in the last bit, and so may the order of equal ones.
        """
        if queries.ndim != 2:
            raise DimensionMismatchError(
                f"questions are rows of a matrix, not an array of shape {queries.shape}"
            )
        if k <= 0 or self.alive == 0:
            return [[] for _ in queries]
        if self.lists is not None:
            return [self.search(query, k) for query in queries]
        found: list[list[tuple[Key, float]]] = []
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            units = unit_rows(check_rows(queries[start : start + _QUERIES_AT_ONCE], self.dim))
            parts = [_products(units, segment) for segment in self.segments]
            scores = np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
            best = (_best_rows(row, min(k, self.alive)) for row in scores)
            found += [
                [(self._key(row), min(max(float(each[row]), -1.0), 1.0)) for row in rows]
                for each, rows in zip(scores, best, strict=True)
            ]
        return found

    def rows(self) -> tuple[list[Key], FloatMatrix]:
        """All keys in the order they were added, and their unit rows."""
        keys: list[Key] = []
        parts: list[FloatMatrix] = []
        for segment in self.segments:
            keys += segment.living_keys()
            parts.append(segment.living_rows())
        return keys, np.concatenate(parts) if parts else np.empty((0, self.dim or 0), np.float32)

    def _listed_near(self, unit: FloatVector, k: int) -> list[tuple[Key, float]]:
        """The `k` nearest of the rows in the nearest lists and of those in none.

        [] when that cannot be told: too few are there, or most of those that were have been taken out.
        """
        if self.lists is None or k > _MOST_BY_LISTS:
            return []
        near, first = self.lists.nearest(unit), 0
        rows: list[NDArray[np.intp]] = []
        scores: list[FloatVector] = []
        for number, segment in enumerate(self.segments):
            part = self.lists.parts[number] if number < len(self.lists.parts) else None
            tail = np.arange(part.length if part else 0, segment.length)
            looked = (np.concatenate([part.of(near), tail]) if part else tail).astype(np.intp)
            some = _products_of(segment.buffer, looked, unit)
            if segment.dead is not None:
                some[segment.dead[looked]] = -np.inf
            rows.append(looked + first)
            scores.append(some)
            first += segment.length
        every = np.clip(np.concatenate(scores), None, 1.0)
        if 2 * np.isfinite(every).sum() < len(every):
            return []
        hits = _first_of(np.concatenate(rows), every, k)
        return [(self._key(row), max(score, -1.0)) for row, score in hits]

    def _scores(self, query: FloatVector) -> FloatVector:
        parts: list[FloatVector] = []
        for segment in self.segments:
            # einsum, not BLAS: as fast for one query, no threads that spin on a busy machine, and equal rows
            # get equal scores wherever they lie
            part = np.einsum("ij,j->i", segment.buffer[: segment.length], query)
            np.clip(part, -1.0, 1.0, out=part)
            if segment.dead is not None:
                part[segment.dead] = -np.inf
            parts.append(part)
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def _key(self, row: int) -> Key:
        for segment in self.segments:
            if row < segment.length:
                return segment.keys[row]
            row -= segment.length
        raise IndexError(row)


def _products_of(buffer: FloatMatrix, rows: NDArray[np.intp], unit: FloatVector) -> FloatVector:
    """The products of some rows, a few at a time so that they stay near the processor: twice as fast."""
    products = np.empty(len(rows), np.float32)
    scratch = np.empty((min(len(rows), _TAKEN_AT_ONCE), len(unit)), np.float32)
    for start in range(0, len(rows), _TAKEN_AT_ONCE):
        wanted = rows[start : start + _TAKEN_AT_ONCE]
        some = scratch[: len(wanted)]
        np.take(buffer, wanted, axis=0, out=some, mode="clip")  # the other modes copy once more
        np.einsum("ij,j->i", some, unit, out=products[start : start + len(wanted)])
    return products


def pages_by_score(scores: FloatVector | DoubleVector, k: int, *, count: int) -> Iterator[list[int]]:
    """Rows by falling score, then in their order: a first page about `k` long, the rest in pages that grow.

    `count` of the scores are finite; the others are never given.
    """
    first = _best_rows(scores, min(k, count))
    yield first
    if len(first) < count:
        order = _ordered(scores, np.flatnonzero(np.isfinite(scores)))
        start, size = len(first), 4 * max(k, 16)
        while start < len(order):
            yield order[start : start + size]
            start, size = start + size, size * 2


def _products(units: FloatMatrix, segment: Segment[Key]) -> FloatMatrix:
    products = units @ segment.buffer[: segment.length].T
    if segment.dead is not None:
        products[:, segment.dead] = -np.inf
    return products


def _best_rows(scores: FloatVector | DoubleVector, k: int) -> list[int]:
    """The first `k` rows of the whole order, without ordering the rest."""
    if k >= len(scores):
        return _ordered(scores, np.flatnonzero(np.isfinite(scores)))
    return _ordered(scores, np.flatnonzero(scores >= _least_of_best(scores, k)))[:k]


def _least_of_best(scores: FloatVector | DoubleVector, k: int) -> float:
    """A score that at least `k` of more than `k` scores reach, and few others.

    The best scores of many runs are far fewer than all, and `k` of them reach the `k`-th best of them.
    """
    runs = len(scores) // _RUN
    if runs > 4 * k:
        tops = scores[: runs * _RUN].reshape(runs, _RUN).max(axis=1)
        least = float(np.partition(tops, runs - k)[runs - k])
        if np.isfinite(least):
            return least
    return float(np.partition(scores, len(scores) - k)[len(scores) - k])


def _first_of(rows: NDArray[np.intp], scores: FloatVector, k: int) -> list[tuple[int, float]]:
    """The best `k` of some rows and their scores, equal ones by row; [] unless there are so many."""
    if len(rows) > k:
        good = np.flatnonzero(scores >= _least_of_best(scores, k))
        rows, scores = rows[good], scores[good]
    order = np.lexsort((rows, -scores))[:k]
    if len(order) < k or not np.isfinite(scores[order[-1]]):
        return []
    return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))


def _ordered(scores: FloatVector | DoubleVector, rows: NDArray[np.intp]) -> list[int]:
    """`rows`, which are in order, by score and then as they were added."""
    order: list[int] = rows[np.argsort(-scores[rows], kind="stable")].tolist()
    return order
