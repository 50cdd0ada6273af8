"""Documents go into a store: cut, embedded, checked, and only then swapped in."""

from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np

from dialoom.base.errors import DialoomError, StoreError, UsageError
from dialoom.base.text import one_line
from dialoom.llm.errors import ErrorKind, ProviderError
from dialoom.rag.chunk import Chunker
from dialoom.rag.embed import Embedder, check_vectors
from dialoom.rag.manifest import manifest_of
from dialoom.rag.passage import indexed_text
from dialoom.rag.store import DocumentChunks, VectorStore
from dialoom.rag.types import Chunk, Document, FloatMatrix

_TEXTS_AT_ONCE = 256
_KINDS_OF_A_TEXT: frozenset[ErrorKind] = frozenset(
    ("bad_request", "context_window", "content_filter", "invalid_response", "empty_response")
)


class DocumentFailure(msgspec.Struct, frozen=True):
    """A document that was not stored; what the store held of it before is still there."""

    doc_id: str
    code: str
    message: str


class IngestReport(msgspec.Struct, frozen=True, kw_only=True):
    """What went in and what did not."""

    documents: int = 0
    chunks: int = 0
    failures: list[DocumentFailure] = []


class CutDocument(msgspec.Struct, frozen=True):
    """A document's id and its chunks, not embedded yet."""

    doc_id: str
    chunks: Sequence[Chunk]


async def ingest_documents(
    store: VectorStore, embedder: Embedder, chunker: Chunker, documents: Iterable[Document]
) -> IngestReport:
    """Add documents to those the store holds; chunks with ids that are there already take their places.

    Raises `ManifestMismatchError` before any work when the store was built by another embedder or chunker,
    and `ProviderError` when a server that embeds fails for a reason that is no document's. One document's
    failure is reported and does not stop the others.
    """

    def put(ready: Sequence[DocumentChunks]) -> None:
        for document in ready:
            store.add(document.chunks, document.vectors)

    store.claim(manifest_of(embedder, chunker))
    return await _ingest(embedder, chunker, documents, put)


async def replace_documents(
    store: VectorStore, embedder: Embedder, chunker: Chunker, documents: Iterable[Document]
) -> IngestReport:
    """Put documents in the place of what the store holds of them: all cut and embedded first, then swapped.

    Raises and reports as `ingest_documents` does. A document without a word takes its old chunks out.
    """
    store.claim(manifest_of(embedder, chunker))
    return await _ingest(embedder, chunker, documents, store.replace_documents)


async def embed_all(
    embedder: Embedder, documents: Sequence[CutDocument]
) -> list[DocumentChunks | DocumentFailure]:
    """Embed documents together; when that fails, each alone, so that only the one at fault is left out.

    Raises `ProviderError` for what no document is at fault for: a wrong key, a quota used up, no server.
    """
    try:
        return list(await _embed(embedder, documents))
    except ProviderError as error:
        if error.kind not in _KINDS_OF_A_TEXT:
            raise
        if len(documents) == 1:
            return [failure(documents[0].doc_id, error)]
    except Exception as error:  # noqa: BLE001 - seam: an embedder may be anyone's code
        if len(documents) == 1:
            return [failure(documents[0].doc_id, error)]
    return [outcome for document in documents for outcome in await embed_all(embedder, [document])]


def failure(doc_id: str, error: Exception) -> DocumentFailure:
    """An error as a line of a report."""
    code = error.code if isinstance(error, DialoomError) else "error"
    return DocumentFailure(doc_id, code, one_line(str(error)) or type(error).__name__)


async def _ingest(
    embedder: Embedder,
    chunker: Chunker,
    documents: Iterable[Document],
    put: Callable[[Sequence[DocumentChunks]], None],
) -> IngestReport:
    failures: list[DocumentFailure] = []
    cut: list[CutDocument] = []
    for document in documents:
        try:
            cut.append(CutDocument(document.id, chunker.chunk(document)))
        except Exception as error:  # noqa: BLE001 - seam: a chunker may be anyone's code
            failures.append(failure(document.id, error))
    outcomes = await embed_all(embedder, cut) if cut else []
    ready = [outcome for outcome in outcomes if isinstance(outcome, DocumentChunks)]
    failures += [outcome for outcome in outcomes if isinstance(outcome, DocumentFailure)]
    stored = _put_all(ready, put, failures)
    return IngestReport(
        documents=len(stored),
        chunks=sum(len(document.chunks) for document in stored),
        failures=failures,
    )


def _put_all(
    ready: Sequence[DocumentChunks],
    put: Callable[[Sequence[DocumentChunks]], None],
    failures: list[DocumentFailure],
) -> Sequence[DocumentChunks]:
    """Store all at once, or, when the store refuses that, one by one."""
    try:
        put(ready)
    except (StoreError, UsageError):
        stored: list[DocumentChunks] = []
        for document in ready:
            try:
                put([document])
                stored.append(document)
            except (StoreError, UsageError) as error:
                failures.append(failure(document.doc_id, error))
        return stored
    return ready


async def _embed(embedder: Embedder, documents: Sequence[CutDocument]) -> list[DocumentChunks]:
    texts = [indexed_text(chunk) for document in documents for chunk in document.chunks]
    parts: list[FloatMatrix] = [np.empty((0, embedder.dim), np.float32)]
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        batch = texts[start : start + _TEXTS_AT_ONCE]
        vectors = await embedder.embed_documents(batch)
        parts.append(check_vectors(vectors, texts=len(batch), embedder=embedder))
    rows = np.concatenate(parts)
    embedded: list[DocumentChunks] = []
    start = 0
    for document in documents:
        end = start + len(document.chunks)
        embedded.append(DocumentChunks(document.doc_id, document.chunks, rows[start:end]))
        start = end
    return embedded
