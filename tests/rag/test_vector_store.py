"""What both stores promise, as their users meet it; each test runs on both."""

import subprocess
import sys
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import ClassVar

import numpy as np
import pytest

from dialoom.base.errors import StoreError, UsageError
from dialoom.llm import MockProvider
from dialoom.rag.chunk import SlidingWindowChunker
from dialoom.rag.embed import HashEmbedder
from dialoom.rag.errors import (
    CorruptIndexError,
    DimensionMismatchError,
    ManifestMismatchError,
    ManifestMissingError,
)
from dialoom.rag.ingest import ingest_documents, replace_documents
from dialoom.rag.manifest import IndexManifest, check_embedder, manifest_of
from dialoom.rag.memory_store import InMemoryVectorStore
from dialoom.rag.query import build_rag_query_graph
from dialoom.rag.store import ChunkFilter, DocumentChunks, VectorStore
from dialoom.rag.types import Chunk, Document, FloatMatrix, FloatVector, ScoredChunk
from dialoom.stores.sqlite_index import SqliteVectorStore
from dialoom.testing.vector_contract import chunk, found, rows, vector

MADE = IndexManifest(embedder="hash", model="m", dim=2, chunker="c")


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorStore]:
    if request.param == "memory":
        yield InMemoryVectorStore()
        return
    with SqliteVectorStore(tmp_path / "index.sqlite") as opened:
        yield opened


@pytest.mark.promise("rag-077")
def test_a_chunk_with_a_known_id_takes_the_place_of_the_old_one(store: VectorStore) -> None:
    store.add([chunk("a", "d", "old"), chunk("b", "d", "other")], rows([1, 0], [0, 1]))
    store.add([chunk("a", "d", "new")], rows([1, 0.1]))
    assert [hit.chunk.text for hit in store.search(vector(1, 0), 9)] == ["new", "other"]


@pytest.mark.promise("rag-079")
def test_one_chunk_can_be_taken_out(store: VectorStore) -> None:
    store.add([chunk("a", "d"), chunk("b", "d")], rows([1, 0], [0, 1]))
    assert (store.remove("a"), store.remove("a"), found(store, 1, 0)) == (True, False, ["b"])


@pytest.mark.promise("rag-080")
def test_a_document_can_be_taken_out_with_all_its_chunks(store: VectorStore) -> None:
    store.add([chunk("a", "d"), chunk("b", "d"), chunk("c", "e")], rows([1, 0], [0, 1], [1, 1]))
    store.remove_document("d")
    assert (store.documents(), found(store, 1, 0)) == (["e"], ["c"])


@pytest.mark.promise("rag-081")
def test_the_chunks_of_a_document_are_swapped_in_one_step(store: VectorStore) -> None:
    store.replace_document("d", [chunk("d0", "d"), chunk("d1", "d")], rows([1, 0], [0, 1]))
    store.replace_document("d", [chunk("d2", "d")], rows([1, 1]))
    assert found(store, 1, 0) == ["d2"]


@pytest.mark.promise("rag-098")
def test_several_documents_are_swapped_in_one_step(store: VectorStore) -> None:
    store.replace_documents([part("a", "a0", 1, 0), part("b", "b0", 0, 1)])
    store.replace_documents([part("a", "a1", 1, 0), part("b", "b1", 0, 1), part("c", "c0", 1, 1)])
    assert found(store, 1, 0) == ["a1", "c0", "b1"]
    seen: list[set[str]] = []
    done = Event()

    def read() -> None:
        while not done.is_set():
            seen.append({hit.chunk.text for hit in store.search(vector(1, 0), 9)})

    reader = Thread(target=read)
    reader.start()
    for number in range(2_000):
        text = str(number)
        swapped = [DocumentChunks(name, [chunk(name, name, text)], rows([1, 0])) for name in "abcdefgh"]
        store.replace_documents(swapped)
        if len(seen) > 60:
            break
    done.set()
    reader.join(timeout=60)
    assert (len(seen) > 60, [texts for texts in seen if len(texts) != 1]) == (True, [])


@pytest.mark.promise("rag-099")
def test_one_bad_part_changes_nothing(store: VectorStore) -> None:
    store.replace_documents([part("a", "a0", 1, 0)])
    with pytest.raises(DimensionMismatchError):
        store.replace_documents(
            [part("a", "a1", 1, 0), DocumentChunks("b", [chunk("b", "b")], rows([1, 0, 0]))]
        )
    assert found(store, 1, 0) == ["a0"]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (Chunk(id="", doc_id="d", text="x"), "a chunk has no id; give each one its own"),
        (
            Chunk(id="a", doc_id="d", text="x", metadata={"m": {"x": 1}}),
            "the metadata 'm' is a dict; give a text",
        ),
        (
            Chunk(id="a", doc_id="d", text="x", metadata={"acl": ("sales",)}),
            "the metadata 'acl' is a tuple; give",
        ),
        (Chunk(id="a", doc_id="d", text="x", metadata={"m": [1]}), "the metadata 'm' is a list; give a text"),
    ],
)
def test_what_could_not_be_read_back_is_refused(store: VectorStore, bad: Chunk, told: str) -> None:
    store.add([chunk("b", "d")], rows([1, 0]))
    for change in (store.add, lambda chunks, vectors: store.replace_document("d", chunks, vectors)):
        with pytest.raises(UsageError) as caught:
            change([bad], rows([0, 1]))
        assert str(caught.value).startswith(told)
    assert found(store, 1, 0) == ["b"]


@pytest.mark.promise("rag-082", "rag-085", "docs-036")
def test_the_nearest_chunks_are_those_of_a_full_scan(store: VectorStore) -> None:
    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(500, 8)).astype(np.float32)
    store.add([chunk(str(number), "d") for number in range(500)], vectors)
    question = vectors[3] + vectors[77]
    cosines = vectors @ question / np.linalg.norm(vectors, axis=1) / np.linalg.norm(question)
    hits = store.search(question, 20)
    assert [hit.chunk.id for hit in hits] == [str(place) for place in np.argsort(-cosines)[:20]]
    assert [hit.score for hit in hits] == pytest.approx(sorted(cosines, reverse=True)[:20], abs=1e-3)


def test_many_questions_are_answered_as_each_alone(store: VectorStore) -> None:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(300, 8)).astype(np.float32)
    store.add([chunk(str(number), "d") for number in range(300)], vectors)
    store.remove("7")
    questions = rng.normal(size=(70, 8)).astype(np.float32)
    many = [[hit.chunk.id for hit in hits] for hits in store.search_many(questions, 5)]
    assert many == [[hit.chunk.id for hit in store.search(question, 5)] for question in questions]
    assert store.search_many(questions[:2], 0) == [[], []]
    assert [len(hits) for hits in store.search_many(questions[:1], 999)] == [299]
    with pytest.raises(DimensionMismatchError):
        store.search_many(questions[0], 3)
    with pytest.raises(DimensionMismatchError):
        store.search_many(questions[:, :3], 3)


@pytest.mark.promise("rag-083")
def test_nothing_below_the_least_score_is_found(store: VectorStore) -> None:
    store.add([chunk("near", "d"), chunk("far", "d")], rows([1, 0.1], [0.1, 1]))
    hits = store.search(vector(1, 0), 9, min_score=0.5)
    assert [hit.chunk.id for hit in hits] == ["near"]


@pytest.mark.promise("rag-084")
def test_only_what_a_filter_accepts_is_found(store: VectorStore) -> None:
    store.add([chunk("a", "d"), chunk("b", "e")], rows([1, 0], [0, 1]))
    assert [
        hit.chunk.id for hit in store.search(vector(1, 0), 1, where=lambda piece: piece.doc_id == "e")
    ] == ["b"]


@pytest.mark.promise("rag-086")
def test_scores_stay_cosines_after_changes(store: VectorStore) -> None:
    store.add([chunk("a", "d"), chunk("b", "d"), chunk("c", "d")], rows([9, 0], [0, 5], [3, 4]))
    store.add([chunk("a", "d")], rows([0, 0.5]))
    store.remove("b")
    scores = {hit.chunk.id: round(hit.score, 3) for hit in store.search(vector(2, 0), 9)}
    assert scores == {"c": 0.6, "a": 0.0}


@pytest.mark.promise("rag-097")
def test_a_store_gives_the_raw_neighbours_and_does_not_look_for_variety(store: VectorStore) -> None:
    store.add(
        [chunk("a", "d", "same"), chunk("b", "d", "same"), chunk("c", "d")], rows([1, 0], [1, 0], [0, 1])
    )
    assert found(store, 1, 0, k=2) == ["a", "b"]


@pytest.mark.promise("rag-092")
def test_a_chunk_without_metadata_comes_back_without(store: VectorStore) -> None:
    store.add([chunk("a", "d")], rows([1, 0]))
    assert store.search(vector(1, 0), 1)[0].chunk.metadata == {}


@pytest.mark.promise("rag-088")
def test_many_threads_may_use_one_store(store: VectorStore) -> None:
    def work(name: str) -> None:
        for number in range(15):
            store.replace_document(name, [chunk(f"{name}{number}", name)], rows([1, number]))
            store.search(vector(1, 0), 3)

    workers = [Thread(target=work, args=(name,)) for name in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert sorted(found(store, 1, 14)) == ["a14", "b14", "c14"]


@pytest.mark.promise("rag-087")
def test_the_records_found_are_whole_and_cannot_be_changed(store: VectorStore) -> None:
    whole = Chunk(id="a", doc_id="d", text="text", end=4, metadata={"n": 1})
    store.add([whole, chunk("b", "d")], rows([1, 0], [0, 1]))
    (hit,) = store.search(vector(1, 0), 1)
    assert hit.chunk == whole
    with pytest.raises(AttributeError):
        hit.chunk.text = "other"


@pytest.mark.promise("rag-087")
def test_what_is_not_found_is_not_copied(store: VectorStore) -> None:
    long = "x" * 20_000
    pieces = [
        Chunk(id=str(number), doc_id="d", text=f"{number} {long}", end=len(long)) for number in range(800)
    ]
    store.add(pieces, np.ones((800, 2), np.float32))
    del pieces
    store.search(vector(1, 0), 3)
    tracemalloc.start()
    try:
        hits = store.search(vector(1, 0), 3)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(hits) == 3
    assert most < 800 * len(long) / 20  # the texts of all would be 16 MB


@pytest.mark.promise("rag-074")
def test_chunks_without_a_manifest_are_refused(store: VectorStore) -> None:
    store.add([chunk("a", "d")], rows([1, 0]))
    with pytest.raises(ManifestMissingError):
        store.claim(MADE)


def part(doc_id: str, chunk_id: str, *numbers: float) -> DocumentChunks:
    return DocumentChunks(doc_id, [chunk(chunk_id, doc_id)], rows(numbers))


@pytest.mark.promise("rag-066", "rag-075", "rag-076")
def test_the_manifest_says_what_made_the_index() -> None:
    class Mine(HashEmbedder):
        id = "mine"

    class Rows(SlidingWindowChunker):
        def signature(self) -> str:
            return "rows-v1"

    assert manifest_of(Mine(64), Rows()) == IndexManifest(
        embedder="mine", model="hash-v1/64/sqrt", dim=64, chunker="rows-v1"
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("embedder", "other", id="embedder"),
        pytest.param("model", "other", id="model"),
        pytest.param("dim", 3, id="dim"),
        pytest.param("chunker", "other", id="chunker"),
    ],
)
@pytest.mark.promise("rag-069", "rag-070", "rag-071", "rag-072", "rag-073")
def test_an_index_of_another_making_is_refused_and_says_how_to_rebuild(
    store: VectorStore, field: str, value: object
) -> None:
    store.claim(MADE)
    fields = {name: getattr(MADE, name) for name in ("embedder", "model", "dim", "chunker")}
    with pytest.raises(ManifestMismatchError, match=rf"{field} .*dialoom ingest DIR --rebuild"):
        store.claim(IndexManifest(**{**fields, field: value}))


@pytest.mark.promise("rag-069")
def test_questions_of_another_embedder_are_refused() -> None:
    with pytest.raises(ManifestMismatchError):
        check_embedder(MADE, HashEmbedder())


@pytest.mark.promise("rag-015", "rag-068", "rag-091")
async def test_an_index_survives_on_a_path_of_any_script(tmp_path: Path) -> None:
    store, path = InMemoryVectorStore(), tmp_path / "知识 ünd" / "索引.json"
    path.parent.mkdir()
    await replace_documents(
        store, HashEmbedder(), SlidingWindowChunker(), [Document(id="d", text="退款三天")]
    )
    store.save(path)
    again = InMemoryVectorStore()
    assert again.load(path)
    assert (again.manifest, again.documents()) == (store.manifest, ["d"])
    assert again.search_words("退款", 3) == store.search_words("退款", 3) != []


@pytest.mark.promise("rag-089", "rag-090")
def test_a_save_or_load_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    store = InMemoryVectorStore()
    store.add([chunk("a", "d")], rows([1, 0]))
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError):
        store.save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(CorruptIndexError):
        store.load(tmp_path / "broken.json")
    assert found(store, 1, 0) == ["a"]


@pytest.mark.promise("rag-078")
def test_a_chunk_is_found_by_its_id_and_not_by_looking_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    store = InMemoryVectorStore()
    store.add([chunk(str(number), "d") for number in range(3_000)], np.ones((3_000, 2), np.float32))
    compared: list[object] = []
    monkeypatch.setattr(Chunk, "__eq__", lambda self, other: compared.append(other) or self is other)
    store.add([chunk("1500", "e")], rows([0, 1]))
    assert (len(store), compared) == (3_000, [])


@pytest.mark.promise("rag-096")
def test_where_an_index_is_kept_can_be_overridden() -> None:
    class Shelved(InMemoryVectorStore):
        shelf: ClassVar[dict[str, list[ScoredChunk]]] = {}

        def save(self, path) -> None:
            self.shelf[str(path)] = self.search(vector(1, 0), 99)

        def load(self, path) -> bool:
            hits = self.shelf.get(str(path), [])
            self.add([hit.chunk for hit in hits], rows(*([1, 0],) * len(hits)))
            return bool(hits)

    store = Shelved()
    store.add([chunk("a", "d")], rows([1, 0]))
    store.save("s3://index")
    assert (Shelved().load("elsewhere"), Shelved().load("s3://index")) == (False, True)


class Small(VectorStore):
    """The least a store of one's own can be: `add`, `search`, size and `clear`."""

    def __init__(self) -> None:
        self.held: list[tuple[Chunk, FloatVector]] = []

    @property
    def manifest(self) -> IndexManifest | None:
        return getattr(self, "claimed", None)

    def claim(self, manifest: IndexManifest) -> None:
        self.claimed = manifest

    def add(self, chunks: Sequence[Chunk], vectors: FloatMatrix) -> None:
        self.held += zip(chunks, vectors, strict=True)

    def search(
        self,
        query: FloatVector,
        k: int,
        *,
        min_score: float | None = None,
        where: ChunkFilter | None = None,
    ) -> list[ScoredChunk]:
        hits = [
            ScoredChunk(piece, float(row @ query)) for piece, row in self.held if not where or where(piece)
        ]
        return sorted(hits, key=lambda hit: -hit.score)[:k]

    def clear(self) -> None:
        self.held = []

    def __len__(self) -> int:
        return len(self.held)


@pytest.mark.promise("rag-094", "rag-095")
async def test_a_small_store_of_ones_own_works_in_ingestion_and_in_the_query_graph() -> None:
    store = Small()
    documents = [
        Document(id="lamp", text="A lamp costs nine euros."),
        Document(id="road", text="The road is long."),
    ]
    report = await ingest_documents(store, HashEmbedder(), SlidingWindowChunker(), documents)
    assert (report.documents, len(store)) == (2, 2)
    asked = build_rag_query_graph(store, HashEmbedder(), MockProvider().queue_text("Nine [1]."))
    state = (await asked.build().run({"query": "What does a lamp cost?"})).raise_for_error().state
    assert [source.doc_id for source in state["answer_sources"]] == ["lamp"]


@pytest.mark.promise("docs-019", "docs-032")
def test_an_approximate_store_of_ones_own_answers_offline() -> None:
    script = Path(__file__).parents[2] / "examples" / "own_vector_store.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=True)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("36 documents, ")
    assert "free of charge" in done.stdout
    assert lines[-1].startswith("[")
