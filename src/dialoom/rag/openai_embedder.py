"""Vectors from any server with `/embeddings`, in the place of the offline ones."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from dialoom.llm import OpenAIEmbeddings
from dialoom.rag.embed import check_vectors, places_of_words, unit_rows_at
from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.types import FloatMatrix, FloatVector


class OpenAIEmbedder:
    """An `Embedder` over `OpenAIEmbeddings`, which batches, retries and orders.

    `query_prefix` and `document_prefix` go before each text: some models are trained that way ("query: ").
    They belong to what the index is made with, so they are part of `model`. Errors are those of the
    provider, and `EmbedderContractError` when the vectors are not of length `dim`.
    """

    id = "openai"

    def __init__(
        self, embeddings: OpenAIEmbeddings, *, dim: int, query_prefix: str = "", document_prefix: str = ""
    ) -> None:
        if dim < 1:
            raise InvalidOptionsError(f"dim must be 1 or more, not {dim}")
        self.dim = dim
        self.model = "/".join(part for part in (embeddings.model, query_prefix, document_prefix) if part)
        self._embeddings = embeddings
        self._query_prefix = query_prefix
        self._document_prefix = document_prefix

    @classmethod
    async def measured(
        cls, embeddings: OpenAIEmbeddings, *, query_prefix: str = "", document_prefix: str = ""
    ) -> Self:
        """Return an embedder whose `dim` was asked of the server, with one short text."""
        probe = await embeddings.embed([f"{document_prefix}a"])
        return cls(
            embeddings,
            dim=len(probe.vectors[0]),
            query_prefix=query_prefix,
            document_prefix=document_prefix,
        )

    async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        return await self._unit_rows([self._document_prefix + text for text in texts])

    async def embed_query(self, text: str) -> FloatVector:
        return (await self._unit_rows([self._query_prefix + text]))[0]

    async def _unit_rows(self, texts: Sequence[str]) -> FloatMatrix:
        """Return one row per text; a blank one, which servers refuse, is a row of zeros."""
        places = places_of_words(texts)
        if not places:
            return np.zeros((len(texts), self.dim), np.float32)
        answer = await self._embeddings.embed([texts[place] for place in places])
        vectors = check_vectors(np.array(answer.vectors, np.float32), texts=len(places), embedder=self)
        return unit_rows_at(places, vectors, texts=len(texts))
