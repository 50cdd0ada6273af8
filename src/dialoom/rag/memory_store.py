"""The vector store in memory, and its life on disk as one JSON file."""

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from threading import RLock

import msgspec
import numpy as np

from dialoom.rag.errors import (
    CorruptIndexError,
    DimensionMismatchError,
    ManifestMissingError,
    NonFiniteVectorError,
)
from dialoom.rag.index_file import IndexFile, read_index, write_index
from dialoom.rag.lexical import LexicalIndex
from dialoom.rag.lexical_postings import PostingIndex
from dialoom.rag.manifest import IndexManifest, check_manifest
from dialoom.rag.matrix import EXACT_UP_TO, Matrix
from dialoom.rag.passage import in_place, indexed_text
from dialoom.rag.rows import check_rows
from dialoom.rag.store import (
    ChunkFilter,
    DocumentChunks,
    PassageReader,
    SourceChange,
    SourceRecord,
    SyncStore,
    check_chunks,
)
from dialoom.rag.types import Chunk, FloatMatrix, FloatVector, ScoredChunk
from dialoom.rag.words import question_tokens


class InMemoryVectorStore(SyncStore, LexicalIndex, PassageReader):
    """Search over everything in memory; `save` and `load` keep it as one JSON file.

    Readers see one moment of it; writers take turns. The first search for words after a change reads
    the words of what was added. Up to `exact_up_to` chunks every vector is looked at; above that a search
    without a filter looks in lists, which the first one has made on a thread while all are still looked at.
    """

    def __init__(self, *, exact_up_to: int = EXACT_UP_TO) -> None:
        self._lock = RLock()
        self._exact_up_to = exact_up_to
        self._shelf = _Shelf(exact_up_to)

    @property
    def manifest(self) -> IndexManifest | None:
        return self._shelf.manifest

    def claim(self, manifest: IndexManifest) -> None:
        with self._lock:
            self._shelf.claim(manifest)

    def add(self, chunks: Sequence[Chunk], vectors: FloatMatrix) -> None:
        with self._lock:
            self._shelf.add(chunks, vectors)

    def remove(self, chunk_id: str) -> bool:
        with self._lock:
            return self._shelf.remove(chunk_id)

    def replace_documents(self, documents: Sequence[DocumentChunks]) -> None:
        with self._lock:
            self._shelf.replace(documents)

    def search(
        self,
        query: FloatVector,
        k: int,
        *,
        min_score: float | None = None,
        where: ChunkFilter | None = None,
    ) -> list[ScoredChunk]:
        def keep(keys: Sequence[_Held]) -> list[bool]:
            return [where is None or where(key.chunk) for key in keys]

        snapshot = self._shelf.matrix.to_search()
        hits = snapshot.search(query, k, min_score=min_score, keep=keep if where else None)
        return [ScoredChunk(held.chunk, score) for held, score in hits]

    def search_many(self, queries: FloatMatrix, k: int) -> list[list[ScoredChunk]]:
        found = self._shelf.matrix.to_search().search_many(queries, k)
        return [[ScoredChunk(held.chunk, score) for held, score in hits] for hits in found]

    def search_words(self, question: str, k: int, *, where: ChunkFilter | None = None) -> list[ScoredChunk]:
        def keep(keys: Sequence[_Held]) -> list[bool]:
            return [where is None or where(key.chunk) for key in keys]

        words = self._shelf.words
        hits = words.search(question_tokens(question), k, keep=keep if where else None)
        return [ScoredChunk(held.chunk, score) for held, score in hits]

    def vectors(self, chunk_ids: Sequence[str]) -> FloatMatrix:
        with self._lock:
            return self._shelf.vectors(chunk_ids)

    def chunks_of(self, doc_id: str) -> list[Chunk]:
        with self._lock:
            return in_place([held.chunk for held in self._shelf.by_document.get(doc_id, ())])

    def documents(self) -> list[str]:
        with self._lock:
            return sorted(self._shelf.by_document)

    def clear(self) -> None:
        with self._lock:
            self._shelf = _Shelf(self._exact_up_to)

    def make_lists(self) -> None:
        """Make the lists of a large index now, so that the first search need not start it."""
        self._shelf.matrix.make_lists()

    def __len__(self) -> int:
        return len(self._shelf.by_id)

    def sources(self, root: str) -> Mapping[str, SourceRecord]:
        with self._lock:
            records = self._shelf.sources.items()
            return {
                name: record for name, record in records if root in {record.root, name} or _below(name, root)
            }

    def change_sources(self, changes: Sequence[SourceChange], *, forget: Sequence[str] = ()) -> None:
        with self._lock:
            self._shelf.change_sources(changes, forget)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to `path`, which holds the old index or the new one at any moment.

        Raises `StoreError` when it cannot be written.
        """
        with self._lock:
            index = self._shelf.index()
        write_index(path, index)

    def load(self, path: str | os.PathLike[str]) -> bool:
        """Become what `save` wrote; False, and no change, when there is no such file.

        Raises `CorruptIndexError` or `ManifestMissingError`, and then this store is as it was.
        """
        index = read_index(path)
        if index is None:
            return False
        shelf = _Shelf(self._exact_up_to)
        shelf.manifest = index.manifest
        try:
            shelf.add(index.chunks, index.vectors)
        except (DimensionMismatchError, NonFiniteVectorError) as error:
            message = f"{os.fspath(path)} holds vectors that do not fit it; remove it and ingest again"
            raise CorruptIndexError(message) from error
        shelf.sources = {record.source: record for record in index.sources}
        shelf.source_of = dict(index.source_of)
        with self._lock:
            self._shelf = shelf
        return True


class _Held(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A chunk as a key of the matrix: equal only to itself, so a reader keeps the text it found.

    Nothing a chunk holds can lead back to it, so the collector of cycles need not look at each of them.
    """

    chunk: Chunk


class _Shelf:
    """What the store holds. One writer at a time; every change is checked whole before it begins."""

    def __init__(self, exact_up_to: int) -> None:
        self.matrix: Matrix[_Held] = Matrix(exact_up_to=exact_up_to)
        self.words: PostingIndex[_Held] = PostingIndex(lambda held: indexed_text(held.chunk))
        self.by_id: dict[str, _Held] = {}
        self.by_document: defaultdict[str, list[_Held]] = defaultdict(list)
        self.sources: dict[str, SourceRecord] = {}
        self.source_of: dict[str, str] = {}
        self.manifest: IndexManifest | None = None

    def claim(self, manifest: IndexManifest) -> None:
        if self.manifest is not None:
            check_manifest(self.manifest, manifest)
        elif self.by_id:
            raise ManifestMissingError(
                "the index holds chunks but no manifest; clear it and ingest the documents again"
            )
        self.manifest = manifest

    def add(self, chunks: Sequence[Chunk], vectors: FloatMatrix) -> None:
        check_chunks(chunks, vectors)
        if chunks:
            self._swap([], [(chunks, check_rows(vectors, self._dim()))])

    def remove(self, chunk_id: str) -> bool:
        held = self.by_id.get(chunk_id)
        if held is not None:
            self._swap([held], [])
        return held is not None

    def replace(self, documents: Sequence[DocumentChunks], gone: Iterable[str] = ()) -> None:
        dim = self._dim()
        puts: list[tuple[Sequence[Chunk], FloatMatrix]] = []
        for document in {document.doc_id: document for document in documents}.values():
            document.check()
            if document.chunks:
                rows = check_rows(document.vectors, dim)
                dim = rows.shape[1]
                puts.append((document.chunks, rows))
        names = {*gone, *(document.doc_id for document in documents)}
        remove = [held for name in names for held in self.by_document.get(name, ())]
        self._swap(remove, puts)

    def change_sources(self, changes: Sequence[SourceChange], forget: Sequence[str]) -> None:
        fresh = [(change.record.source, _whole(change.documents or ())) for change in changes]
        names = {*forget, *(change.record.source for change in changes if change.documents is not None)}
        before = [doc_id for doc_id, source in self.source_of.items() if source in names]
        self.replace([document for _, documents in fresh for document in documents], before)
        for doc_id in before:
            del self.source_of[doc_id]
        for name in forget:
            self.sources.pop(name, None)
        self.sources |= {change.record.source: change.record for change in changes}
        self.source_of |= {document.doc_id: source for source, documents in fresh for document in documents}

    def index(self) -> IndexFile:
        held, vectors = self.matrix.snapshot.rows()
        return IndexFile(
            manifest=self.manifest,
            chunks=[key.chunk for key in held],
            vectors=vectors,
            sources=list(self.sources.values()),
            source_of=dict(self.source_of),
        )

    def vectors(self, chunk_ids: Sequence[str]) -> FloatMatrix:
        rows = np.zeros((len(chunk_ids), self._dim() or 0), np.float32)
        places = [place for place, chunk_id in enumerate(chunk_ids) if chunk_id in self.by_id]
        if places:
            rows[places] = self.matrix.take([self.by_id[chunk_ids[place]] for place in places])
        return rows

    def _dim(self) -> int | None:
        return self.manifest.dim if self.manifest else self.matrix.snapshot.dim

    def _swap(self, remove: Sequence[_Held], puts: Sequence[tuple[Sequence[Chunk], FloatMatrix]]) -> None:
        """Forget, put, then show readers both at once."""
        out = list(remove)
        for held in remove:
            self._forget(held)
        chunks, rows = _joined(puts)
        new = [*map(_Held, chunks)]
        by_id = dict(zip([chunk.id for chunk in chunks], new, strict=True))
        if len(by_id) < len(chunks):  # of those with one id the last one stays, in the place of the first
            place_of = {held: place for place, held in enumerate(new)}
            new = [*by_id.values()]
            rows = rows[[place_of[held] for held in new]]
        for chunk_id in by_id.keys() & self.by_id.keys():
            out.append(self.by_id[chunk_id])
            self._forget(self.by_id[chunk_id])
        self.by_id.update(by_id)
        for held in new:
            self.by_document[held.chunk.doc_id].append(held)
        self.matrix.replace(out, new, rows)
        self.words.replace(out, new)

    def _forget(self, held: _Held) -> None:
        del self.by_id[held.chunk.id]
        siblings = self.by_document[held.chunk.doc_id]
        siblings.remove(held)
        if not siblings:
            del self.by_document[held.chunk.doc_id]


def _joined(puts: Sequence[tuple[Sequence[Chunk], FloatMatrix]]) -> tuple[Sequence[Chunk], FloatMatrix]:
    """Several batches as one, without a copy of a single one."""
    match puts:
        case []:
            return [], np.empty((0, 0), np.float32)
        case [one]:
            return one
        case _:
            return [chunk for chunks, _ in puts for chunk in chunks], np.concatenate(
                [rows for _, rows in puts]
            )


def _whole(pieces: Iterable[DocumentChunks]) -> list[DocumentChunks]:
    """The documents that pieces in a row make up."""
    documents: list[DocumentChunks] = []
    for doc_id, group in groupby(pieces, key=lambda piece: piece.doc_id):
        parts = list(group)
        for part in parts:
            part.check()
        chunks = [chunk for part in parts for chunk in part.chunks]
        rows = parts[0].vectors if len(parts) == 1 else np.concatenate([part.vectors for part in parts])
        documents.append(DocumentChunks(doc_id, chunks, rows))
    return documents


def _below(name: str, root: str) -> bool:
    return name.startswith(f"{root}/")
