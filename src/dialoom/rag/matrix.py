"""Exact search over unit vectors in memory. A reader sees one moment of it, whatever writers do meanwhile."""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from dialoom.rag.errors import DimensionMismatchError, NonFiniteVectorError
from dialoom.rag.types import FloatMatrix, FloatVector

SEGMENT_ROWS = 65_536
_DEAD_SHARE = 0.25
_FIRST_ROWS = 256
_LAST_DOUBLING = 4_096
_QUERIES_AT_ONCE = 64
_RUN = 64
_SAFE_NORMS = (1e-15, 1e15)  # between these the square of a float32 neither vanishes nor overflows

Key = TypeVar("Key")
DoubleVector = NDArray[np.float64]


class _Segment(msgspec.Struct, Generic[Key], frozen=True):
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
    segments: tuple[_Segment[Key], ...] = ()
    alive: int = 0

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
        there are enough. `query` need not be of length 1.
        """
        found: list[tuple[Key, float]] = []
        if k <= 0 or self.alive == 0:
            return found
        scores = self._scores(unit_rows(check_query(query, self.dim)[None, :])[0])
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


class Matrix(Generic[Key]):
    """Rows by key. One writer at a time; `snapshot` may be taken and searched at any moment by anyone."""

    def __init__(self) -> None:
        self._rows: dict[Key, int] = {}  # segment * SEGMENT_ROWS + row
        self.snapshot: Snapshot[Key] = Snapshot()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: Key) -> bool:
        return key in self._rows

    def replace(self, remove: Sequence[Key], keys: Sequence[Key], vectors: FloatMatrix) -> None:
        """Take out `remove`, put in `keys` with their rows, and show both to readers at once.

        `keys` are distinct, and those still present are replaced; `vectors` have passed `check_rows`.
        """
        rows = self._rows
        gone = [rows.pop(key) for group in (remove, keys) for key in group if key in rows]
        segments = _bury(self.snapshot.segments, gone)
        dim = self.snapshot.dim if self._rows or not keys else vectors.shape[1]
        if not self._rows:
            segments = ()
        if keys:
            segments = self._append(segments, keys, vectors)
        if sum(segment.length for segment in segments) * (1 - _DEAD_SHARE) > len(self._rows):
            segments = self._compacted(segments)
        self.snapshot = Snapshot(dim, segments, len(self._rows))

    def take(self, keys: Sequence[Key]) -> FloatMatrix:
        """The unit rows of some keys, all of which are there. Not while another thread writes."""
        places = [self._rows[key] for key in keys]
        segments = self.snapshot.segments
        taken = np.empty((len(keys), self.snapshot.dim or 0), np.float32)
        for at, place in enumerate(places):
            taken[at] = segments[place // SEGMENT_ROWS].buffer[place % SEGMENT_ROWS]
        return taken

    def clear(self) -> None:
        self._rows = {}
        self.snapshot = Snapshot()

    def _append(
        self,
        segments: tuple[_Segment[Key], ...],
        keys: Sequence[Key],
        rows: FloatMatrix,
        *,
        are_units: bool = False,
    ) -> tuple[_Segment[Key], ...]:
        """`are_units`: the rows have been scaled; doing it again could change the last bit of a score."""
        grown = list(segments)
        start = 0
        while start < len(keys):
            if not grown or grown[-1].length == SEGMENT_ROWS:
                grown.append(_Segment(np.empty((0, rows.shape[1]), np.float32), [], 0))
            count = min(len(keys) - start, SEGMENT_ROWS - grown[-1].length)
            taken = keys[start : start + count]
            row = (len(grown) - 1) * SEGMENT_ROWS + grown[-1].length
            self._rows.update(zip(taken, range(row, row + count), strict=True))
            grown[-1] = _extended(grown[-1], taken, rows[start : start + count], are_units=are_units)
            start += count
        return tuple(grown)

    def _compacted(self, segments: tuple[_Segment[Key], ...]) -> tuple[_Segment[Key], ...]:
        self._rows = {}
        packed: tuple[_Segment[Key], ...] = ()
        for segment in segments:
            packed = self._append(packed, segment.living_keys(), segment.living_rows(), are_units=True)
        return packed


def check_query(query: FloatVector, dim: int | None) -> FloatVector:
    """The question's vector as float32, or the error that says why it cannot be compared."""
    vector = np.asarray(query, np.float32)
    if vector.ndim != 1:
        raise DimensionMismatchError(f"a question is one vector, not an array of shape {vector.shape}")
    return check_rows(vector[None, :], dim)[0]


def check_rows(vectors: FloatMatrix, dim: int | None) -> FloatMatrix:
    """The vectors as a float32 matrix whose rows may join an index of dimension `dim`.

    Raises `DimensionMismatchError` and `NonFiniteVectorError`.
    """
    matrix = np.asarray(vectors, np.float32)
    width = matrix.shape[1] if matrix.ndim == 2 else 0
    if matrix.ndim != 2 or (len(matrix) and width != (dim or max(width, 1))):
        held = "one row per chunk" if dim is None else f"dimension {dim}"
        raise DimensionMismatchError(f"vectors of shape {matrix.shape} do not fit an index of {held}")
    if not np.isfinite(matrix).all():
        raise NonFiniteVectorError("a vector holds NaN or infinity; nothing of this batch was stored")
    return matrix


def unit_rows(vectors: FloatMatrix, out: FloatMatrix | None = None) -> FloatMatrix:
    """Each row scaled to length 1, into `out` if given; a row of zeros stays as it is."""
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    odd = ~((norms > _SAFE_NORMS[0]) & (norms < _SAFE_NORMS[1]))
    if odd.any():  # row by row, so that a row's unit never depends on its neighbours
        vectors = vectors.copy()
        largest = np.abs(vectors[odd]).max(axis=1)
        largest[largest == 0] = 1.0
        vectors[odd] /= largest[:, None]
        norms[odd] = np.sqrt(np.einsum("ij,ij->i", vectors[odd], vectors[odd]))
        norms[norms == 0] = 1.0
    return np.divide(vectors, norms[:, None], out=out)


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


def _products(units: FloatMatrix, segment: _Segment[Key]) -> FloatMatrix:
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


def _ordered(scores: FloatVector | DoubleVector, rows: NDArray[np.intp]) -> list[int]:
    """`rows`, which are in order, by score and then as they were added."""
    order: list[int] = rows[np.argsort(-scores[rows], kind="stable")].tolist()
    return order


def _extended(
    segment: _Segment[Key], keys: Sequence[Key], rows: FloatMatrix, *, are_units: bool
) -> _Segment[Key]:
    """The segment with more rows, scaled. Readers of the old one never look past its length."""
    length = segment.length + len(rows)
    buffer = segment.buffer
    if length > len(buffer):
        # past a few thousand rows a whole segment is asked for: its pages cost nothing until they are written
        grown = max(length, 2 * len(buffer), _FIRST_ROWS)
        capacity = SEGMENT_ROWS if grown > _LAST_DOUBLING else min(grown, SEGMENT_ROWS)
        buffer = np.empty((capacity, rows.shape[1]), np.float32)
        buffer[: segment.length] = segment.buffer[: segment.length]
    if are_units:
        buffer[segment.length : length] = rows
    else:
        unit_rows(rows, out=buffer[segment.length : length])
    segment.keys.extend(keys)
    dead = segment.dead
    if dead is not None:
        dead = np.concatenate([dead, np.zeros(len(rows), np.bool_)])
    return _Segment(buffer, segment.keys, length, dead)


def _bury(segments: tuple[_Segment[Key], ...], places: Sequence[int]) -> tuple[_Segment[Key], ...]:
    marked = list(segments)
    rows_of: dict[int, list[int]] = {}
    for place in places:
        rows_of.setdefault(place // SEGMENT_ROWS, []).append(place % SEGMENT_ROWS)
    for index, rows in rows_of.items():
        old = marked[index]
        dead = np.zeros(old.length, np.bool_) if old.dead is None else old.dead.copy()
        dead[rows] = True
        marked[index] = _Segment(old.buffer, old.keys, old.length, dead)
    return tuple(marked)
