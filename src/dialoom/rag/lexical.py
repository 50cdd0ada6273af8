"""Chunks found by their words: BM25 over the tokens of `words`, computed as SQLite's FTS5 does."""

from typing import Protocol, runtime_checkable

from dialoom.rag.store import ChunkFilter
from dialoom.rag.types import ScoredChunk


@runtime_checkable
class LexicalIndex(Protocol):
    """Finds chunks by the words they share with a question. Both of our stores do."""

    def search_words(self, question: str, k: int, *, where: ChunkFilter | None = None) -> list[ScoredChunk]:
        """The `k` best of the chunks that hold at least one word of the question, best first.

        A score is BM25 (k1 1.2, b 0.75): above 0, without an upper end, to be compared within one answer
        only. Equal ones come in the order they were stored. User text is never query syntax.
        """
        ...
