"""Documents into a store."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from dialoom.base.errors import StoreError
from dialoom.llm.errors import ErrorKind, ProviderError
from dialoom.rag.chunk import SlidingWindowChunker
from dialoom.rag.embed import HashEmbedder
from dialoom.rag.errors import EmbedderContractError, ManifestMismatchError
from dialoom.rag.ingest import (
    DocumentFailure,
    IngestReport,
    ingest_documents,
    replace_documents,
)
from dialoom.rag.manifest import IndexManifest, check_embedder, manifest_of
from dialoom.rag.memory_store import InMemoryVectorStore
from dialoom.rag.passage import indexed_text
from dialoom.rag.store import DocumentChunks
from dialoom.rag.types import Chunk, Document, FloatMatrix

CHUNKER = SlidingWindowChunker(40, 0)


class Touchy(HashEmbedder):
    """Fails on any batch that holds a certain word, and counts what it is asked for."""

    def __init__(self, word: str = "bad", error: Exception | None = None) -> None:
        super().__init__(64)
        self.word = word
        self.error = error or RuntimeError("the model\nchoked")
        self.batches: list[int] = []

    async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        self.batches.append(len(texts))
        if any(self.word in text for text in texts):
            raise self.error
        return self.embed(texts)


def documents(**texts: str) -> list[Document]:
    return [Document(id=name, text=text) for name, text in texts.items()]


def held(store: InMemoryVectorStore) -> dict[str, list[str]]:
    every = store.search(HashEmbedder(64).embed(["x"])[0], 99)
    return {
        name: sorted(hit.chunk.text for hit in every if hit.chunk.doc_id == name)
        for name in store.documents()
    }


@pytest.mark.promise("rag-067")
async def test_documents_are_stored_with_a_manifest() -> None:
    store, embedder = InMemoryVectorStore(), Touchy()
    report = await ingest_documents(store, embedder, CHUNKER, documents(A="one", B="two. " * 20))
    assert report == IngestReport(documents=2, chunks=4)
    assert store.manifest == IndexManifest(
        embedder="hash", model="hash-v1/64/sqrt", dim=64, chunker="sliding-v1/40/0/chars"
    )
    assert (held(store)["A"], len(store), embedder.batches) == (["one"], 4, [4])


@pytest.mark.promise("rag-100", "rag-102")
async def test_ingesting_adds_and_replacing_replaces() -> None:
    store, embedder = InMemoryVectorStore(), Touchy()
    await ingest_documents(store, embedder, CHUNKER, documents(A="old. " * 20))
    await ingest_documents(store, embedder, CHUNKER, documents(A="new"))
    assert len(held(store)["A"]) == 3
    await replace_documents(store, embedder, CHUNKER, documents(A="new", B=" "))
    assert held(store) == {"A": ["new"]}


@pytest.mark.promise("rag-103")
async def test_one_document_that_cannot_be_embedded_does_not_stop_the_others() -> None:
    store, embedder = InMemoryVectorStore(), Touchy()
    await replace_documents(store, embedder, CHUNKER, documents(A="old A", B="old B", C="old C"))
    report = await replace_documents(store, embedder, CHUNKER, documents(A="new A", B="bad", C="new C"))
    failure = DocumentFailure("B", "error", "the model choked")
    assert report == IngestReport(documents=2, chunks=2, failures=[failure])
    assert held(store) == {"A": ["new A"], "B": ["old B"], "C": ["new C"]}


async def test_a_failure_keeps_its_code() -> None:
    embedder = Touchy(error=EmbedderContractError(""))
    report = await ingest_documents(InMemoryVectorStore(), embedder, CHUNKER, documents(A="bad"))
    assert report.failures == [DocumentFailure("A", "embedder_contract", "EmbedderContractError")]


@pytest.mark.promise("rag-101")
async def test_an_embedder_that_gives_other_vectors_than_it_says_is_caught() -> None:
    class Lying(Touchy):
        async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
            return np.ones((len(texts) + 1, 64), np.float32)

    report = await ingest_documents(InMemoryVectorStore(), Lying(), CHUNKER, documents(A="a"))
    assert [failure.code for failure in report.failures] == ["embedder_contract"]


@pytest.mark.promise("rag-060")
async def test_a_chunker_that_fails_for_one_document_does_not_stop_the_others() -> None:
    class Picky(SlidingWindowChunker):
        def chunk(self, document: Document) -> list[Chunk]:
            if "bad" in document.text:
                raise ValueError("cannot cut")
            return super().chunk(document)

    store = InMemoryVectorStore()
    report = await ingest_documents(store, Touchy(""), Picky(40, 0), documents(A="bad"))
    assert report.failures == [DocumentFailure("A", "error", "cannot cut")]
    report = await ingest_documents(store, Touchy("~"), Picky(40, 0), documents(A="bad", B="good"))
    assert (report.documents, store.documents()) == (1, ["B"])


@pytest.mark.promise("rag-104")
async def test_a_store_that_refuses_one_document_keeps_the_others() -> None:
    class Full(InMemoryVectorStore):
        def replace_documents(self, documents: Sequence[DocumentChunks]) -> None:
            if any(document.doc_id == "B" for document in documents):
                raise StoreError("no room for B")
            super().replace_documents(documents)

    store = Full()
    await ingest_documents(store, Touchy(), CHUNKER, documents(A="old a", B="old b"))
    report = await replace_documents(store, Touchy(), CHUNKER, documents(A="a", B="b", C="c"))
    assert report.failures == [DocumentFailure("B", "store", "no room for B")]
    assert held(store) == {"A": ["a"], "B": ["old b"], "C": ["c"]}


async def test_another_model_is_refused_before_any_work() -> None:
    store, first = InMemoryVectorStore(), Touchy()
    await ingest_documents(store, first, CHUNKER, documents(A="a"))
    other = Touchy()
    other.model = "another"
    for work in (ingest_documents, replace_documents):
        with pytest.raises(ManifestMismatchError, match="model 'hash-v1/64/sqrt', not 'another'"):
            await work(store, other, CHUNKER, documents(A="b"))
    with pytest.raises(ManifestMismatchError, match="chunker 'sliding-v1/40/0/chars', not 'sliding-v1/50"):
        await ingest_documents(store, first, SlidingWindowChunker(50, 0), documents(A="b"))
    assert (other.batches, held(store)) == ([], {"A": ["a"]})


def test_questions_need_the_embedder_and_not_the_chunker() -> None:
    stored = manifest_of(HashEmbedder(64), CHUNKER)
    check_embedder(stored, HashEmbedder(64))
    with pytest.raises(ManifestMismatchError, match="dim 64, not 128"):
        check_embedder(stored, HashEmbedder(128))


async def test_many_chunks_are_embedded_in_batches_over_documents() -> None:
    embedder = Touchy()
    many = [Document(id=str(number), text=f"text {number}") for number in range(600)]
    report = await ingest_documents(InMemoryVectorStore(), embedder, CHUNKER, many)
    assert (report.chunks, embedder.batches) == (600, [256, 256, 88])


def test_a_chunk_is_embedded_below_the_headings_it_does_not_hold() -> None:
    chunk = Chunk(id="c", doc_id="d", text="Time\nThree days.", heading_path=("Refunds", "Time"))
    assert indexed_text(chunk) == "Refunds\nTime\nThree days."
    assert indexed_text(Chunk(id="c", doc_id="d", text="bare")) == "bare"


@pytest.mark.parametrize("kind", ["auth", "quota", "connection", "rate_limit"])
async def test_what_is_no_documents_fault_stops_the_work_at_once(kind: ErrorKind) -> None:
    store, embedder = InMemoryVectorStore(), Touchy("one", ProviderError(kind, "the key is refused"))
    with pytest.raises(ProviderError, match="the key is refused"):
        await ingest_documents(store, embedder, CHUNKER, documents(A="one", B="two", C="three"))
    assert (embedder.batches, len(store)) == ([3], 0)


async def test_a_text_that_a_server_does_not_take_is_left_out() -> None:
    store, embedder = InMemoryVectorStore(), Touchy("one", ProviderError("context_window", "too long"))
    report = await ingest_documents(store, embedder, CHUNKER, documents(A="one", B="two"))
    assert report == IngestReport(
        documents=1, chunks=1, failures=[DocumentFailure("A", "provider", "too long")]
    )


async def test_a_document_that_cannot_be_kept_does_not_stop_the_others() -> None:
    class Nesting(SlidingWindowChunker):
        def chunk(self, document: Document) -> list[Chunk]:
            chunks = super().chunk(document)
            if document.id != "bad":
                return chunks
            return [msgspec.structs.replace(each, metadata={"tree": {"a": 1}}) for each in chunks]

    store = InMemoryVectorStore()
    documents = [Document(id="bad", text="one"), Document(id="good", text="two")]
    report = await replace_documents(store, HashEmbedder(64), Nesting(), documents)
    assert [(failure.doc_id, failure.code) for failure in report.failures] == [("bad", "usage")]
    assert store.documents() == ["good"]
