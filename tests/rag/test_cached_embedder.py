"""A text that was embedded before is not embedded again, by this process or another one."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from dialoom.base.errors import StoreError
from dialoom.rag import (
    CachedEmbedder,
    Document,
    HashEmbedder,
    InMemoryVectorStore,
    InvalidOptionsError,
    SlidingWindowChunker,
    replace_documents,
)
from dialoom.rag.types import FloatMatrix, FloatVector
from dialoom.stores import SqliteVectorCache, SqliteVectorStore


class Counting:
    """Makes (length, 1) of a text, and notes what it was asked."""

    id, dim, languages = "counting", 2, ("en",)

    def __init__(self, model: str = "v1") -> None:
        self.model = model
        self.asked: list[str] = []

    async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        self.asked += texts
        return np.array([[len(text), 1] for text in texts], np.float32)

    async def embed_query(self, text: str) -> FloatVector:
        self.asked.append(f"? {text}")
        return np.array([len(text), 1], np.float32)


async def test_each_text_is_embedded_once_whoever_asks(tmp_path: Path) -> None:
    first, again = Counting(), Counting()
    with SqliteVectorCache(tmp_path / "new" / "vectors.sqlite") as cache:
        cached = CachedEmbedder(first, cache)
        assert (cached.id, cached.model, cached.dim, cached.languages) == ("counting", "v1", 2, ("en",))
        rows = await cached.embed_documents(["a", "退款", "a", "x\ud800"])
        assert rows.tolist() == [[1, 1], [2, 1], [1, 1], [2, 1]]
        assert first.asked == ["a", "退款", "x\ud800"]
    with SqliteVectorCache(tmp_path / "new" / "vectors.sqlite") as cache:
        cached = CachedEmbedder(again, cache)
        assert (await cached.embed_documents(["退款", "fresh", "a"])).tolist() == [[2, 1], [5, 1], [1, 1]]
        assert (await cached.embed_documents([])).shape == (0, 2)
        assert (await cached.embed_query("a")).tolist() == [1, 1]
    assert again.asked == ["fresh", "? a"]


async def test_models_do_not_take_each_others_vectors(tmp_path: Path) -> None:
    small, large = Counting("small"), Counting("large")
    with SqliteVectorCache(tmp_path / "v.sqlite") as cache:
        for embedder in (small, large):
            await CachedEmbedder(embedder, cache).embed_documents(["a"])
    assert small.asked == large.asked == ["a"]


async def test_a_changed_document_costs_only_what_changed(tmp_path: Path) -> None:
    embedder, store, chunker = Counting(), InMemoryVectorStore(), SlidingWindowChunker(40, 0)
    paragraphs = [f"Paragraph {number} holds forty characters." for number in range(5)]
    with SqliteVectorCache(tmp_path / "v.sqlite") as cache:
        cached = CachedEmbedder(embedder, cache)
        await replace_documents(store, cached, chunker, [Document(id="d", text="\n\n".join(paragraphs))])
        assert len(embedder.asked) == 5
        paragraphs[2] = "Paragraph two says something else now."
        await replace_documents(store, cached, chunker, [Document(id="d", text="\n\n".join(paragraphs))])
    assert embedder.asked[5:] == ["Paragraph two says something else now."]


def test_the_oldest_vectors_make_room(tmp_path: Path) -> None:
    with SqliteVectorCache(tmp_path / "v.sqlite", most=2) as cache:
        for name in (b"a", b"b", b"c"):
            cache.put({name: b"1"})
        assert cache.get([b"a", b"b", b"c"] * 400) == {b"b": b"1", b"c": b"1"}


async def test_a_cache_that_fails_stops_nobody_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    embedder, cache = Counting(), SqliteVectorCache(tmp_path / "v.sqlite")
    cache.close()
    with caplog.at_level(logging.WARNING, "dialoom.rag"):
        for _ in range(2):
            assert (await CachedEmbedder(embedder, cache).embed_documents(["a"])).tolist() == [[1, 1]]
    assert embedder.asked == ["a", "a"]
    assert [record.message for record in caplog.records] == ["the cache of vectors fails; they are computed"]


async def test_a_vector_of_another_length_is_computed_anew(tmp_path: Path) -> None:
    embedder = Counting()
    with SqliteVectorCache(tmp_path / "v.sqlite") as cache:
        cached = CachedEmbedder(embedder, cache)
        await cached.embed_documents(["a"])
        cache.put(dict.fromkeys(cache.get([cached._key("a")]), b"short"))
        assert (await cached.embed_documents(["a"])).tolist() == [[1, 1]]
        assert (await cached.embed_documents(["a"])).tolist() == [[1, 1]]
    assert embedder.asked == ["a", "a"]


def test_an_index_is_not_taken_for_a_cache_and_hash_vectors_need_none(tmp_path: Path) -> None:
    SqliteVectorStore(tmp_path / "index.sqlite").close()
    with pytest.raises(StoreError, match="is a file of another program; choose another path for vectors"):
        SqliteVectorCache(tmp_path / "index.sqlite")
    with (
        SqliteVectorCache(tmp_path / "v.sqlite") as cache,
        pytest.raises(InvalidOptionsError, match="cost less"),
    ):
        CachedEmbedder(HashEmbedder(), cache)
