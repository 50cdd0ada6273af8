"""A vector store of one's own that finds approximately: rows by the signs of a few random directions.

Two rows on the same sides of six random planes are likely to be near each other; a question looks at the
rows of its own box and of the boxes that differ by one side. Run it: `python examples/own_vector_store.py`.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from dialoom.llm import OfflineProvider
from dialoom.rag import (
    Chunk,
    ChunkFilter,
    DocumentChunks,
    FloatMatrix,
    FloatVector,
    HashEmbedder,
    IndexManifest,
    LoadOptions,
    ScoredChunk,
    SlidingWindowChunker,
    VectorStore,
    build_rag_query_graph,
    check_manifest,
    ingest_documents,
    load_document,
)

PLANES = 6


class BoxStore(VectorStore):
    """Chunks in boxes by the signs of their vectors along random directions. Keeps everything in memory.

    Vectors have to be of length 1, as embedders make them, and one thread may use it at a time.
    """

    def __init__(self, dim: int) -> None:
        self._planes = np.random.default_rng(0).normal(size=(dim, PLANES)).astype(np.float32)
        self._boxes: defaultdict[int, dict[str, tuple[Chunk, FloatVector]]] = defaultdict(dict)
        self._manifest: IndexManifest | None = None

    @property
    def manifest(self) -> IndexManifest | None:
        return self._manifest

    def claim(self, manifest: IndexManifest) -> None:
        if self._manifest is not None:
            check_manifest(self._manifest, manifest)
        self._manifest = manifest

    def add(self, chunks: Sequence[Chunk], vectors: FloatMatrix) -> None:
        for chunk, vector in zip(chunks, vectors, strict=True):
            self.remove(chunk.id)
            self._boxes[self._box(vector)][chunk.id] = (chunk, vector)

    def remove(self, chunk_id: str) -> bool:
        return any(box.pop(chunk_id, None) is not None for box in self._boxes.values())

    def replace_documents(self, documents: Sequence[DocumentChunks]) -> None:
        for document in documents:
            for chunk in [each for each in self._chunks() if each.doc_id == document.doc_id]:
                self.remove(chunk.id)
            self.add(document.chunks, document.vectors)

    def search(
        self, query: FloatVector, k: int, *, min_score: float | None = None, where: ChunkFilter | None = None
    ) -> list[ScoredChunk]:
        box = self._box(query)
        near = [box, *(box ^ (1 << plane) for plane in range(PLANES))]
        hits = [
            ScoredChunk(chunk, float(vector @ query))
            for number in near
            for chunk, vector in self._boxes.get(number, {}).values()
            if where is None or where(chunk)
        ]
        wanted = [hit for hit in hits if min_score is None or hit.score >= min_score]
        return sorted(wanted, key=lambda hit: -hit.score)[:k]

    def documents(self) -> list[str]:
        return sorted({chunk.doc_id for chunk in self._chunks()})

    def clear(self) -> None:
        self._boxes.clear()
        self._manifest = None

    def __len__(self) -> int:
        return sum(map(len, self._boxes.values()))

    def _chunks(self) -> Iterator[Chunk]:
        return (chunk for box in self._boxes.values() for chunk, _ in box.values())

    def _box(self, vector: FloatVector) -> int:
        """The number of the box: one bit per plane, set on one side of it."""
        return int(((vector @ self._planes) > 0) @ (1 << np.arange(PLANES)))


async def main() -> None:
    embedder = HashEmbedder()
    store = BoxStore(embedder.dim)
    documents = load_document(Path(__file__).with_name("kb"), LoadOptions(html_mode="main"))
    report = await ingest_documents(store, embedder, SlidingWindowChunker(), documents)
    print(f"{report.documents} documents, {len(store)} passages")
    graph = build_rag_query_graph(store, embedder, OfflineProvider()).build()
    result = await graph.run({"query": "For which products is click and collect free of charge?"})
    state = result.raise_for_error().state
    print(state["answer"])
    for source in state["answer_sources"]:
        print(f"[{source.index}] {source.title}")


if __name__ == "__main__":
    asyncio.run(main())
