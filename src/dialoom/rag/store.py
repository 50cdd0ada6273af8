"""The protocol of a vector store: chunks with their vectors, replaced by document, found by nearness."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, Protocol, runtime_checkable

import msgspec
import numpy as np

from dialoom.base.errors import UsageError
from dialoom.rag.manifest import IndexManifest
from dialoom.rag.types import Chunk, FloatMatrix, FloatVector, ScoredChunk, wrong_metadata

ChunkFilter = Callable[[Chunk], bool]
_ID: Final = attrgetter("id")
_METADATA: Final = attrgetter("metadata")


class DocumentChunks(msgspec.Struct, frozen=True):
    """All the chunks of one document with one vector each; no chunks means that the document goes."""

    doc_id: str
    chunks: Sequence[Chunk]
    vectors: FloatMatrix

    def check(self) -> None:
        """Raise `UsageError` unless the parts fit each other and every chunk is of this document."""
        check_chunks(self.chunks, self.vectors)
        strangers = [chunk.id for chunk in self.chunks if chunk.doc_id != self.doc_id]
        if strangers:
            raise UsageError(f"chunk {strangers[0]!r} is not of document {self.doc_id!r}; set its doc_id")


class VectorStore(Protocol):
    """Chunks and their vectors. Subclass it to keep them elsewhere; `dialoom.testing` has its contract suite.

    A batch is checked as a whole and then stored at once: readers see all of it or nothing. Vectors need not
    be of length 1; scores are plain cosines from -1 to 1, and a vector of zeros scores 0. Any thread may
    call any method.

    Errors: `DimensionMismatchError`, `NonFiniteVectorError`, `ManifestMismatchError`,
    `ManifestMissingError`, `ReadOnlyError`; after each the store holds what it held before.
    """

    @property
    def manifest(self) -> IndexManifest | None:
        """What made the vectors, once something has been claimed."""
        ...

    def claim(self, manifest: IndexManifest) -> None:
        """Say what makes the vectors from now on: kept by an empty store, compared by any other."""
        ...

    def add(self, chunks: Sequence[Chunk], vectors: FloatMatrix) -> None:
        """Add chunks, one vector each; of two with one id, there or in the batch, the last one stays."""
        ...

    def remove(self, chunk_id: str) -> bool:
        """Take out one chunk; whether it was there."""
        ...

    def replace_documents(self, documents: Sequence[DocumentChunks]) -> None:
        """Put each document in the place of what the store holds of it, all documents at once."""
        ...

    def search(
        self,
        query: FloatVector,
        k: int,
        *,
        min_score: float | None = None,
        where: ChunkFilter | None = None,
    ) -> list[ScoredChunk]:
        """The `k` nearest chunks, best first; equal ones in the order they were stored.

        `where` is asked before `k` is counted, so a rare kind is found however many others are nearer.
        A `k` beyond the size gives all, one of 0 or less none.
        """
        ...

    def documents(self) -> list[str]:
        """The ids of the documents that have chunks, sorted."""
        ...

    def clear(self) -> None:
        """Take out everything, the manifest too."""
        ...

    def __len__(self) -> int:
        """How many chunks there are."""
        ...

    def replace_document(self, doc_id: str, chunks: Sequence[Chunk], vectors: FloatMatrix) -> None:
        """Put the chunks in the place of whatever the store holds of the document."""
        self.replace_documents([DocumentChunks(doc_id, chunks, vectors)])

    def search_many(self, queries: FloatMatrix, k: int) -> list[list[ScoredChunk]]:
        """The `k` nearest chunks of each of several questions, one row per question."""
        return [self.search(query, k) for query in queries]

    def remove_document(self, doc_id: str) -> None:
        """Take out all chunks of a document; one that is not there is no error."""
        self.replace_documents([removal(doc_id)])


class SourceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a store remembers of a file it was filled from, to know later whether it has changed.

    `recipe` names the loader options and the chunker; `error` is the code of the last failure, or empty.
    """

    source: str
    root: str
    size: int
    modified_ns: int
    content_hash: str = ""
    recipe: str = ""
    error: str = ""


class SourceChange(msgspec.Struct, frozen=True):
    """A file's new record and all its documents; those it had before and has no more go.

    Several in a row with one `doc_id` are the pieces of a large document. They are gone through once, while
    the change is made. None for documents that stay as they are: the file was only looked at, or could not
    be read this time.
    """

    record: SourceRecord
    documents: Iterable[DocumentChunks] | None = ()


class SyncStore(VectorStore, Protocol):
    """A vector store that remembers the files it was filled from."""

    def sources(self, root: str) -> Mapping[str, SourceRecord]:
        """The files remembered under one root or below it, by path, whichever root they came with."""
        ...

    def change_sources(self, changes: Sequence[SourceChange], *, forget: Sequence[str] = ()) -> None:
        """Store new records with their documents and forget other files with theirs, all at once."""
        ...


@runtime_checkable
class PassageReader(Protocol):
    """Gives what is stored around and about a hit. Both of our stores do."""

    def vectors(self, chunk_ids: Sequence[str]) -> FloatMatrix:
        """The vectors of some chunks, scaled to length 1, in order; zeros for one that is not there."""
        ...

    def chunks_of(self, doc_id: str) -> list[Chunk]:
        """All chunks of one document, in the order of their places in it."""
        ...


def check_chunks(chunks: Sequence[Chunk], vectors: FloatMatrix) -> None:
    """Raise `UsageError` unless there is one vector per chunk, and each has an id and flat metadata.

    Metadata of another kind would come back as something else, or make a damaged index.
    """
    if len(chunks) != len(vectors):
        raise UsageError(f"{len(chunks)} chunks came with {len(vectors)} vectors; give one vector per chunk")
    if not all(map(_ID, chunks)):
        raise UsageError("a chunk has no id; give each one its own")
    told = filter(None, map(_METADATA, chunks))
    for metadata in {id(each): each for each in told}.values():
        if wrong := wrong_metadata(metadata):
            raise UsageError(wrong)


def removal(doc_id: str) -> DocumentChunks:
    """The change that takes a document out."""
    return DocumentChunks(doc_id, (), np.empty((0, 0), np.float32))
