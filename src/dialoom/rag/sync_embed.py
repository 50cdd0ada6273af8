"""A large file is embedded piece by piece, and its vectors wait on the disk until the store takes them."""

from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np

from dialoom.rag.embed import Embedder
from dialoom.rag.ingest import CutDocument, DocumentFailure, embed_all
from dialoom.rag.store import DocumentChunks
from dialoom.rag.types import FloatMatrix

LARGE = 4_096
"""So many chunks of one file are not embedded and stored at once."""
_PIECE = 1_024


class Waiting:
    """The documents of a large file with their vectors in a temporary file, read back piece by piece.

    Iterating gives each document in pieces; the file is read from its beginning each time.
    """

    def __init__(self, documents: Sequence[CutDocument], dim: int, file: IO[bytes]) -> None:
        self._documents = documents
        self._dim = dim
        self._file = file

    def __iter__(self) -> Iterator[DocumentChunks]:
        self._file.seek(0)
        for piece in pieces_of(self._documents):
            yield DocumentChunks(piece.doc_id, piece.chunks, self._rows(len(piece.chunks)))

    def _rows(self, count: int) -> FloatMatrix:
        data = self._file.read(count * self._dim * np.dtype(np.float32).itemsize)
        return np.frombuffer(data, np.float32).reshape(count, self._dim)


async def embed_large(
    embedder: Embedder, documents: Sequence[CutDocument], file: IO[bytes]
) -> Waiting | DocumentFailure:
    """Embed the documents of one file piece by piece, into `file`.

    Raises as `embed_all` does, and `OSError` when the disk is full.
    """
    for piece in pieces_of(documents):
        (outcome,) = await embed_all(embedder, [piece])
        if isinstance(outcome, DocumentFailure):
            return outcome
        file.write(np.ascontiguousarray(outcome.vectors, np.float32).tobytes())
    return Waiting(documents, embedder.dim, file)


def pieces_of(documents: Sequence[CutDocument]) -> Iterator[CutDocument]:
    """Documents in pieces of a thousand chunks; one without a chunk is a piece too."""
    for document in documents:
        for start in range(0, max(len(document.chunks), 1), _PIECE):
            yield CutDocument(document.doc_id, document.chunks[start : start + _PIECE])
