"""Vectors of a server take the place of the offline ones; nothing else changes."""

import msgspec
import numpy as np
import pytest

from dialoom.llm import EmbeddingOptions, OfflineProvider, OpenAIEmbeddings, ProviderError
from dialoom.llm.retry import ONCE
from dialoom.rag import (
    Document,
    EmbedderContractError,
    InMemoryVectorStore,
    InvalidOptionsError,
    OpenAIEmbedder,
    SlidingWindowChunker,
    build_rag_query_graph,
    ingest_documents,
    manifest_of,
)
from dialoom.testing.wire import WireReply, WireRequest, WireServer

WORDS = ("refund", "parcel", "lamp")


def word_counts(request: WireRequest) -> WireReply:
    """A server whose vectors count three words, never of length 1."""
    texts = request.json()["input"]
    assert isinstance(texts, list)
    data = [
        {"index": at, "embedding": [3.0 * text.lower().count(word) + 0.5 for word in WORDS]}
        for at, text in enumerate(texts)
    ]
    return WireReply(body=(msgspec.json.encode({"data": data, "model": "counts"}),))


def embeddings(server: WireServer) -> OpenAIEmbeddings:
    return OpenAIEmbeddings(f"{server.url}/v1", model="counts", options=EmbeddingOptions(retry=ONCE))


@pytest.mark.promise("rag-065")
async def test_an_index_of_a_servers_vectors_answers_like_any_other() -> None:
    documents = [
        Document(id="a", text="The refund comes within three days."),
        Document(id="b", text="A lamp shines for five hours."),
    ]
    async with WireServer(word_counts) as server, embeddings(server) as wire:
        embedder = await OpenAIEmbedder.measured(wire)
        store, chunker = InMemoryVectorStore(), SlidingWindowChunker()
        report = await ingest_documents(store, embedder, chunker, documents)
        graph = build_rag_query_graph(store, embedder, OfflineProvider()).build()
        result = await graph.run({"query": "When does the refund come?"})
    assert (report.failures, embedder.dim) == ([], 3)
    assert store.manifest == manifest_of(embedder, chunker)
    assert result.state["answer_sources"][0].doc_id == "a"


async def test_rows_are_of_length_1_in_order_and_a_blank_text_is_a_row_of_zeros() -> None:
    async with WireServer(word_counts) as server, embeddings(server) as wire:
        rows = await OpenAIEmbedder(wire, dim=3).embed_documents(["lamp", " ", "refund refund"])
        empty = await OpenAIEmbedder(wire, dim=3).embed_documents(["", " "])
        asked = len(server.requests)
    assert np.linalg.norm(rows, axis=1).round(5).tolist() == [1.0, 0.0, 1.0]
    assert (int(rows[0].argmax()), int(rows[2].argmax())) == (2, 0)
    assert (empty.shape, empty.any(), asked) == ((2, 3), False, 1)


async def test_prefixes_are_sent_and_are_part_of_what_the_index_remembers() -> None:
    async with WireServer(word_counts) as server, embeddings(server) as wire:
        embedder = await OpenAIEmbedder.measured(wire, query_prefix="query: ", document_prefix="passage: ")
        await embedder.embed_query("lamp?")
        await embedder.embed_documents(["a lamp"])
        sent = [request.json()["input"] for request in server.requests]
    assert sent == [["passage: a"], ["query: lamp?"], ["passage: a lamp"]]
    assert embedder.model == "counts/query: /passage: "


async def test_vectors_of_another_length_and_a_refusing_server_are_errors() -> None:
    async with WireServer(word_counts) as server, embeddings(server) as wire:
        with pytest.raises(EmbedderContractError, match=r"got vectors of shape \(1, 3\)"):
            await OpenAIEmbedder(wire, dim=8).embed_query("lamp")
        with pytest.raises(InvalidOptionsError, match="dim must be 1 or more"):
            OpenAIEmbedder(wire, dim=0)
    async with WireServer([WireReply(status=401, body=(b"{}",))]) as server, embeddings(server) as wire:
        with pytest.raises(ProviderError):
            await OpenAIEmbedder(wire, dim=3).embed_query("lamp")


async def test_vectors_that_come_in_another_order_belong_to_the_texts_they_name() -> None:
    def shuffled(request: WireRequest) -> WireReply:
        data = msgspec.json.decode(word_counts(request).body[0])["data"]
        return WireReply(body=(msgspec.json.encode({"data": data[::-1]}),))

    texts = {"x": "a refund", "y": "a lamp", "z": "a parcel"}
    documents = [Document(id=name, text=text) for name, text in texts.items()]
    async with WireServer(shuffled) as server, embeddings(server) as wire:
        embedder, store = OpenAIEmbedder(wire, dim=3), InMemoryVectorStore()
        await ingest_documents(store, embedder, SlidingWindowChunker(), documents)
        nearest = {
            name: store.search(await embedder.embed_query(text), 1)[0].chunk.doc_id
            for name, text in texts.items()
        }
    assert nearest == {"x": "x", "y": "y", "z": "z"}
