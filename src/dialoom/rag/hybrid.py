"""Words and vectors together: the retriever that a question goes through unless another one is named."""

import asyncio
import logging
import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from dialoom.llm.offline.kin import kin_of
from dialoom.rag.embed import Embedder, HashEmbedder, languages_of
from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.fusion import (
    RANK_CONSTANT,
    above_the_least,
    fuse_ranks,
    fuse_scores,
    one_after_the_other,
)
from dialoom.rag.lexical import LexicalIndex
from dialoom.rag.passage import indexed_text
from dialoom.rag.retrieve import LexicalRetriever, Search, VectorRetriever, check_search, vectors_of
from dialoom.rag.rows import unit_rows
from dialoom.rag.scripts import name_scripts, scripts_of, scripts_of_languages
from dialoom.rag.store import PassageReader, VectorStore
from dialoom.rag.types import FloatVector, ScoredChunk
from dialoom.rag.words import tokens

Fusion = Literal["auto", "rrf", "weighted"]

_log = logging.getLogger("dialoom.rag")
_LEAST_POOL = 50
_SAMPLED_DOCUMENTS = 24
_SAMPLED_CHUNKS = 4
_LOOKED_AT = 3


class FusionWeights(msgspec.Struct, frozen=True, kw_only=True):
    """How much words and vectors count, and how steeply places fall; `tune` finds them for your questions."""

    words: float = 1.0
    vectors: float = 1.0
    constant: int = RANK_CONSTANT

    def __post_init__(self) -> None:
        for weight in (self.words, self.vectors):
            if not 0 <= weight < math.inf:
                raise InvalidOptionsError(f"a weight must be a number from 0 up, not {weight}")
        if self.words + self.vectors == 0 or self.constant < 0:
            raise InvalidOptionsError("one of the weights must be above 0, and the constant 0 or more")


_BY_SCORES = FusionWeights(words=0.7, vectors=0.3)
"""The best of those tried on three sets with a model that is no better than words (decision 0120)."""


class HybridRetriever:
    """Words and vectors, each asked for more than is wanted, and their rankings made one.

    `rrf` adds reciprocal places, `weighted` adds scores, .7 of it those of words unless `weights` say
    otherwise. `auto` is `weighted` with a model. With `HashEmbedder`, which knows no more than words do, and
    for a question in a script that the model does not know, it takes what words find first and only fills up
    with what is near; what the best hits do not say is looked for in other words too (`kin_of`). A store
    without words is searched by vectors.

    A score is from 0 to 1, and 1 is the first of every ranking (see `fusion`); to be compared within one
    answer only. Raises what `VectorRetriever` does.
    """

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        *,
        fusion: Fusion = "auto",
        weights: FusionWeights | None = None,
    ) -> None:
        if fusion not in ("auto", "rrf", "weighted"):
            raise InvalidOptionsError(f'fusion must be "auto", "rrf" or "weighted", not {fusion!r}')
        self._store = store
        self._embedder = embedder
        self._fusion: Fusion = fusion
        self._weights = weights or (FusionWeights() if fusion == "rrf" else _BY_SCORES)
        self._near = VectorRetriever(store, embedder)
        self._words = LexicalRetriever(store) if isinstance(store, LexicalIndex) else None
        self._warned = False

    async def retrieve(self, search: Search) -> list[ScoredChunk]:
        check_search(search)
        await self._warn_once()
        if self._words is None:
            near = await self._near.retrieve(search)
            return one_after_the_other([near])
        vector = await self._near.embed(search.text)
        pool = msgspec.structs.replace(search, k=max(4 * search.k, _LEAST_POOL), min_score=None)
        words = await self._words.retrieve(pool)
        if self._takes_words_first(search.text):
            if meant := _untold(search.text, words[:_LOOKED_AT]):
                asked = msgspec.structs.replace(pool, text=f"{search.text} {meant}")
                words = await self._words.retrieve(asked)
            fused = one_after_the_other([words])
            if len(fused) < search.k:
                near = await asyncio.to_thread(self._store.search, vector, pool.k, where=pool.filter)
                fused = one_after_the_other([words, near])
        else:
            near = await asyncio.to_thread(self._store.search, vector, pool.k, where=pool.filter)
            fused = self._fuse(words, near)
        if search.min_score is not None:
            fused = await self._near_enough(fused, vector, search.min_score)
        return fused[: search.k]

    async def unknown_scripts(self) -> frozenset[str]:
        """The scripts of the stored text, as far as a sample shows, that the model was not trained on."""
        known = self._known_scripts()
        if known is None or not isinstance(self._store, PassageReader):
            return frozenset()
        return await asyncio.to_thread(self._sampled_scripts, self._store) - known

    def _fuse(self, words: list[ScoredChunk], near: list[ScoredChunk]) -> list[ScoredChunk]:
        weights = [self._weights.words, self._weights.vectors]
        if self._fusion == "rrf":
            return fuse_ranks([words, near], weights, constant=self._weights.constant)
        return fuse_scores([words, above_the_least(near)], weights)

    def _takes_words_first(self, question: str) -> bool:
        if self._fusion != "auto":
            return False
        known = self._known_scripts()
        return isinstance(self._embedder, HashEmbedder) or (
            known is not None and not scripts_of(question) <= known
        )

    def _known_scripts(self) -> frozenset[str] | None:
        languages = languages_of(self._embedder)
        return scripts_of_languages(languages) if languages else None

    def _sampled_scripts(self, store: PassageReader) -> frozenset[str]:
        documents = self._store.documents()
        step = max(len(documents) // _SAMPLED_DOCUMENTS, 1)
        sample = [
            chunk.text for doc_id in documents[::step] for chunk in store.chunks_of(doc_id)[:_SAMPLED_CHUNKS]
        ]
        return scripts_of(" ".join(sample))

    async def _warn_once(self) -> None:
        if self._warned:
            return
        self._warned = True
        if unknown := await self.unknown_scripts():
            _log.warning(
                "the index holds %s text, which the embedding model does not know; choose a model for it",
                name_scripts(unknown),
                extra={"model": self._embedder.model},
            )

    async def _near_enough(
        self, hits: list[ScoredChunk], vector: FloatVector, least: float
    ) -> list[ScoredChunk]:
        rows = await vectors_of(hits, self._store, self._embedder)
        cosines = unit_rows(rows) @ unit_rows(np.asarray(vector, np.float32)[None, :])[0]
        return [hit for hit, cosine in zip(hits, cosines.tolist(), strict=True) if cosine >= least]


def _untold(question: str, hits: Sequence[ScoredChunk]) -> str:
    """Other words for those of a question that its best hits do not say; no vectors are there for that."""
    told = frozenset(token for hit in hits for token in tokens(indexed_text(hit.chunk)))
    kin = (others for said, others in kin_of(question) if len(said) > 1 or told.isdisjoint(said))
    return " ".join(sorted(frozenset[str]().union(*kin)))
