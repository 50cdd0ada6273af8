"""The in-memory store: the contract, and its life as one JSON file."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from dialoom.base.errors import StoreError, UsageError
from dialoom.rag.errors import CorruptIndexError, ManifestMissingError
from dialoom.rag.manifest import IndexManifest
from dialoom.rag.memory_store import InMemoryVectorStore
from dialoom.rag.store import DocumentChunks, SourceChange, SourceRecord
from dialoom.testing.vector_contract import (
    SearchableStoreContract,
    VectorStoreContract,
    chunk,
    found,
    rows,
    vector,
)

MANIFEST = IndexManifest(embedder="hash", model="m", dim=2, chunker="c")
RECORD = SourceRecord(source="/kb/a.md", root="/kb", size=3, modified_ns=5)


class TestInMemoryVectorStore(VectorStoreContract, SearchableStoreContract):
    def make_store(self, folder: Path) -> InMemoryVectorStore:
        return InMemoryVectorStore()


def filled() -> InMemoryVectorStore:
    store = InMemoryVectorStore()
    store.claim(MANIFEST)
    store.add([chunk("b", "/kb/b.md", "β")], rows([0, 1]))
    store.change_sources(
        [SourceChange(RECORD, [DocumentChunks("/kb/a.md", [chunk("a", "/kb/a.md", "α")], rows([3, 4]))])]
    )
    return store


@pytest.mark.promise("docs-037")
def test_a_saved_index_is_loaded_as_it_was(tmp_path: Path) -> None:
    filled().save(tmp_path / "index.json")
    store = InMemoryVectorStore()
    assert store.load(tmp_path / "index.json")
    assert store.search(vector(3, 4), 9) == filled().search(vector(3, 4), 9)
    assert (store.manifest, store.documents()) == (MANIFEST, ["/kb/a.md", "/kb/b.md"])
    assert store.sources("/kb") == {"/kb/a.md": RECORD}
    store.change_sources([], forget=["/kb/a.md"])
    assert (store.documents(), store.sources("/kb")) == (["/kb/b.md"], {})
    assert [path.name for path in tmp_path.iterdir()] == ["index.json"]


@pytest.mark.promise("rag-093")
def test_rows_of_an_older_version_with_fewer_fields_and_plain_vectors_are_loaded(tmp_path: Path) -> None:
    old = {
        "manifest": {"embedder": "hash", "model": "m", "dim": 2, "chunker": "c"},
        "chunks": [
            {"id": "a", "doc_id": "/kb/a.md", "text": "α"},
            {"id": "b", "doc_id": "/kb/b.md", "text": "β", "metadata": {}, "later": "unknown"},
        ],
        "vectors": [[3, 4], [0.0, 1.0]],
    }
    (tmp_path / "index.json").write_text(json.dumps(old))
    store = InMemoryVectorStore()
    assert store.load(tmp_path / "index.json")
    assert [(hit.chunk.id, round(hit.score, 6)) for hit in store.search(vector(3, 4), 9)] == [
        ("a", 1.0),
        ("b", 0.8),
    ]
    assert (store.manifest, store.sources("/kb")) == (MANIFEST, {})
    for broken in ([[3, 4]], [[3, 4], [0]], [3, 4]):
        (tmp_path / "index.json").write_text(json.dumps(old | {"vectors": broken}))
        with pytest.raises(CorruptIndexError, match="is not a whole index"):
            store.load(tmp_path / "index.json")
    assert len(store) == 2
    (tmp_path / "index.json").write_text(json.dumps(old | {"chunks": [], "vectors": []}))
    assert store.load(tmp_path / "index.json")
    assert len(store) == 0


def test_an_empty_index_can_be_saved_too(tmp_path: Path) -> None:
    InMemoryVectorStore().save(tmp_path / "index.json")
    store = filled()
    assert store.load(tmp_path / "index.json")
    assert (len(store), store.manifest) == (0, None)


def test_loading_where_nothing_is_changes_nothing(tmp_path: Path) -> None:
    store = filled()
    assert not store.load(tmp_path / "none.json")
    assert found(store, 3, 4) == ["a", "b"]


MADE = b'{"manifest": {"embedder": "e", "model": "m", "dim": 2, "chunker": "c"}, "dim": 2, "vectors": "", '
NEWER = b'{"manifest": {"embedder": "e", "model": "m", "dim": 2, "chunker": "c", "format": 9}, "dim": 2, '
ONE_CHUNK = b'"chunks": [{"id": "a", "doc_id": "d", "text": ""}]'


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b'{"manifest": {"dim": 2}, "chunks": [{"id": "c9", "emb', CorruptIndexError),
        (b"", CorruptIndexError),
        (b"[" * 100_000, CorruptIndexError),
        (b"\xff\xfe", CorruptIndexError),
        (b'{"dim": 2, "chunks": [], "vectors": "AAA"}', CorruptIndexError),
        (b'{"dim": 2, "vectors": "", ' + ONE_CHUNK + b"}", ManifestMissingError),
        (MADE + ONE_CHUNK + b"}", CorruptIndexError),
        (NEWER + b'"chunks": [], "vectors": ""}', CorruptIndexError),
    ],
)
def test_a_damaged_index_is_refused_and_the_store_stays_as_it_was(
    tmp_path: Path, content: bytes, error: type[StoreError]
) -> None:
    (tmp_path / "index.json").write_bytes(content)
    store = filled()
    with pytest.raises(error):
        store.load(tmp_path / "index.json")
    assert (found(store, 3, 4), store.manifest) == (["a", "b"], MANIFEST)


def test_a_vector_that_is_not_finite_is_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "index.json"
    filled().save(path)
    layout = json.loads(path.read_bytes())
    layout["vectors"] = "AADAfwAAgD8AAIA/AACAPw=="  # NaN first
    path.write_text(json.dumps(layout))
    store = filled()
    with pytest.raises(CorruptIndexError):
        store.load(path)
    assert found(store, 3, 4) == ["a", "b"]


def test_a_failed_save_leaves_the_old_index_and_no_rubbish(tmp_path: Path) -> None:
    target = tmp_path / "index.json"
    target.mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        filled().save(target)
    assert [path.name for path in tmp_path.iterdir()] == ["index.json"]
    with pytest.raises(StoreError, match="cannot be written"):
        filled().save(tmp_path / "no folder" / "index.json")


def test_a_path_that_is_no_file_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        filled().load(tmp_path)


def test_many_changes_keep_the_order_and_the_rest() -> None:
    store = InMemoryVectorStore()
    for turn in range(40):
        pieces = [chunk(f"{name}{turn}", name) for name in "ab" for _ in range(1)]
        for piece in pieces:
            store.replace_document(piece.doc_id, [piece], rows([1, turn]))
    store.add([chunk(f"x{number:05}", "x") for number in range(3000)], np.ones((3000, 2), np.float32))
    store.replace_document("x", [chunk("x", "x")], rows([0, 1]))
    assert found(store, 1, 39) == ["a39", "b39", "x"]


def test_half_a_character_is_refused_where_no_file_can_hold_it(tmp_path: Path) -> None:
    store = InMemoryVectorStore()
    store.claim(IndexManifest(embedder="e", model="m", dim=2, chunker="c"))
    store.add([chunk("a", "d", "x\ud800")], rows([1, 0]))
    with pytest.raises(UsageError, match="a chunk holds half a surrogate pair; replace it before storing"):
        store.save(tmp_path / "kb.json")
    assert list(tmp_path.iterdir()) == []


def test_an_index_that_the_disk_did_not_take_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index.json"
    filled().save(path)
    old = path.read_bytes()

    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match="cannot be written"):
        InMemoryVectorStore().save(path)
    assert (path.read_bytes(), [each.name for each in tmp_path.iterdir()]) == (old, ["index.json"])
