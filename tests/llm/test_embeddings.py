"""Texts become vectors: in batches, in order, whatever the server does on the way."""

import asyncio
import base64
import struct
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.base.errors import UsageError
from dialoom.llm import ProviderError, RetryPolicy, Usage
from dialoom.llm.openai.embeddings import EmbeddingOptions, OpenAIEmbeddings
from dialoom.llm.openai.vectors import Embeddings, MalformedVectorsError, read_vectors
from dialoom.net import Httpx2Transport
from dialoom.testing.clock import ManualClock
from dialoom.testing.wire import Hold, WireReply, WireRequest, WireServer

KEY = "sk-test-0123456789"
NOW = RetryPolicy(first_wait=0.0)


def reply(*vectors: Any, indexes: list[int] | None = None, **fields: Any) -> WireReply:
    order = indexes if indexes is not None else list(range(len(vectors)))
    data = [{"index": at, "embedding": vector} for at, vector in zip(order, vectors, strict=True)]
    return WireReply(body=(msgspec.json.encode({"data": data, "model": "e", **fields}),))


def texts_of(request: WireRequest) -> list[str]:
    texts: Any = request.json()["input"]
    return texts


def lengths(request: WireRequest) -> WireReply:
    """Answer each text with its length, in reverse order."""
    texts = texts_of(request)
    places = list(range(len(texts)))[::-1]
    usage = {"prompt_tokens": len(texts)}
    return reply(*([float(len(texts[at])), 1.0] for at in places), indexes=places, usage=usage)


@asynccontextmanager
async def served(
    replies: list[WireReply] | Callable[[WireRequest], WireReply], **options: Any
) -> AsyncGenerator[tuple[WireServer, OpenAIEmbeddings]]:
    made = EmbeddingOptions(**{"retry": NOW, **options})
    async with (
        WireServer(replies) as server,
        OpenAIEmbeddings(f"{server.url}/v1", KEY, model="e", options=made) as embeddings,
    ):
        yield server, embeddings


async def failure(*replies: WireReply, **options: Any) -> ProviderError:
    async with served(list(replies), **options) as (_, embeddings):
        with pytest.raises(ProviderError) as caught:
            await embeddings.embed(["a", "b"])
    assert KEY not in str(caught.value)
    return caught.value


@pytest.mark.promise("rag-063")
async def test_each_text_has_its_vector_in_its_place() -> None:
    texts = ["x" * size for size in range(1, 8)]
    async with served(lengths, max_texts=3) as (server, embeddings):
        found = await embeddings.embed(texts)
    assert found == Embeddings(
        vectors=tuple([float(size), 1.0] for size in range(1, 8)), usage=Usage(input_tokens=7), model="e"
    )
    assert sorted(len(texts_of(request)) for request in server.requests) == [1, 3, 3]
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_long_texts_make_smaller_batches() -> None:
    async with served(lengths, max_tokens=100) as (server, embeddings):
        await embeddings.embed(["x" * 150, "x" * 120, "x" * 90, "x" * 900, "x"])
    sizes = sorted([len(text) for text in texts_of(request)] for request in server.requests)
    assert sizes == [[1], [90], [150, 120], [900]]


async def test_nothing_is_asked_for_no_text_and_blank_text_is_a_mistake() -> None:
    async with served([]) as (server, embeddings):
        assert await embeddings.embed([]) == Embeddings(vectors=(), model="e")
        with pytest.raises(UsageError, match="text 1 is blank; leave it out"):
            await embeddings.embed(["a", " \n"])
    assert server.requests == []


async def test_what_the_model_can_vary_is_asked_for() -> None:
    async with served([reply([1.0])], dimensions=1, extra_body={"user": "u"}) as (server, embeddings):
        await embeddings.embed(["a\ud83d"])
    assert server.requests[0].json() == {"model": "e", "input": ["a\ufffd"], "dimensions": 1, "user": "u"}


@pytest.mark.promise("rag-064")
async def test_a_busy_or_broken_server_is_asked_again() -> None:
    busy = WireReply(status=429, headers={"retry-after-ms": "1"})
    broken, lost = WireReply(status=503), WireReply(body=(b"{",), end="reset")
    async with served(
        [busy, broken, lost, reply([1.0], [2.0])], retry=RetryPolicy(attempts=4, first_wait=0)
    ) as (
        server,
        embeddings,
    ):
        assert (await embeddings.embed(["a", "b"])).vectors == ([1.0], [2.0])
    assert len(server.requests) == 4


class WatchedClock(ManualClock):
    """Tells when somebody waits on it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asked.set()
        await super().sleep(seconds)


async def test_the_wait_a_server_asks_for_is_kept() -> None:
    clock = WatchedClock()
    busy = WireReply(status=429, headers={"retry-after": "20"})
    async with (
        WireServer([busy, reply([1.0])]) as server,
        OpenAIEmbeddings(f"{server.url}/v1", model="e", clock=clock) as embeddings,
    ):
        task = asyncio.create_task(embeddings.embed(["a"]))
        async with asyncio.timeout(60):
            await clock.asked.wait()
            await clock.advance(19.9)
            assert len(server.requests) == 1
            await clock.advance(0.2)
            assert (await task).vectors == ([1.0],)


@pytest.mark.parametrize(
    ("wrong", "kind", "said"),
    [
        (reply([1.0]), "invalid_response", "1 vectors for 2 texts"),
        (reply([1.0], [2.0], indexes=[0, 0]), "invalid_response", "indexes that are missing or given twice"),
        (reply([1.0], [2.0, 3.0]), "invalid_response", "vectors that are empty or of different lengths"),
        (reply([], []), "invalid_response", "vectors that are empty or of different lengths"),
        (reply([1.0], "!!!"), "invalid_response", "base64 that holds no floats"),
        (reply([1.0], [None]), "invalid_response", "Expected `float`"),
        (WireReply(body=(b"<html>",)), "invalid_response", "check that the base url is one of an embeddings"),
        (WireReply(status=401), "auth", "check the api key"),
        (WireReply(status=501), "server_error", "choose a model and server that serve embeddings"),
        (
            WireReply(status=400, body=(b'{"error":"input length exceeds the context length"}',)),
            "context_window",
            "cut the texts into shorter pieces",
        ),
    ],
)
async def test_what_cannot_be_used_is_an_error_that_says_so(wrong: WireReply, kind: str, said: str) -> None:
    error = await failure(wrong)
    assert error.kind == kind
    assert said in str(error)


async def test_batches_of_different_lengths_do_not_go_together() -> None:
    error = await failure(reply([1.0]), reply([1.0, 2.0]), max_texts=1, concurrency=0)
    assert "vectors of different lengths" in str(error)


async def test_one_batch_that_fails_stops_the_others() -> None:
    hold = Hold()
    bad = WireReply(status=400)
    replies = iter([WireReply(body=(hold, b"{}")), bad])
    async with served(lambda _: next(replies), max_texts=1) as (_, embeddings):
        with pytest.raises(ProviderError) as caught:
            await asyncio.wait_for(embeddings.embed(["a", "b"]), 60)
    assert caught.value.kind == "bad_request"


async def test_a_cancelled_call_ends_at_once() -> None:
    hold, scope = Hold(), CancelScope()
    async with served([WireReply(body=(hold, b"{}"))]) as (server, embeddings):
        task = asyncio.create_task(embeddings.embed(["a"], cancel=scope))
        await asyncio.wait_for(hold.reached.wait(), 60)
        scope.cancel()
        with pytest.raises(Cancelled):
            await asyncio.wait_for(task, 60)
        await asyncio.wait_for(server.client_left.wait(), 60)


async def test_a_server_that_cannot_be_reached_is_named() -> None:
    async with Httpx2Transport() as transport:
        options = EmbeddingOptions(retry=NOW)
        embeddings = OpenAIEmbeddings(
            "http://127.0.0.1:9/v1", KEY, model="e", options=options, transport=transport
        )
        with pytest.raises(ProviderError, match="start the server there") as caught:
            await embeddings.embed(["a"])
        await embeddings.aclose()
    assert caught.value.kind == "connection"
    assert repr(embeddings) == "OpenAIEmbeddings(openai at http://127.0.0.1:9/v1, model='e')"


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(
    st.integers(1, 4).flatmap(lambda dim: st.lists(st.lists(FLOATS, min_size=dim, max_size=dim), min_size=1))
)
def test_vectors_come_back_in_order_in_both_forms(vectors: list[list[float]]) -> None:
    packed = [base64.b64encode(struct.pack(f"<{len(v)}f", *v)).decode() for v in vectors]
    places = list(range(len(vectors)))[::-1]
    for form in (vectors, packed):
        data = [{"index": at, "embedding": form[at]} for at in places]
        body = msgspec.json.encode({"data": data})
        assert read_vectors(body, len(vectors)).vectors == tuple(vectors)
        unnumbered = msgspec.json.encode({"data": [{"embedding": each} for each in form]})
        assert read_vectors(unnumbered, len(vectors)).vectors == tuple(vectors)


@given(st.binary(max_size=40))
def test_no_body_breaks_the_reader(body: bytes) -> None:
    with pytest.raises(MalformedVectorsError):
        read_vectors(body, 1)


def test_a_number_that_is_not_finite_is_refused() -> None:
    infinite = base64.b64encode(struct.pack("<f", float("inf"))).decode()
    with pytest.raises(MalformedVectorsError, match="not finite"):
        read_vectors(msgspec.json.encode({"data": [{"embedding": infinite}]}), 1)
