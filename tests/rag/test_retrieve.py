"""Retrievers: by vectors, by words, by both, with their sections, and only what may be seen."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from dialoom.base.errors import UsageError
from dialoom.rag.chunk import SlidingWindowChunker
from dialoom.rag.embed import HashEmbedder
from dialoom.rag.errors import (
    EmptyQueryError,
    InvalidOptionsError,
    ManifestMismatchError,
    ManifestMissingError,
)
from dialoom.rag.filters import Contains, Eq
from dialoom.rag.hybrid import FusionWeights, HybridRetriever
from dialoom.rag.ingest import replace_documents
from dialoom.rag.memory_store import InMemoryVectorStore
from dialoom.rag.parents import ParentChildRetriever
from dialoom.rag.retrieve import LexicalRetriever, Retriever, Search, VectorRetriever
from dialoom.rag.scripts import scripts_of, scripts_of_languages
from dialoom.rag.store import ChunkFilter, DocumentChunks, VectorStore
from dialoom.rag.types import Chunk, Document, FloatMatrix, FloatVector, Heading, Metadata, ScoredChunk
from dialoom.stores.sqlite_index import SqliteVectorStore
from dialoom.testing.vector_contract import chunk, rows

TEXTS = {
    "refunds": "Refunds take three business days.",
    "shipping": "Shipping a lamp to Norway costs nine euros.",
    "zh": "退款需要三个工作日。",
}


class Meaning:
    """An embedder that knows two meanings, and which languages it was trained on."""

    id, model, dim = "meaning", "meaning-v1", 2

    def __init__(self, *languages: str) -> None:
        self.languages = languages
        self.asked: list[str] = []

    async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        return rows(*([1, 0.2] if "day" in text or "时" in text else [0, 1] for text in texts))

    async def embed_query(self, text: str) -> FloatVector:
        self.asked.append(text)
        return rows([1, 0.1])[0] if "wait" in text else rows([0.1, 1])[0]


async def filled(embedder: HashEmbedder | Meaning, store: VectorStore | None = None) -> InMemoryVectorStore:
    store = store if store is not None else InMemoryVectorStore()
    documents = [Document(id=name, text=text) for name, text in TEXTS.items()]
    report = await replace_documents(store, embedder, SlidingWindowChunker(), documents)
    assert report.failures == []
    return store


async def ids(retriever: Retriever, text: str, **fields: object) -> list[str]:
    return [hit.chunk.doc_id for hit in await retriever.retrieve(Search(text=text, **fields))]


async def test_words_come_first_and_nearness_fills_up_when_no_model_is_there() -> None:
    retriever = HybridRetriever(await filled(HashEmbedder()), HashEmbedder())
    hits = await retriever.retrieve(Search(text="lamp", k=2))
    assert hits[0].chunk.doc_id == "shipping"
    assert [round(hit.score, 4) for hit in hits] == [1.0, 0.9839]
    assert await ids(retriever, "lamp", k=1) == ["shipping"]
    assert (await ids(retriever, "三个"))[0] == "zh"


async def test_without_a_model_a_question_is_also_looked_for_in_other_words() -> None:
    texts = {
        "ill": "Ill at home: call your team lead.",
        "home": "At home, at home, at home.",
        "a": "Sick of it.",
    }
    store = InMemoryVectorStore()
    documents = [Document(id=name, text=text) for name, text in texts.items()]
    await replace_documents(store, HashEmbedder(), SlidingWindowChunker(), documents)
    retriever = HybridRetriever(store, HashEmbedder())
    assert (await ids(retriever, "sick at home", k=1)) == ["a"]  # one says it: no other words are needed
    store.remove_document("a")
    assert (await ids(retriever, "sick at home", k=1)) == ["ill"]


@pytest.mark.promise("rag-061")
async def test_a_model_and_words_are_fused() -> None:
    store = await filled(Meaning("en", "zh"))
    near = await ids(VectorRetriever(store, Meaning()), "how long to wait")
    assert near[0] == "refunds"
    fused = HybridRetriever(store, Meaning("en", "zh"))
    assert (await ids(fused, "how long to wait for a lamp"))[0] == "shipping"
    assert (await ids(fused, "how long to wait"))[0] == "refunds"
    vectors_only = HybridRetriever(
        store, Meaning("en"), fusion="rrf", weights=FusionWeights(words=0, vectors=1)
    )
    assert (await ids(vectors_only, "how long to wait for a lamp"))[0] == "refunds"
    weighted = HybridRetriever(store, Meaning(), fusion="weighted", weights=FusionWeights(words=3))
    hits = await weighted.retrieve(Search(text="wait for a lamp"))
    assert hits[0].chunk.doc_id == "shipping"
    assert hits[0].score == 0.75


async def test_a_script_the_model_does_not_know_is_said_once_and_found_by_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = await filled(Meaning())
    retriever = HybridRetriever(store, Meaning("en"))
    with caplog.at_level(logging.WARNING, "dialoom.rag"):
        assert (await ids(retriever, "退款要等多久 wait"))[0] == "zh"
        await ids(retriever, "lamp")
    assert [record.getMessage() for record in caplog.records] == [
        "the index holds Chinese text, which the embedding model does not know; choose a model for it"
    ]
    assert await HybridRetriever(store, Meaning("zh-Hans")).unknown_scripts() == frozenset()
    assert await HybridRetriever(store, HashEmbedder()).unknown_scripts() == frozenset()


def test_languages_have_scripts() -> None:
    assert scripts_of("Die Lampe, лампа и 電気スタンド, 램프") == {
        "Latin",
        "Cyrillic",
        "Chinese",
        "Japanese",
        "Korean",
    }
    assert scripts_of("x" * 999 + "中") == {"Latin"}
    assert scripts_of_languages(["ru", "xx"]) == {"Cyrillic", "Latin"}


async def test_only_what_is_near_enough_is_found_however_it_was_found() -> None:
    store = await filled(HashEmbedder())
    for retriever in (HybridRetriever(store, HashEmbedder()), VectorRetriever(store, HashEmbedder())):
        assert await ids(retriever, "lamp to Norway", min_score=0.99) == []
        assert await ids(retriever, "lamp to Norway", min_score=0.2) == ["shipping"]
    with pytest.raises(InvalidOptionsError, match="which words do not have"):
        await ids(LexicalRetriever(store), "lamp", min_score=0.3)


async def test_words_alone_find_what_shares_one() -> None:
    retriever = LexicalRetriever(await filled(HashEmbedder()))
    assert [await ids(retriever, asked) for asked in ("LAMPS", "norwegian", "工作")] == [
        ["shipping"],
        [],
        ["zh"],
    ]


class Bare(VectorStore):
    """A user's own store: what a vector store must do, and nothing more."""

    def __init__(self) -> None:
        self.inner = InMemoryVectorStore()

    @property
    def manifest(self):
        return self.inner.manifest

    def claim(self, manifest) -> None:
        self.inner.claim(manifest)

    def add(self, chunks: Sequence[Chunk], vectors: FloatMatrix) -> None:
        self.inner.add(chunks, vectors)

    def remove(self, chunk_id: str) -> bool:
        return self.inner.remove(chunk_id)

    def replace_documents(self, documents: Sequence[DocumentChunks]) -> None:
        self.inner.replace_documents(documents)

    def search(self, query, k: int, *, min_score=None, where: ChunkFilter | None = None) -> list[ScoredChunk]:
        return self.inner.search(query, k, min_score=min_score, where=where)

    def documents(self) -> list[str]:
        return self.inner.documents()

    def clear(self) -> None:
        self.inner.clear()

    def __len__(self) -> int:
        return len(self.inner)


async def test_a_store_without_words_is_searched_by_vectors() -> None:
    retriever = HybridRetriever(await filled(HashEmbedder(), Bare()), HashEmbedder())
    assert (await ids(retriever, "three business days", k=1, min_score=0.1)) == ["refunds"]
    assert await ids(retriever, "lamp", where=Eq("doc_id", "zh")) == ["zh"]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_nobody_is_shown_what_a_list_keeps_from_them(kind: str, tmp_path: Path) -> None:
    store = InMemoryVectorStore() if kind == "memory" else SqliteVectorStore(tmp_path / "index.sqlite")
    lists: dict[str, Metadata] = {"open": {}, "ann": {"acl": ["ann"], "lang": "en"}, "bob": {"acl": ["bob"]}}
    documents = [Document(id=name, text="the lamp", metadata=metadata) for name, metadata in lists.items()]
    await replace_documents(store, HashEmbedder(), SlidingWindowChunker(), documents)
    for retriever in (
        HybridRetriever(store, HashEmbedder()),
        HybridRetriever(store, HashEmbedder(), fusion="rrf"),
        VectorRetriever(store, HashEmbedder()),
        LexicalRetriever(store),
        ParentChildRetriever(LexicalRetriever(store), store),
    ):
        assert sorted(await ids(retriever, "lamp")) == ["ann", "bob", "open"]
        assert sorted(await ids(retriever, "lamp", principals=("ann", "staff"))) == ["ann", "open"]
        assert await ids(retriever, "lamp", principals=()) == ["open"]
        data = await ids(retriever, "lamp", principals=("ann",), where=Contains("lang", "en"))
        code = await ids(retriever, "lamp", principals=("bob",), where=lambda piece: piece.doc_id != "open")
        assert (data, code) == (["ann"], ["bob"])
    if isinstance(store, SqliteVectorStore):
        store.close()


async def test_the_section_around_what_was_found_is_returned() -> None:
    text = "# Refunds\n\nThey take three days. \n\nBring the receipt with you.\n\n# Shipping\n\nNine euros."
    headings = (Heading(1, "Refunds", 0), Heading(1, "Shipping", text.index("# Ship")))
    document = Document(id="d", text=text, headings=headings)
    store = InMemoryVectorStore()
    await replace_documents(store, HashEmbedder(), SlidingWindowChunker(34, 0), [document])
    assert len(store) == 3
    small = LexicalRetriever(store)
    for question in ("receipt", "three days receipt"):
        (hit,) = await ParentChildRetriever(small, store).retrieve(Search(text=question))
        # a blank at the end of a chunk is not kept, so a line end stands in its place
        section = "# Refunds\n\nThey take three days.\n\n\nBring the receipt with you."
        found = hit.chunk
        assert (found.text, found.start, found.end) == (section, 0, len(section))
    (alone,) = await ParentChildRetriever(small, store, max_chars=30).retrieve(Search(text="receipt"))
    assert alone.chunk.text == "Bring the receipt with you."


async def test_a_found_chunk_that_has_gone_meanwhile_stays_as_it_was_found() -> None:
    class Found:
        async def retrieve(self, search: Search) -> list[ScoredChunk]:
            return [ScoredChunk(chunk("gone", "d", "text"), 0.5)]

    store = InMemoryVectorStore()
    hits = await ParentChildRetriever(Found(), store).retrieve(Search(text="x"))
    assert hits == [ScoredChunk(chunk("gone", "d", "text"), 0.5)]


async def test_an_index_of_another_embedder_is_refused_before_it_is_searched() -> None:
    store = await filled(HashEmbedder())
    with pytest.raises(ManifestMismatchError, match="embedder 'hash', not 'meaning'"):
        await ids(HybridRetriever(store, Meaning()), "lamp")
    unknown = InMemoryVectorStore()
    unknown.add([chunk("a", "d")], np.ones((1, 2), np.float32))
    with pytest.raises(ManifestMissingError):
        await ids(VectorRetriever(unknown, Meaning()), "lamp")


@pytest.mark.parametrize("kind", [HybridRetriever, VectorRetriever])
async def test_words_in_the_place_of_a_search_are_refused(
    kind: type[HybridRetriever | VectorRetriever],
) -> None:
    store = await filled(HashEmbedder())
    for retriever in (kind(store, HashEmbedder()), LexicalRetriever(store)):
        with pytest.raises(UsageError) as caught:
            await retriever.retrieve("lamp")  # type: ignore[arg-type]  # what a program may do
        assert str(caught.value) == "what is looked for is a value of type str; give a Search(text=...)"


def test_searches_that_look_for_nothing_are_refused() -> None:
    with pytest.raises(EmptyQueryError):
        Search(text=" \n")
    with pytest.raises(UsageError, match="the question is a value of type int and no text; write it like"):
        Search(text=5)  # type: ignore[arg-type]  # what a program may do
    with pytest.raises(InvalidOptionsError, match="k must be 1"):
        Search(text="x", k=0)
    store = InMemoryVectorStore()
    with pytest.raises(InvalidOptionsError, match="fusion must be"):
        HybridRetriever(store, HashEmbedder(), fusion="best")
    with pytest.raises(InvalidOptionsError, match="max_chars"):
        ParentChildRetriever(LexicalRetriever(store), store, max_chars=0)
    for weights in (
        {"words": -1.0},
        {"words": 0.0, "vectors": 0.0},
        {"constant": -1},
        {"words": float("nan")},
    ):
        with pytest.raises(InvalidOptionsError):
            FusionWeights(**weights)
