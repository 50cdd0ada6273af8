"""Figures from ranks, with the interval in which chance alone would let them lie."""

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

DEPTH = 10
_DRAWS = 1_000
_VALUES_AT_ONCE = 1_000_000

Values = NDArray[np.float64]


class Outcome(msgspec.Struct, frozen=True):
    """One question: which of the chunks found hold the answer, and how many of the index do."""

    hits: tuple[bool, ...]
    relevant: int

    @property
    def rank(self) -> int:
        """The place of the first chunk with the answer, from 1; 0 when none was found."""
        return self.hits.index(True) + 1 if True in self.hits else 0


class Figure(msgspec.Struct, frozen=True):
    """A mean over questions, and the 95 % interval of the mean by bootstrap."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def recall_at(k: int) -> Callable[[Outcome], float]:
    """1 when the answer is among the first `k` chunks, else 0."""
    return lambda outcome: float(0 < outcome.rank <= k)


def reciprocal_rank(outcome: Outcome) -> float:
    """1 over the place of the first chunk with the answer, as far as was looked."""
    return 1 / outcome.rank if outcome.rank else 0.0


def ndcg(outcome: Outcome) -> float:
    """Discounted gain of all chunks with the answer against the best order there is."""
    gain = sum(1 / math.log2(place + 1) for place, hit in enumerate(outcome.hits, 1) if hit)
    best = sum(1 / math.log2(place + 1) for place in range(1, min(outcome.relevant, len(outcome.hits)) + 1))
    return gain / best if best else 0.0


def figure(values: Sequence[float]) -> Figure:
    """The mean and its interval; the same values always give the same."""
    told: Values = np.array(values, np.float64)
    if not len(told):
        return Figure(0.0, 0.0, 0.0)
    rng = np.random.default_rng(len(told))
    at_once = max(_VALUES_AT_ONCE // len(told), 1)
    sizes = [min(at_once, _DRAWS - drawn) for drawn in range(0, _DRAWS, at_once)]
    means = np.concatenate([rng.choice(told, (size, len(told))).mean(axis=1) for size in sizes])
    low, high = np.quantile(means, [0.025, 0.975])
    return Figure(float(told.mean()), float(low), float(high))
