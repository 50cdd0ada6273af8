"""Questions go in, chunks come out, best first: by vectors or by words."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec

from dialoom.base.errors import UsageError
from dialoom.llm.given import expect_text, named
from dialoom.rag.counts import check_count
from dialoom.rag.embed import Embedder, check_vectors
from dialoom.rag.errors import EmptyQueryError, InvalidOptionsError, ManifestMissingError
from dialoom.rag.filters import CONDITIONS, And, VisibleTo
from dialoom.rag.lexical import LexicalIndex
from dialoom.rag.manifest import check_embedder
from dialoom.rag.passage import indexed_text
from dialoom.rag.store import ChunkFilter, PassageReader, VectorStore
from dialoom.rag.types import Chunk, FloatMatrix, FloatVector, ScoredChunk


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for.

    Raises `EmptyQueryError`, `UsageError` for a question that is no text, `InvalidOptionsError` for a `k`
    below 1.
    """

    text: str
    """The question."""
    k: int = 6
    """At most this many chunks are wanted."""
    where: ChunkFilter | None = None
    """Only chunks for which this is true: a condition of `filters`, or a function."""
    principals: tuple[str, ...] | None = None
    """Who asks, by all names they go by: only chunks they may see are found (`VisibleTo`). None sees all."""
    min_score: float | None = None
    """Chunks less near to the question than this cosine are left out, however they were found."""

    def __post_init__(self) -> None:
        if not expect_text(self.text, "the question", '"How long do refunds take?"').strip():
            raise EmptyQueryError("the question is empty; ask something")
        check_count(self.k, "k")

    @property
    def filter(self) -> ChunkFilter | None:
        """`where`, and who may see what."""
        return both(visible_to(self.principals), self.where)


class Retriever(Protocol):
    """Finds chunks for a question. It must never return one that `search.filter` does not let through."""

    async def retrieve(self, search: Search) -> list[ScoredChunk]:
        """At most `search.k` chunks, best first. What a score means is for each retriever to say."""
        ...


class VectorRetriever:
    """The chunks nearest to the question. A score is the cosine, from -1 to 1.

    Raises `ManifestMismatchError` when another embedder made the store's vectors, `ManifestMissingError`,
    `EmbedderContractError`.
    """

    def __init__(self, store: VectorStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder

    async def retrieve(self, search: Search) -> list[ScoredChunk]:
        check_search(search)
        vector = await self.embed(search.text)
        return await asyncio.to_thread(
            self._store.search, vector, search.k, min_score=search.min_score, where=search.filter
        )

    async def embed(self, question: str) -> FloatVector:
        """The question's vector, once it is known that the store's can be compared with it."""
        await asyncio.to_thread(self._check_store)
        vector = await self._embedder.embed_query(question)
        return check_vectors(vector[None, :], texts=1, embedder=self._embedder)[0]

    def _check_store(self) -> None:
        manifest = self._store.manifest
        if manifest is not None:
            check_embedder(manifest, self._embedder)
        elif len(self._store):
            raise ManifestMissingError(
                "the index does not say what made its vectors; clear it and ingest the documents again"
            )


class LexicalRetriever:
    """The chunks that share words with the question. A score is BM25, above 0 and without an upper end.

    It compares no vectors: `min_score` is refused with `InvalidOptionsError`.
    """

    def __init__(self, index: LexicalIndex) -> None:
        self._index = index

    async def retrieve(self, search: Search) -> list[ScoredChunk]:
        check_search(search)
        if search.min_score is not None:
            raise InvalidOptionsError("min_score is a cosine, which words do not have; leave it out")
        return await asyncio.to_thread(self._index.search_words, search.text, search.k, where=search.filter)


def check_search(search: object) -> None:
    """Raise `UsageError` unless it is a `Search`; words alone are what is often given instead."""
    if not isinstance(search, Search):
        raise UsageError(f"what is looked for is {named(search)}; give a Search(text=...)")


async def vectors_of(
    hits: Sequence[ScoredChunk], store: VectorStore | PassageReader | None, embedder: Embedder
) -> FloatMatrix:
    """The vectors of chunks that were found: read from the store where it can tell, embedded again else."""
    if isinstance(store, PassageReader):
        return await asyncio.to_thread(store.vectors, [hit.chunk.id for hit in hits])
    rows = await embedder.embed_documents([indexed_text(hit.chunk) for hit in hits])
    return check_vectors(rows, texts=len(hits), embedder=embedder)


def visible_to(principals: tuple[str, ...] | None) -> VisibleTo | None:
    """Who may see what, None for an owner who sees all."""
    return None if principals is None else VisibleTo(principals)


def both(first: ChunkFilter | None, second: ChunkFilter | None) -> ChunkFilter | None:
    """A filter that lets through what both do; conditions stay data."""
    if first is None or second is None:
        return first or second
    if isinstance(first, CONDITIONS) and isinstance(second, CONDITIONS):
        return And((first, second))
    return lambda chunk: first(chunk) and second(chunk)


def only(chunks: Sequence[ScoredChunk], keep: ChunkFilter | None) -> list[ScoredChunk]:
    """The hits that a filter lets through."""
    return [hit for hit in chunks if keep is None or keep(hit.chunk)]


def same_section(first: Chunk, second: Chunk) -> bool:
    """Whether two chunks of one document stand under the same headings."""
    return first.doc_id == second.doc_id and first.heading_path == second.heading_path
