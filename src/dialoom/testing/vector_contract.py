"""The contract of `VectorStore` as tests: subclass, say how to make an empty store, and pytest runs it.

class TestMyStore(VectorStoreContract):
    def make_store(self, folder):
        return MyStore(folder / "index")

A store that is a `LexicalIndex` and a `PassageReader` too runs `SearchableStoreContract` beside it.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Protocol

import numpy as np
import pytest

from dialoom.base.errors import UsageError
from dialoom.rag.errors import (
    DimensionMismatchError,
    ManifestMismatchError,
    ManifestMissingError,
    NonFiniteVectorError,
)
from dialoom.rag.filters import Contains, Eq, Not, VisibleTo
from dialoom.rag.lexical import LexicalIndex
from dialoom.rag.manifest import IndexManifest
from dialoom.rag.store import ChunkFilter, DocumentChunks, PassageReader, VectorStore
from dialoom.rag.types import Chunk, FloatMatrix, FloatVector, Metadata, ScoredChunk

_MANIFEST = IndexManifest(embedder="hash", model="hash-v1/2/sqrt", dim=2, chunker="sliding-v1/400/60/chars")


def chunk(chunk_id: str, doc_id: str, text: str = "", metadata: Metadata | None = None) -> Chunk:
    """A small chunk."""
    return Chunk(id=chunk_id, doc_id=doc_id, text=text, end=len(text), metadata=metadata or {})


def rows(*vectors: Sequence[float]) -> FloatMatrix:
    """A matrix of these rows."""
    return np.array(vectors, np.float32)


def vector(*numbers: float) -> FloatVector:
    """One vector of these numbers."""
    return np.array(numbers, np.float32)


def found(store: VectorStore, *numbers: float, k: int = 10) -> list[str]:
    """The ids of the chunks nearest to a vector."""
    return [hit.chunk.id for hit in store.search(vector(*numbers), k)]


class VectorStoreContract:
    """What every vector store does. Override `make_store`."""

    def make_store(self, folder: Path) -> VectorStore:
        """An empty store that may keep its files in `folder`."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path: Path) -> VectorStore:
        return self.make_store(tmp_path)

    def test_an_empty_store_finds_nothing(self, store: VectorStore) -> None:
        assert (len(store), store.documents(), store.manifest, found(store, 1, 0)) == (0, [], None, [])

    def test_a_chunk_comes_back_whole(self, store: VectorStore) -> None:
        whole = Chunk(
            id="d#0",
            doc_id="d",
            text="退款需要三个工作日。\x00 🇨🇳",
            start=7,
            end=21,
            page=3,
            heading_path=("Refunds", "Time"),
            metadata={"source": "/kb/d.md", "row": 1, "rate": 0.5, "ok": True, "tags": ["a"], "none": None},
        )
        store.add([whole], rows([3, 4]))
        (hit,) = store.search(vector(3, 4), 1)
        assert (hit.chunk, round(hit.score, 6)) == (whole, 1.0)

    def test_of_two_chunks_with_one_id_the_last_stays(self, store: VectorStore) -> None:
        store.add([chunk("c", "d", "old"), chunk("c", "d", "new")], rows([1, 0], [0, 1]))
        store.add([chunk("b", "d", "other")], rows([1, 1]))
        store.add([chunk("b", "e", "moved")], rows([1, 0]))
        hits = [(hit.chunk.id, hit.chunk.doc_id, hit.chunk.text) for hit in store.search(vector(0, 1), 9)]
        assert (hits, len(store)) == ([("c", "d", "new"), ("b", "e", "moved")], 2)
        assert store.documents() == ["d", "e"]

    def test_equal_scores_come_in_the_order_of_storing(self, store: VectorStore) -> None:
        store.add([chunk(name, "d") for name in "dbca"], rows([1, 1], [2, 2], [0.5, 0.5], [1, 1]))
        assert (found(store, 1, 1), found(store, 1, 1, k=2)) == (["d", "b", "c", "a"], ["d", "b"])

    def test_k_is_clamped_to_what_is_there(self, store: VectorStore) -> None:
        store.add([chunk("a", "d"), chunk("b", "d")], rows([1, 0], [0, 1]))
        assert [found(store, 1, 0.1, k=k) for k in (99, 1, 0, -1)] == [["a", "b"], ["a"], [], []]

    def test_scores_are_plain_cosines(self, store: VectorStore) -> None:
        store.add([chunk("a", "d"), chunk("b", "d"), chunk("z", "d")], rows([9, 0], [-0.1, 0], [0, 0]))
        scores = {hit.chunk.id: round(hit.score, 6) for hit in store.search(vector(5, 0), 9)}
        assert scores == {"a": 1.0, "z": 0.0, "b": -1.0}
        assert [hit.score for hit in store.search(vector(0, 0), 9)] == [0.0, 0.0, 0.0]
        least = store.search(vector(1, 0), 9, min_score=0.0)
        assert [hit.chunk.id for hit in least] == ["a", "z"]

    def test_very_large_and_very_small_vectors_have_a_direction_too(self, store: VectorStore) -> None:
        store.add([chunk("big", "d"), chunk("small", "d")], rows([3e38, 0], [0, 1e-38]))
        hits = {hit.chunk.id: round(hit.score, 5) for hit in store.search(vector(1e-30, 0), 9)}
        assert hits == {"big": 1.0, "small": 0.0}

    def test_a_filter_is_asked_before_k_is_counted(self, store: VectorStore) -> None:
        near = [chunk(f"c{number}", "d", metadata={"lang": "en"}) for number in range(200)]
        store.add(near, rows(*([1, number / 1000] for number in range(200))))
        store.add([chunk("far", "zh", metadata={"lang": "zh"})], rows([0, 1]))
        hits = store.search(vector(1, 0), 1, where=lambda piece: piece.metadata["lang"] == "zh")
        assert [hit.chunk.id for hit in hits] == ["far"]
        odd = store.search(vector(1, 0), 3, where=lambda piece: piece.id[-1] in "13579")
        assert [hit.chunk.id for hit in odd] == ["c1", "c3", "c5"]

    def test_a_filter_may_ask_the_store(self, store: VectorStore) -> None:
        store.add([chunk("a", "d"), chunk("b", "d")], rows([1, 0], [0, 1]))
        hits = store.search(vector(1, 0), 9, where=lambda piece: found(store, 0, 1, k=1) == [piece.id])
        assert [hit.chunk.id for hit in hits] == ["b"]

    def test_a_removed_chunk_is_gone(self, store: VectorStore) -> None:
        store.add([chunk("a", "d"), chunk("b", "d"), chunk("c", "e")], rows([1, 0], [0, 1], [1, 1]))
        assert (store.remove("a"), store.remove("a"), store.remove("c")) == (True, False, True)
        assert (found(store, 1, 0), store.documents(), len(store)) == (["b"], ["d"], 1)

    def test_a_removed_document_is_gone_and_no_other_of_equal_content(self, store: VectorStore) -> None:
        store.add([chunk("a0", "a", "same"), chunk("b0", "b", "same")], rows([1, 0], [1, 0]))
        store.remove_document("a")
        store.remove_document("never there")
        assert (found(store, 1, 0), store.documents()) == (["b0"], ["b"])

    def test_a_replaced_document_leaves_nothing_of_the_old(self, store: VectorStore) -> None:
        store.replace_document("d", [chunk("d#0", "d", "p"), chunk("d#1", "d", "q")], rows([1, 0], [1, 1]))
        store.replace_document("d", [chunk("d#0", "d", "r")], rows([1, 0]))
        hits = [(hit.chunk.id, hit.chunk.text) for hit in store.search(vector(1, 0), 9)]
        assert (hits, len(store)) == ([("d#0", "r")], 1)

    def test_a_batch_of_documents_is_stored_whole_or_not_at_all(self, store: VectorStore) -> None:
        store.replace_documents(
            [
                DocumentChunks("a", [chunk("a0", "a")], rows([1, 0])),
                DocumentChunks("b", [chunk("b0", "b")], rows([1, 0.1])),
            ]
        )
        with pytest.raises(DimensionMismatchError):
            store.replace_documents(
                [
                    DocumentChunks("a", [chunk("a1", "a")], rows([1, 0])),
                    DocumentChunks("b", [chunk("b1", "b")], rows([1, 0, 0])),
                ]
            )
        assert (found(store, 1, 0), store.documents()) == (["a0", "b0"], ["a", "b"])

    def test_vectors_of_another_dimension_are_refused(self, store: VectorStore) -> None:
        store.add([chunk("a", "d")], rows([1, 0]))
        with pytest.raises(DimensionMismatchError):
            store.add([chunk("b", "d")], rows([1, 0, 0]))
        with pytest.raises(DimensionMismatchError):
            store.add([chunk("b", "d")], rows([]))
        with pytest.raises(DimensionMismatchError):
            store.search(vector(1, 0, 0), 1)
        with pytest.raises(DimensionMismatchError):
            store.search(rows([1, 0]), 1)
        assert found(store, 1, 0) == ["a"]

    @pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
    def test_a_vector_that_is_not_finite_is_refused(self, store: VectorStore, number: float) -> None:
        with pytest.raises(NonFiniteVectorError):
            store.add([chunk("a", "d"), chunk("b", "d")], rows([1, 0], [number, 0]))
        assert (len(store), found(store, 1, 0)) == (0, [])

    def test_chunks_without_their_vectors_are_refused(self, store: VectorStore) -> None:
        with pytest.raises(UsageError):
            store.add([chunk("a", "d")], rows([1, 0], [0, 1]))
        with pytest.raises(UsageError):
            store.replace_document("d", [chunk("a", "another")], rows([1, 0]))
        assert len(store) == 0

    def test_the_first_manifest_is_kept_and_every_later_one_compared(self, store: VectorStore) -> None:
        store.claim(_MANIFEST)
        store.claim(_MANIFEST)
        other = IndexManifest(embedder="hash", model="another", dim=2, chunker=_MANIFEST.chunker)
        with pytest.raises(ManifestMismatchError, match=r"model 'hash-v1/2/sqrt', not 'another'.*--rebuild"):
            store.claim(other)
        with pytest.raises(DimensionMismatchError):
            store.add([chunk("a", "d")], rows([1, 0, 0]))
        assert store.manifest == _MANIFEST

    def test_chunks_of_unknown_making_cannot_be_claimed(self, store: VectorStore) -> None:
        store.add([chunk("a", "d")], rows([1, 0]))
        with pytest.raises(ManifestMissingError):
            store.claim(_MANIFEST)
        assert (store.manifest, len(store)) == (None, 1)

    def test_a_cleared_store_is_as_new(self, store: VectorStore) -> None:
        store.claim(_MANIFEST)
        store.add([chunk("a", "d")], rows([1, 0]))
        store.clear()
        assert (len(store), store.documents(), store.manifest, found(store, 1, 0)) == (0, [], None, [])
        store.add([chunk("a", "d")], rows([1, 0, 0]))
        assert found(store, 1, 0, 0) == ["a"]

    def test_a_search_beside_a_writer_sees_the_old_or_the_new_and_no_mix(self, store: VectorStore) -> None:
        def version(number: int) -> list[Chunk]:
            return [chunk(f"d#{place}", "d", f"{number}") for place in range(5)]

        def write() -> None:
            for number in range(1, 30):
                store.replace_document("d", version(number), rows(*([1, 0],) * 5))

        store.replace_document("d", version(0), rows(*([1, 0],) * 5))
        _see_whole_versions(write, lambda: store.search(vector(1, 0), 9), 60)


class SearchableStore(VectorStore, LexicalIndex, PassageReader, Protocol):
    """A vector store that is searched for words too and reads its own passages."""


def worded(store: LexicalIndex, question: str, k: int = 10) -> list[str]:
    """The ids of the chunks that hold words of a question."""
    return [hit.chunk.id for hit in store.search_words(question, k)]


def put(store: VectorStore, **texts: str) -> None:
    """One document with one chunk for each text, all with the same vector."""
    store.replace_documents(
        [DocumentChunks(name, [chunk(name, name, text)], rows([1, 0])) for name, text in texts.items()]
    )


class SearchableStoreContract:
    """What every store does that finds chunks by their words, and reads its passages."""

    def make_store(self, folder: Path) -> SearchableStore:
        """An empty store that may keep its files in `folder`."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path: Path) -> SearchableStore:
        return self.make_store(tmp_path)

    def test_chunks_that_share_a_word_are_found_and_no_others(self, store: SearchableStore) -> None:
        assert worded(store, "refund") == []
        put(store, a="Refunds take three days.", b="Shipping costs nine euros.", c="Ein Café in Zürich")
        assert [worded(store, asked) for asked in ("REFUND?", "a cafe", "zurich", "lamp", "", "?!")] == [
            ["a"],
            ["c"],
            ["c"],
            [],
            [],
            [],
        ]

    def test_scripts_without_blanks_are_found_by_any_part(self, store: SearchableStore) -> None:
        put(
            store,
            a="检查点如何支持恢复",
            b="退款政策说明",
            c="步2 重跑gen-itgc后50条悬空引用清零",
            d="カード払い",
        )
        assert [worded(store, asked) for asked in ("恢复", "款", "itgc", "怎么退款？", "カード")] == [
            ["a"],
            ["b"],
            ["c"],
            ["b"],
            ["d"],
        ]

    def test_what_looks_like_query_syntax_is_only_text(self, store: SearchableStore) -> None:
        put(store, a='title: "NEAR" AND (x*y) -z', b="plain")
        assert worded(store, 'col:x AND NEAR("y" OR *) - "') == ["a"]

    def test_rarer_words_and_shorter_chunks_come_first(self, store: SearchableStore) -> None:
        put(store, a="lamp post", b="lamp oil and a wick", c="wick", d="post", e="oil", f="lamp")
        hits = store.search_words("lamp wick", 9)
        assert [hit.chunk.id for hit in hits] == ["c", "b", "f", "a"]
        assert all(first.score >= second.score > 0 for first, second in pairwise(hits))
        assert [worded(store, "lamp wick", k) for k in (2, 0, -1)] == [["c", "b"], [], []]

    def test_equal_scores_of_words_come_in_the_order_of_storing(self, store: SearchableStore) -> None:
        put(store, d="one lamp", b="two lamp", c="ten lamp", x="other things")
        put(store, b="two lamp")
        assert worded(store, "lamp") == ["d", "c", "b"]

    def test_words_go_and_change_with_their_chunks(self, store: SearchableStore) -> None:
        put(store, a="red lamp", b="blue lamp", c="green lamp")
        put(store, a="red chair")
        store.remove("b")
        assert (worded(store, "lamp"), worded(store, "red"), worded(store, "blue")) == (["c"], ["a"], [])
        store.add([chunk("c", "elsewhere", "green sofa")], rows([0, 1]))
        store.remove_document("a")
        assert (worded(store, "lamp red"), worded(store, "green")) == ([], ["c"])
        store.clear()
        put(store, z="green")
        assert worded(store, "green") == ["z"]

    def test_a_batch_that_is_refused_leaves_the_words_as_they_were(self, store: SearchableStore) -> None:
        put(store, a="red lamp")
        with pytest.raises(DimensionMismatchError):
            store.replace_documents(
                [
                    DocumentChunks("a", [chunk("a", "a", "blue")], rows([1, 0])),
                    DocumentChunks("b", [chunk("b", "b", "lamp")], rows([1, 0, 0])),
                ]
            )
        assert (worded(store, "lamp"), worded(store, "blue")) == (["a"], [])

    def test_headings_are_found_with_the_text_below_them(self, store: SearchableStore) -> None:
        piece = Chunk(id="a", doc_id="a", text="Three days.", end=11, heading_path=("Refunds", "Duration"))
        store.add([piece, chunk("b", "b", "Nine euros.")], rows([1, 0], [1, 0]))
        assert worded(store, "How long is the duration of refunds?") == ["a"]

    def test_filters_are_asked_before_words_are_counted(self, store: SearchableStore) -> None:
        pieces = [chunk(f"{number}", "d", "lamp", {"n": number, "tags": ["t", "u"]}) for number in range(150)]
        store.add(pieces, np.ones((150, 2), np.float32))
        last: list[ChunkFilter] = [
            Eq("n", 149),
            lambda piece: piece.metadata["n"] == 149,
            Not(Not(Eq("id", "149"))),
        ]
        for where in last:
            assert [hit.chunk.id for hit in store.search_words("lamp", 3, where=where)] == ["149"]
            assert [hit.chunk.id for hit in store.search(vector(1, 0), 3, where=where)] == ["149"]
        tagged = store.search_words("lamp", 2, where=Contains("tags", "u"))
        assert [hit.chunk.id for hit in tagged] == ["0", "1"]

    def test_nobody_sees_what_a_list_keeps_from_them(self, store: SearchableStore) -> None:
        for name, listed in {
            "all": None,
            "none": [],
            "ann": ["ann"],
            "both": ["ann", "bob"],
            "odd": "ann",
        }.items():
            metadata: Metadata = {"acl": listed} if listed is not None else {}
            store.add([chunk(name, name, "lamp", metadata)], rows([1, 0]))

        def seen(*names: str) -> list[list[str]]:
            where = VisibleTo(names)
            both = store.search(vector(1, 0), 9, where=where), store.search_words("lamp", 9, where=where)
            return [sorted(hit.chunk.id for hit in hits) for hits in both]

        assert seen("bob") == [["all", "both"]] * 2
        assert seen("x", "ann") == [["all", "ann", "both"]] * 2
        assert seen() == seen("an") == [["all"]] * 2

    def test_vectors_and_neighbours_can_be_read(self, store: SearchableStore) -> None:
        assert (store.vectors([]).shape[0], store.chunks_of("d")) == (0, [])
        second = Chunk(id="d#1", doc_id="d", text="two", start=5, end=8)
        first = Chunk(id="d#0", doc_id="d", text="one", start=0, end=3)
        store.add([second, first, chunk("e", "e")], rows([3, 4], [0, 0], [0, 2]))
        assert store.chunks_of("d") == [first, second]
        read = store.vectors(["e", "d#1", "none", "d#0"]).tolist()
        assert [[round(number, 3) for number in row] for row in read] == [[0, 1], [0.6, 0.8], [0, 0], [0, 0]]

    def test_words_searched_beside_a_writer_are_the_old_or_the_new(self, store: SearchableStore) -> None:
        def write() -> None:
            for number in range(1, 20):
                store.replace_document(
                    "d",
                    [chunk(f"d#{place}", "d", f"lamp {number}") for place in range(5)],
                    rows(*([1, 0],) * 5),
                )

        store.replace_document(
            "d", [chunk(f"d#{place}", "d", "lamp 0") for place in range(5)], rows(*([1, 0],) * 5)
        )
        _see_whole_versions(write, lambda: store.search_words("lamp", 9), 40)


def _see_whole_versions(
    write: Callable[[], None], search: Callable[[], list[ScoredChunk]], times: int
) -> None:
    """Search beside a writer, and find five chunks of one version each time."""
    writer = Thread(target=write)
    writer.start()
    seen = [[hit.chunk.text for hit in search()] for _ in range(times)]
    writer.join(timeout=60)
    assert not writer.is_alive()
    assert [texts for texts in seen if len(texts) != 5 or len(set(texts)) != 1] == []
