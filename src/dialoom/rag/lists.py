"""Rows listed by the centre they lie nearest to, so that a search need not look at all of them."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from dialoom.rag.types import FloatMatrix, FloatVector

_MOST_LISTS = 4_096
_SAMPLE_PER_LIST = 32
_ROUNDS = 6
_AT_ONCE = 4_096
_ASKED = 128
_ASKED_AT_ONCE = 8
_NEIGHBOURS = 10
_SHARE = 0.98
_MARGIN = 1.5  # questions lie further from the rows than rows from each other
_LEAST_PROBES = 8
_MOST_PROBED = 0.0625  # rows taken one by one cost four times what a plain scan of them costs
_Numbers = NDArray[np.int32]


class Part(msgspec.Struct, frozen=True):
    """The first `length` rows of one segment: those of list `n` are `rows[starts[n]:starts[n + 1]]`."""

    rows: _Numbers
    starts: _Numbers

    @property
    def length(self) -> int:
        return len(self.rows)

    def of(self, lists: _Numbers) -> _Numbers:
        """The rows of some lists."""
        bounds = zip(self.starts[lists].tolist(), self.starts[lists + 1].tolist(), strict=True)
        return np.concatenate([self.rows[start:stop] for start, stop in bounds])


class Lists(msgspec.Struct, frozen=True):
    """Centres of unit length, the rows near each of them, and in how many lists a search has to look."""

    centres: FloatMatrix
    parts: tuple[Part, ...]
    probes: int

    @property
    def covered(self) -> int:
        """How many rows are listed."""
        return sum(part.length for part in self.parts)

    def nearest(self, unit: FloatVector) -> _Numbers:
        """The lists to look in for what is near to a vector of length 1."""
        near = np.einsum("ij,j->i", self.centres, unit)
        if self.probes >= len(near):
            return np.arange(len(near), dtype=np.int32)
        return np.argpartition(-near, self.probes)[: self.probes].astype(np.int32)


def build_lists(segments: Sequence[FloatMatrix]) -> Lists:
    """List unit rows, which are at least one and do not change meanwhile; the same rows give the same lists.

    About `2 sqrt(n)` lists. A search looks in half more than it takes to find 98 of 100 neighbours of the
    rows themselves, which is measured on a sample here, and in a sixteenth of the lists at most.
    """
    count = sum(map(len, segments))
    chosen = np.random.default_rng(0)
    wanted = min(max(int(2 * count**0.5), 1), _MOST_LISTS, count)
    centres = _trained(_sampled(segments, min(_SAMPLE_PER_LIST * wanted, count), chosen), wanted)
    list_of = [_assigned(rows, centres) for rows in segments]
    parts = tuple(_part(lists, wanted) for lists in list_of)
    return Lists(centres, parts, _probes(segments, centres, list_of, chosen))


def _sampled(segments: Sequence[FloatMatrix], count: int, chosen: np.random.Generator) -> FloatMatrix:
    """`count` of the rows, each at most once, in no order."""
    total = sum(map(len, segments))
    places = np.sort(chosen.choice(total, count, replace=False))
    starts = np.cumsum([0, *map(len, segments)])
    taken = [
        rows[places[(places >= start) & (places < start + len(rows))] - start]
        for rows, start in zip(segments, starts, strict=False)
    ]
    return chosen.permutation(np.concatenate(taken))


def _trained(sample: FloatMatrix, count: int) -> FloatMatrix:
    """`count` centres of a sample by k-means on the sphere; one that nothing is near to stays where it is."""
    centres = sample[:count].copy()
    for _ in range(_ROUNDS):
        lists = _assigned(sample, centres)
        order = np.argsort(lists, kind="stable")
        held, starts = np.unique(lists[order], return_index=True)
        sums = np.add.reduceat(sample[order], starts, axis=0)
        lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
        moved = lengths > 1e-6
        centres[held[moved]] = sums[moved] / lengths[moved, None]
    return centres


def _assigned(rows: FloatMatrix, centres: FloatMatrix) -> _Numbers:
    """The nearest centre of each row."""
    lists = np.empty(len(rows), np.int32)
    for start in range(0, len(rows), _AT_ONCE):
        block = rows[start : start + _AT_ONCE]
        lists[start : start + len(block)] = np.argmax(block @ centres.T, axis=1)
    return lists


def _part(lists: _Numbers, count: int) -> Part:
    starts = np.concatenate([[0], np.cumsum(np.bincount(lists, minlength=count))])
    return Part(np.argsort(lists, kind="stable").astype(np.int32), starts.astype(np.int32))


def _probes(
    segments: Sequence[FloatMatrix],
    centres: FloatMatrix,
    list_of: Sequence[_Numbers],
    chosen: np.random.Generator,
) -> int:
    """In how many lists, nearest first, the true neighbours of most rows are found, with a margin."""
    count = sum(map(len, segments))
    asked = _sampled(segments, min(_ASKED, count), chosen)
    every, needed = np.concatenate(list_of), list[_Numbers]()
    for start in range(0, len(asked), _ASKED_AT_ONCE):  # a few at a time: each has a score for every row
        some = asked[start : start + _ASKED_AT_ONCE]
        neighbours = _nearest(np.concatenate([some @ rows.T for rows in segments], axis=1))
        places = np.argsort(np.argsort(-(some @ centres.T), axis=1), axis=1).astype(np.int32)
        needed.append(np.take_along_axis(places, every[neighbours], axis=1) + np.int32(1))
    enough = _MARGIN * float(np.quantile(np.concatenate(needed), _SHARE))
    most = max(_MOST_PROBED * len(centres), _LEAST_PROBES)
    return int(min(max(enough, _LEAST_PROBES), most, len(centres)))


def _nearest(scores: FloatMatrix) -> NDArray[np.intp]:
    """The columns of the best scores of each row, which is its own neighbour and found for nothing."""
    wanted = min(_NEIGHBOURS + 1, scores.shape[1])
    np.negative(scores, out=scores)
    return np.argpartition(scores, wanted - 1, axis=1)[:, :wanted]
