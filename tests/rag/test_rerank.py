"""Candidates in another order: for variety, and by a model behind HTTP."""

import json

import numpy as np
import pytest

from dialoom.net.httpx2_transport import Httpx2Transport
from dialoom.rag.embed import HashEmbedder
from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.memory_store import InMemoryVectorStore
from dialoom.rag.rerank import MMRReranker, RerankError
from dialoom.rag.rerank_http import HttpReranker
from dialoom.rag.types import ScoredChunk
from dialoom.testing.vector_contract import chunk, rows, vector
from dialoom.testing.wire import WireReply, WireServer


def stored() -> InMemoryVectorStore:
    store = InMemoryVectorStore()
    store.add([chunk(name, "d") for name in "abc"], rows([1, 0], [1, 0.01], [0.6, 0.8]))
    return store


async def reranked(rerank_lambda: float, k: int = 3) -> list[str]:
    store = stored()
    reranker = MMRReranker(HashEmbedder(), store, rerank_lambda=rerank_lambda)
    hits = store.search(vector(1, 0), 3)
    chosen = await reranker.rerank("x", hits, k)
    assert {hit.chunk.id: hit.score for hit in hits}.items() >= {
        hit.chunk.id: hit.score for hit in chosen
    }.items()
    return [hit.chunk.id for hit in chosen]


@pytest.mark.promise("rag-108")
async def test_a_lambda_of_one_is_pure_relevance() -> None:
    assert [await reranked(1.0), await reranked(1.0, k=2)] == [["a", "b", "c"], ["a", "b"]]


@pytest.mark.promise("rag-105")
async def test_less_lambda_chooses_what_is_unlike_the_ones_before() -> None:
    assert [await reranked(0.2), await reranked(0.0, k=2)] == [["a", "c", "b"], ["a", "c"]]


async def test_hits_without_stored_vectors_are_embedded_again() -> None:
    texts = ["red lamp on a table", "red lamp on a tables", "退款需要三个工作日"]
    hits = [ScoredChunk(chunk(str(number), "d", text), 1.0) for number, text in enumerate(texts)]
    chosen = await MMRReranker(HashEmbedder(), rerank_lambda=0.5).rerank("x", hits, 2)
    assert [hit.chunk.id for hit in chosen] == ["0", "2"]
    assert await MMRReranker(HashEmbedder()).rerank("x", [], 2) == []
    assert await MMRReranker(HashEmbedder()).rerank("x", hits, 0) == []


@pytest.mark.parametrize("rerank_lambda", [-0.1, 1.1, np.nan])
def test_a_lambda_outside_its_range_is_refused(rerank_lambda: float) -> None:
    with pytest.raises(InvalidOptionsError, match="from 0 to 1"):
        MMRReranker(HashEmbedder(), rerank_lambda=rerank_lambda)


HITS = [ScoredChunk(chunk(name, "d", f"text {name} \ud83d"), 0.5) for name in "abc"]
COHERE = {"results": [{"index": 2, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.95}]}
TEI = [{"index": 1, "score": 0.3}, {"index": 0, "score": 0.7}, {"index": 2, "score": 0.1}]


def answering(body: object, status: int = 200) -> WireServer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return WireServer([WireReply(status=status, body=(data,))])


async def ask(server: WireServer, k: int = 2, **options: object) -> list[tuple[str, float]]:
    transport = Httpx2Transport()
    try:
        reranker = HttpReranker(f"{server.url}/rerank", transport, **options)
        return [(hit.chunk.id, hit.score) for hit in await reranker.rerank("why?", HITS, k)]
    finally:
        await transport.aclose()


async def test_a_server_of_the_common_shape_gives_the_order() -> None:
    async with answering(COHERE) as server:
        assert await ask(server, model="rerank-v3", api_key="secret") == [("a", 0.95), ("c", 0.9)]
    (request,) = server.requests
    assert request.headers["authorization"] == "Bearer secret"
    assert request.json() == {
        "model": "rerank-v3",
        "query": "why?",
        "documents": ["text a \ufffd", "text b \ufffd", "text c \ufffd"],
        "top_n": 2,
    }


async def test_a_server_of_the_tei_shape_gives_the_order() -> None:
    async with answering(TEI) as server:
        assert await ask(server, shape="tei") == [("a", 0.7), ("b", 0.3)]
    (request,) = server.requests
    assert ("authorization" in request.headers, sorted(request.json())) == (
        False,
        ["query", "texts", "truncate"],
    )


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"results": [{"index": 3, "relevance_score": 1}]}, 200, "were not sent"),
        ({"results": [{"index": -1, "relevance_score": 1}]}, 200, "were not sent"),
        ({"results": [{"index": 0, "relevance_score": 1}] * 2}, 200, "were not sent"),
        ({"results": "none"}, 200, "cannot be read"),
        (b"[" * 100_000, 200, "cannot be read"),
        (b"\xff", 200, "cannot be read"),
        ({"results": [{"index": 0, "relevance_score": None}]}, 200, "cannot be read"),
        ({"error": "no such model\n"}, 404, "answered 404: .*no such model"),
        (b"x" * 5_000_000, 200, "cannot be asked"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_an_error(body: object, status: int, message: str) -> None:
    async with answering(body, status) as server:
        with pytest.raises(RerankError, match=message):
            await ask(server)


async def test_nothing_is_asked_about_nothing() -> None:
    async with answering(COHERE) as server:
        assert await ask(server, k=0) == []
    assert server.requests == []
    with pytest.raises(InvalidOptionsError, match="shape must be"):
        HttpReranker("http://x", Httpx2Transport(), shape="other")
