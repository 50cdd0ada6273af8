"""Candidates in a better order: for variety here, or by whatever a user's own reranker knows."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dialoom.base.errors import DialoomError
from dialoom.rag.embed import Embedder
from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.retrieve import vectors_of
from dialoom.rag.rows import unit_rows
from dialoom.rag.store import PassageReader
from dialoom.rag.types import FloatMatrix, ScoredChunk


class RerankError(DialoomError):
    """A reranker could not be reached, or answered with nonsense. The order of the search still holds."""

    code = "rerank"


class Reranker(Protocol):
    """Chooses the best of some candidates."""

    async def rerank(self, question: str, hits: Sequence[ScoredChunk], k: int) -> list[ScoredChunk]:
        """At most `k` of the hits, best first, each at most once; it may give them scores of its own."""
        ...


class MMRReranker:
    """Maximal marginal relevance: the next hit is relevant, and unlike those already chosen.

    `rerank_lambda` is from 0 to 1: 1 is pure relevance, the order of the search; 0 is pure variety after the
    first hit. Relevance is the hit's score, scaled so that the best candidate has 1 and the worst 0; likeness
    is the cosine of two chunks. Scores stay those of the search. Vectors are read from `store`, or made by
    `embedder` when there is none.
    """

    def __init__(
        self, embedder: Embedder, store: PassageReader | None = None, *, rerank_lambda: float = 0.6
    ) -> None:
        if not 0 <= rerank_lambda <= 1:
            raise InvalidOptionsError(f"rerank_lambda must be from 0 to 1, not {rerank_lambda}")
        self._embedder = embedder
        self._store = store
        self._lambda = rerank_lambda

    async def rerank(self, question: str, hits: Sequence[ScoredChunk], k: int) -> list[ScoredChunk]:  # noqa: ARG002 - the protocol's
        if not hits or k <= 0:
            return []
        vectors = unit_rows(await vectors_of(hits, self._store, self._embedder))
        relevance = _scaled([hit.score for hit in hits])
        return [hits[place] for place in mmr_order(relevance, vectors, k, rerank_lambda=self._lambda)]


def mmr_order(
    relevance: NDArray[np.float64], vectors: FloatMatrix, k: int, *, rerank_lambda: float
) -> list[int]:
    """The places of the `k` chosen: each time the most of `lambda * relevance - (1 - lambda) * likeness`.

    `likeness` is the greatest cosine to one chosen before; the first is the most relevant. Of equal ones the
    earlier is chosen.
    """
    left = list(range(len(relevance)))
    likeness = np.zeros(len(relevance))
    chosen: list[int] = []
    while left and len(chosen) < k:
        worth = rerank_lambda * relevance[left] - (1 - rerank_lambda) * likeness[left]
        best = left.pop(int(np.argmax(relevance[left] if not chosen else worth)))
        cosines = (vectors @ vectors[best]).astype(np.float64)
        likeness = cosines if not chosen else np.maximum(likeness, cosines)
        chosen.append(best)
    return chosen


def _scaled(scores: Sequence[float]) -> NDArray[np.float64]:
    values = np.array(scores, np.float64)
    spread = values.max() - values.min()
    return (values - values.min()) / spread if spread > 0 else np.ones(len(values))
