"""Small chunks are found, and the section they stand in is returned."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from dialoom.rag.counts import check_count
from dialoom.rag.passage import joined_text
from dialoom.rag.retrieve import Retriever, Search, only, same_section
from dialoom.rag.store import PassageReader
from dialoom.rag.types import Chunk, ScoredChunk


class ParentChildRetriever:
    """What another retriever finds, each with its neighbours under the same headings, up to `max_chars`.

    Chunks that meet in one section become one, under the id of the best of them and with its score.
    Neighbours that the search's filter does not let through stay out.
    """

    def __init__(self, child: Retriever, store: PassageReader, *, max_chars: int = 2_000) -> None:
        check_count(max_chars, "max_chars")
        self._child = child
        self._store = store
        self._max_chars = max_chars

    async def retrieve(self, search: Search) -> list[ScoredChunk]:
        hits = await self._child.retrieve(search)
        return await asyncio.to_thread(self._parents, hits, search)

    def _parents(self, hits: Sequence[ScoredChunk], search: Search) -> list[ScoredChunk]:
        keep = search.filter
        siblings = {
            doc_id: [chunk for chunk in self._store.chunks_of(doc_id) if keep is None or keep(chunk)]
            for doc_id in dict.fromkeys(hit.chunk.doc_id for hit in hits)
        }
        parents: list[ScoredChunk] = []
        for hit in hits:
            if not any(_holds(parent.chunk, hit.chunk) for parent in parents):
                parents.append(ScoredChunk(self._around(hit.chunk, siblings[hit.chunk.doc_id]), hit.score))
        return only(parents, keep)

    def _around(self, child: Chunk, siblings: Sequence[Chunk]) -> Chunk:
        """The child and as many neighbours as fit, after it first: an answer follows what it is about."""
        at = next((place for place, chunk in enumerate(siblings) if chunk.id == child.id), None)
        if at is None:
            return child
        first = last = at
        while last + 1 < len(siblings) and self._fits(child, siblings[first], siblings[last + 1]):
            last += 1
        while first > 0 and self._fits(child, siblings[first - 1], siblings[last]):
            first -= 1
        return _whole(child, siblings[first : last + 1])

    def _fits(self, child: Chunk, first: Chunk, last: Chunk) -> bool:
        inside = same_section(first, child) and same_section(last, child)
        return inside and last.end - first.start <= self._max_chars


def _holds(parent: Chunk, child: Chunk) -> bool:
    return parent.doc_id == child.doc_id and parent.start <= child.start and child.end <= parent.end


def _whole(child: Chunk, parts: Sequence[Chunk]) -> Chunk:
    text = parts[0].text
    for before, part in pairwise(parts):
        text = joined_text(text, part, gap=part.start - before.end)
    return msgspec.structs.replace(
        child,
        text=text,
        start=parts[0].start,
        end=parts[0].start + len(text),
        page=parts[0].page,
    )
