"""The vector store on disk: one SQLite file, searched in memory, shared between processes."""

import os
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, groupby
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Self, TypeVar

import numpy as np

from dialoom.base.errors import StoreError
from dialoom.rag.errors import ManifestMissingError, ReadOnlyError
from dialoom.rag.filters import CONDITIONS
from dialoom.rag.lexical import LexicalIndex
from dialoom.rag.manifest import IndexManifest, check_manifest
from dialoom.rag.matrix import EXACT_UP_TO, Matrix
from dialoom.rag.passage import in_place
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
from dialoom.stores.sqlite_file import copy_index_file, open_index_file, translated
from dialoom.stores.sqlite_filter import Sql, sql_of
from dialoom.stores.sqlite_lexical import clear_words, find_words, words_are_current
from dialoom.stores.sqlite_rows import (
    Block,
    chunk_numbers,
    chunks_of,
    count_chunks,
    count_up,
    delete_chunks,
    delete_documents,
    document_ids,
    documents_of,
    insert_document,
    passing_numbers,
    read_blocks,
    read_chunks,
    read_generation,
    read_manifest,
    read_sources,
    read_versions,
    stored_dim,
    write_manifest,
    write_source,
)

_T = TypeVar("_T")
_ROWS_AT_ONCE = 4_096
_NO_ROWS = np.empty((0, 0), np.float32)


class SqliteVectorStore(SyncStore, LexicalIndex, PassageReader):
    """An index in one SQLite file; the vectors are kept in memory too and searched there.

    Up to `exact_up_to` chunks every vector is looked at; above that a search without a filter looks in lists,
    which the first one has made on a thread while all are still looked at.

    A batch is one transaction. What other processes commit is seen by the next call, and only what changed
    is read. `read_only` opens a file that must exist and refuses every change with `ReadOnlyError`.
    Errors: those of `VectorStore`, `CorruptIndexError`, `ConflictError` when another process holds the
    file for over ten seconds, `StoreError`.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, read_only: bool = False, exact_up_to: int = EXACT_UP_TO
    ) -> None:
        self.path = Path(path)
        self._read_only = read_only
        self._lock = RLock()
        self._connection = open_index_file(path, read_only=read_only)
        self._matrix: Matrix[int] = Matrix(exact_up_to=exact_up_to)
        self._blocks: dict[int, list[int]] = {}
        self._generation = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file. Closing twice is no error; any other call after it is one."""
        with self._lock:
            self._connection.close()

    @property
    def manifest(self) -> IndexManifest | None:
        return self._read(read_manifest)

    def claim(self, manifest: IndexManifest) -> None:
        if self.manifest == manifest:
            return
        with self._writing() as connection:
            stored = read_manifest(connection)
            if stored is not None:
                check_manifest(stored, manifest)
            elif count_chunks(connection):
                raise ManifestMissingError(
                    f"{self.path} holds chunks but no manifest; remove it and ingest the documents again"
                )
            else:
                write_manifest(connection, manifest)

    def add(self, chunks: Sequence[Chunk], vectors: FloatMatrix) -> None:
        check_chunks(chunks, vectors)
        if not chunks:
            return
        with self._writing() as connection:
            rows = check_rows(vectors, self._dim(connection))
            delete_chunks(connection, [chunk.id for chunk in chunks])
            last = {chunk.id: place for place, chunk in enumerate(chunks)}
            places_of: dict[str, list[int]] = {}
            for place in sorted(last.values()):
                places_of.setdefault(chunks[place].doc_id, []).append(place)
            for doc_id, places in places_of.items():
                document = DocumentChunks(doc_id, [chunks[place] for place in places], rows[places])
                insert_document(connection, document, None)

    def remove(self, chunk_id: str) -> bool:
        with self._writing() as connection:
            return delete_chunks(connection, [chunk_id]) > 0

    def replace_documents(self, documents: Sequence[DocumentChunks]) -> None:
        with self._writing() as connection:
            self._replace(connection, documents)

    def search(
        self,
        query: FloatVector,
        k: int,
        *,
        min_score: float | None = None,
        where: ChunkFilter | None = None,
    ) -> list[ScoredChunk]:
        def find(connection: sqlite3.Connection) -> list[ScoredChunk]:
            asked = _Asked(connection, where)
            self._refresh(connection)
            keep = None if where is None else asked.keep
            hits = self._matrix.to_search().search(query, k, min_score=min_score, keep=keep)
            if where is None:
                asked.keep([number for number, _ in hits])
            return [ScoredChunk(asked.seen[number], score) for number, score in hits]

        return self._read(find)

    def search_many(self, queries: FloatMatrix, k: int) -> list[list[ScoredChunk]]:
        def find(connection: sqlite3.Connection) -> list[list[ScoredChunk]]:
            self._refresh(connection)
            found = self._matrix.to_search().search_many(queries, k)
            chunks = read_chunks(connection, [*{number for hits in found for number, _ in hits}])
            return [[ScoredChunk(chunks[number], score) for number, score in hits] for hits in found]

        return self._read(find)

    def search_words(self, question: str, k: int, *, where: ChunkFilter | None = None) -> list[ScoredChunk]:
        def find(connection: sqlite3.Connection) -> list[ScoredChunk]:
            asked = _Asked(connection, where)
            most = k if where is None or asked.sql else -1
            hits = find_words(connection, question_tokens(question), max(most, -1), where=asked.sql)
            found: list[ScoredChunk] = []
            for page in _pages(hits, k):
                kept = asked.keep([number for number, _ in page])
                found += [
                    ScoredChunk(asked.seen[number], score)
                    for (number, score), good in zip(page, kept, strict=True)
                    if good
                ]
                if len(found) >= k:
                    break
            return found[:k]

        return self._read(find) if k > 0 else []

    def vectors(self, chunk_ids: Sequence[str]) -> FloatMatrix:
        def take(connection: sqlite3.Connection) -> FloatMatrix:
            self._refresh(connection)
            numbers = chunk_numbers(connection, chunk_ids)
            rows = np.zeros((len(chunk_ids), self._matrix.snapshot.dim or 0), np.float32)
            places = [place for place, chunk_id in enumerate(chunk_ids) if chunk_id in numbers]
            if places:
                rows[places] = self._matrix.take([numbers[chunk_ids[place]] for place in places])
            return rows

        return self._read(take)

    def chunks_of(self, doc_id: str) -> list[Chunk]:
        return self._read(lambda connection: in_place(chunk for _, chunk in chunks_of(connection, doc_id)))

    def documents(self) -> list[str]:
        return self._read(document_ids)

    def clear(self) -> None:
        with self._writing() as connection:
            clear_words(connection)
            for table in ("chunks", "vectors", "documents", "sources"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608 - the names above
            connection.execute("DELETE FROM manifest WHERE key = 'index'")

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Write one moment of the index to a new file, an index of its own. `StoreError` when it is there."""
        with self._lock:
            copy_index_file(self._connection, Path(path))

    def make_lists(self) -> None:
        """Read the vectors and make the lists of a large index now, so that the first search need not."""
        self._read(self._refresh)
        self._matrix.make_lists()

    def __len__(self) -> int:
        return self._read(count_chunks)

    def sources(self, root: str) -> Mapping[str, SourceRecord]:
        return self._read(lambda connection: read_sources(connection, root))

    def change_sources(self, changes: Sequence[SourceChange], *, forget: Sequence[str] = ()) -> None:
        with self._writing() as connection:
            changed = [change.record.source for change in changes if change.documents is not None]
            for name in (*forget, *changed):
                delete_documents(connection, documents_of(connection, name))
            connection.executemany("DELETE FROM sources WHERE source = ?", [(name,) for name in forget])
            for change in changes:
                write_source(connection, change.record)
                for _, pieces in groupby(change.documents or (), key=lambda piece: piece.doc_id):
                    self._put_pieces(connection, pieces, change.record.source)

    def _put_pieces(
        self, connection: sqlite3.Connection, pieces: Iterable[DocumentChunks], source: str
    ) -> None:
        """Put one document, piece by piece, in the place of what is there of it."""
        dim = self._dim(connection)
        for number, piece in enumerate(pieces):
            piece.check()
            if number == 0:
                delete_documents(connection, [piece.doc_id])
            if piece.chunks:
                dim = check_rows(piece.vectors, dim).shape[1]
                delete_chunks(connection, [chunk.id for chunk in piece.chunks])
                insert_document(connection, piece, source)

    def _replace(self, connection: sqlite3.Connection, documents: Sequence[DocumentChunks]) -> None:
        dim = self._dim(connection)
        for document in documents:
            document.check()
            if document.chunks:
                dim = check_rows(document.vectors, dim).shape[1]
        delete_documents(connection, [document.doc_id for document in documents])
        for document in {document.doc_id: document for document in documents}.values():
            if document.chunks:
                delete_chunks(connection, [chunk.id for chunk in document.chunks])
                insert_document(connection, document, None)

    def _dim(self, connection: sqlite3.Connection) -> int | None:
        manifest = read_manifest(connection)
        return manifest.dim if manifest else stored_dim(connection)

    def _refresh(self, connection: sqlite3.Connection) -> None:
        """Bring the vectors in memory to what this transaction sees, reading only blocks not yet known."""
        generation = read_generation(connection)
        if generation == self._generation:
            return
        versions = read_versions(connection)
        gone = [self._blocks.pop(version) for version in self._blocks.keys() - versions]
        self._matrix.replace(list(chain.from_iterable(gone)), [], _NO_ROWS)
        new = versions - self._blocks.keys()
        if new:
            # blocks are numbered upwards, so the new ones are the last
            blocks = read_blocks(connection, "WHERE version >= ? ORDER BY version", (min(new),))
            try:
                for batch in _batches(self._noted(blocks)):
                    numbers = [number for some, _ in batch for number in some]
                    self._matrix.replace([], numbers, np.concatenate([rows for _, rows in batch]))
            except BaseException:
                self._matrix.clear()  # what was noted and not taken in would be missing for ever
                self._blocks.clear()
                raise
        self._generation = generation

    def _noted(self, blocks: Iterable[Block]) -> Iterator[tuple[list[int], FloatMatrix]]:
        """The numbers and rows of blocks, which are remembered as read; a long one in pieces."""
        for block in blocks:
            numbers = self._blocks[block.version] = block.numbers.tolist()
            for start in range(0, len(numbers), _ROWS_AT_ONCE):
                stop = start + _ROWS_AT_ONCE
                yield numbers[start:stop], block.rows(start, stop)

    def _read(self, ask: Callable[[sqlite3.Connection], _T]) -> _T:
        """Ask within one read transaction: every statement sees the same moment."""
        with self._lock, translated(self.path):
            if self._connection.in_transaction:  # a filter that asks the store again
                return ask(self._connection)
            self._connection.execute("BEGIN")
            try:
                return ask(self._connection)
            finally:
                self._connection.execute("ROLLBACK")

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        """One transaction: all of it is kept, or none."""
        if self._read_only:
            raise ReadOnlyError(f"the index {self.path} is open for reading only; open it for writing")
        with self._lock, translated(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                if not words_are_current(self._connection):
                    raise StoreError(f"{self.path} was upgraded by another dialoom; upgrade to write to it")
                yield self._connection
                count_up(self._connection)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


class _Asked:
    """Which chunks a filter lets through, and what was read of them to tell."""

    def __init__(self, connection: sqlite3.Connection, where: ChunkFilter | None) -> None:
        self._connection = connection
        self._where = where
        self.sql: Sql | None = sql_of(where) if isinstance(where, CONDITIONS) else None
        self.seen: dict[int, Chunk] = {}

    def keep(self, numbers: Sequence[int]) -> list[bool]:
        """Ask the filter itself too: SQL only spares the reading of chunks that it would not let through."""
        wanted = numbers
        if self.sql is not None:
            passing = passing_numbers(self._connection, numbers, self.sql)
            wanted = [number for number in numbers if number in passing]
        self.seen.update(read_chunks(self._connection, wanted))
        return [
            number in self.seen and (self._where is None or self._where(self.seen[number]))
            for number in numbers
        ]


def _batches(
    pieces: Iterable[tuple[list[int], FloatMatrix]],
) -> Iterator[list[tuple[list[int], FloatMatrix]]]:
    """Pieces together, about as many rows at once as one of them may have."""
    batch: list[tuple[list[int], FloatMatrix]] = []
    rows = 0
    for piece in pieces:
        batch.append(piece)
        rows += len(piece[0])
        if rows >= _ROWS_AT_ONCE:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def _pages(hits: Sequence[tuple[int, float]], k: int) -> Iterator[Sequence[tuple[int, float]]]:
    """The hits in their order, a few at first: most filters let most chunks through."""
    start, size = 0, k
    while start < len(hits):
        yield hits[start : start + size]
        start, size = start + size, 2 * size
