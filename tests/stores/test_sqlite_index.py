"""The SQLite store: the contract, what is on the disk, and other processes at the same file."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dialoom.stores
from dialoom.base.errors import ConflictError, StoreError, UsageError
from dialoom.rag.errors import CorruptIndexError, ReadOnlyError
from dialoom.rag.manifest import IndexManifest
from dialoom.rag.store import DocumentChunks, SourceChange, SourceRecord, removal
from dialoom.stores.sqlite_index import SqliteVectorStore
from dialoom.testing.vector_contract import (
    SearchableStore,
    SearchableStoreContract,
    VectorStoreContract,
    chunk,
    found,
    rows,
    vector,
    worded,
)

MANIFEST = IndexManifest(embedder="hash", model="m", dim=2, chunker="c")


@pytest.fixture
def opened(request: pytest.FixtureRequest, tmp_path: Path):
    def open_store(name: str = "index.sqlite", *, read_only: bool = False) -> SqliteVectorStore:
        store = SqliteVectorStore(tmp_path / name, read_only=read_only)
        request.addfinalizer(store.close)
        return store

    return open_store


class TestSqliteVectorStore(VectorStoreContract, SearchableStoreContract):
    @pytest.fixture
    def store(self, opened) -> SearchableStore:
        return opened()


def record(name: str, root: str = "/kb", **fields: str) -> SourceRecord:
    return SourceRecord(source=f"{root}/{name}", root=root, size=1, modified_ns=2, **fields)


def one(doc_id: str, *numbers: float, text: str = "") -> DocumentChunks:
    return DocumentChunks(doc_id, [chunk(f"{doc_id}#0", doc_id, text)], rows(numbers))


def test_what_was_stored_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    with SqliteVectorStore(tmp_path / "new folder" / "index.sqlite") as store:
        store.claim(MANIFEST)
        store.replace_documents([one("a", 1, 0, text="α"), one("b", 1, 1, text="β")])
        before = store.search(vector(1, 0), 9)
    with SqliteVectorStore(tmp_path / "new folder" / "index.sqlite") as store:
        assert store.search(vector(1, 0), 9) == before
        assert (store.manifest, store.documents(), len(store)) == (MANIFEST, ["a", "b"], 2)


def test_what_another_handle_commits_is_found_by_the_next_search(opened) -> None:
    writer, reader = opened(), opened(read_only=True)
    writer.replace_documents([one("a", 1, 0), one("b", 0, 1)])
    assert found(reader, 1, 0) == ["a#0", "b#0"]
    writer.replace_documents([one("a", 0, 2), one("c", 1, 0)])
    assert found(reader, 1, 0) == found(writer, 1, 0) == ["c#0", "b#0", "a#0"]
    writer.remove("b#0")
    assert found(reader, 1, 0) == ["c#0", "a#0"]
    writer.clear()
    assert (found(reader, 1, 0), len(reader)) == ([], 0)


def test_another_process_may_write_to_the_same_file(opened, tmp_path: Path) -> None:
    store = opened()
    store.replace_documents([one("a", 1, 0)])
    script = (
        "import sys, numpy as np\n"
        "from dialoom.rag.types import Chunk\n"
        "from dialoom.stores.sqlite_index import SqliteVectorStore\n"
        "with SqliteVectorStore(sys.argv[1]) as store:\n"
        "    store.add([Chunk(id='p', doc_id='p', text='')], np.array([[0, 1]], np.float32))\n"
    )
    path = str(tmp_path / "index.sqlite")
    subprocess.run([sys.executable, "-c", script, path], check=True, timeout=60)
    assert found(store, 0, 1) == ["p", "a#0"]


def test_many_processes_may_make_the_same_index_at_once(opened, tmp_path: Path) -> None:
    script = (
        "import sys, numpy as np\n"
        "from dialoom.rag.types import Chunk\n"
        "from dialoom.stores.sqlite_index import SqliteVectorStore\n"
        "with SqliteVectorStore(sys.argv[1]) as store:\n"
        "    store.add([Chunk(id=sys.argv[2], doc_id='d', text='')], np.array([[0, 1]], np.float32))\n"
    )
    path = str(tmp_path / "index.sqlite")
    makers = [subprocess.Popen([sys.executable, "-c", script, path, str(number)]) for number in range(4)]
    assert [maker.wait(timeout=60) for maker in makers] == [0, 0, 0, 0]
    assert len(opened()) == 4


def test_chunks_taken_out_of_the_middle_leave_their_neighbours_right(opened) -> None:
    store = opened()
    pieces = [chunk(f"d#{number}", "d", str(number)) for number in range(4)]
    store.add(pieces, rows([1, 0], [0, 1], [1, 1], [-1, 0]))
    store.add([chunk("d#9", "d", "9")], rows([0, -1]))
    assert store.remove("d#1")
    assert [(hit.chunk.text, round(hit.score, 3)) for hit in store.search(vector(1, 0), 9)] == [
        ("0", 1.0),
        ("2", 0.707),
        ("9", 0.0),
        ("3", -1.0),
    ]
    assert found(opened(read_only=True), 1, 0) == found(store, 1, 0)


def test_files_are_remembered_with_their_documents(opened) -> None:
    store = opened()
    first = record("a.jsonl", content_hash="x", recipe="r")
    store.change_sources(
        [
            SourceChange(first, [one("/kb/a.jsonl#1", 1, 0), one("/kb/a.jsonl#2", 1, 1)]),
            SourceChange(record("b.md"), [one("/kb/b.md", 0, 1)]),
            SourceChange(record("c.md", "/other"), [one("/other/c.md", -1, 0)]),
        ]
    )
    assert store.sources("/kb") == {"/kb/a.jsonl": first, "/kb/b.md": record("b.md")}
    later = record("a.jsonl", error="corrupt")
    store.change_sources([SourceChange(later, None)])
    assert found(store, 1, 0, k=1) == ["/kb/a.jsonl#1#0"]
    store.change_sources([SourceChange(later, [one("/kb/a.jsonl#2", 1, 0)])], forget=["/kb/b.md"])
    assert (store.documents(), store.sources("/kb")) == (
        ["/kb/a.jsonl#2", "/other/c.md"],
        {"/kb/a.jsonl": later},
    )


def test_a_document_may_be_taken_out_of_a_batch_and_named_twice(opened) -> None:
    store = opened()
    store.replace_documents([one("a", 1, 0), one("b", 0, 1)])
    store.replace_documents([removal("a"), one("b", 1, 0, text="x"), one("b", 1, 0, text="y")])
    assert [hit.chunk.text for hit in store.search(vector(1, 0), 9)] == ["y"]
    store.add([], rows())
    assert store.documents() == ["b"]


def test_a_reader_refuses_every_change(opened) -> None:
    opened().replace_documents([one("a", 1, 0)])
    reader = opened(read_only=True)
    for change in (
        lambda: reader.add([chunk("x", "x")], rows([1, 0])),
        lambda: reader.remove("a#0"),
        lambda: reader.replace_documents([one("a", 0, 1)]),
        lambda: reader.change_sources([]),
        lambda: reader.claim(MANIFEST),
        reader.clear,
    ):
        with pytest.raises(ReadOnlyError, match="open for reading only"):
            change()
    assert found(reader, 1, 0) == ["a#0"]


def test_a_reader_of_nothing_is_told_how_to_make_an_index(opened) -> None:
    with pytest.raises(StoreError, match=r"there is no index at .*dialoom ingest"):
        opened(read_only=True)


def test_an_empty_file_is_where_an_index_will_be(opened, tmp_path: Path) -> None:
    (tmp_path / "index.sqlite").touch()
    with pytest.raises(StoreError, match=r"there is no index at .*dialoom ingest"):
        opened(read_only=True)
    store = opened()
    store.replace_documents([one("a", 1, 0)])
    assert found(opened(read_only=True), 1, 0) == ["a#0"]


def test_a_folder_in_the_place_of_an_index_is_named(opened, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    for read_only in (False, True):
        with pytest.raises(
            StoreError, match=r"kb is a folder; name a file in it, like .*kb/knowledge\.sqlite"
        ):
            opened("kb", read_only=read_only)


def test_a_large_index_is_searched_in_lists(tmp_path: Path) -> None:
    vectors = np.random.default_rng(1).normal(size=(900, 8)).astype(np.float32)
    chunks = [chunk(f"d#{number}", "d") for number in range(900)]
    with SqliteVectorStore(tmp_path / "index.sqlite", exact_up_to=500) as store:
        store.replace_documents([DocumentChunks("d", chunks, vectors)])
        store.make_lists()
        assert [store.search(row, 1)[0].chunk.id for row in vectors[:20]] == [f"d#{at}" for at in range(20)]
        hits = store.search(vectors[5], 3, where=lambda piece: piece.id.endswith("7"))
        assert [hit.chunk.id[-1] for hit in hits] == ["7", "7", "7"]
        assert store.search_many(vectors[:2], 1)[1][0].chunk.id == "d#1"


def test_a_copy_is_an_index_of_its_own_at_one_moment(opened, tmp_path: Path) -> None:
    store = opened()
    store.claim(MANIFEST)
    store.replace_documents([one("a", 1, 0, text="lamp oil"), one("b", 0, 1)])
    store.snapshot(tmp_path / "copy.sqlite")
    store.replace_documents([one("c", 1, 1)])
    copy = opened("copy.sqlite")
    assert (copy.documents(), copy.manifest) == (["a", "b"], MANIFEST)
    assert [hit.chunk.id for hit in copy.search_words("oil", 3)] == ["a#0"]
    copy.replace_documents([one("d", 1, 1)])
    assert store.documents() == ["a", "b", "c"]


def test_a_copy_replaces_nothing_and_leaves_nothing_half(opened, tmp_path: Path) -> None:
    store = opened()
    store.replace_documents([one("a", 1, 0)])
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"mine\.txt is there already; choose another name"):
        store.snapshot(tmp_path / "mine.txt")
    with pytest.raises(StoreError, match=r"there is no folder .*no folder for the copy; make it first"):
        store.snapshot(tmp_path / "no folder" / "copy.sqlite")
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert (
        sorted(path.name for path in tmp_path.iterdir() if "copy" in path.name or path.name[0] == ".") == []
    )


def test_a_reader_may_make_a_copy(opened, tmp_path: Path) -> None:
    opened().replace_documents([one("a", 1, 0)])
    opened(read_only=True).snapshot(tmp_path / "copy.sqlite")
    assert found(opened("copy.sqlite", read_only=True), 1, 0) == ["a#0"]


@pytest.mark.promise("service-027")
def test_a_reader_where_nothing_can_be_made_takes_the_file_as_it_is(opened, tmp_path: Path) -> None:
    store = opened()
    store.replace_documents([one("a", 1, 0)])
    store.close()
    # what a folder one may not write to comes to, for root too
    (tmp_path / "index.sqlite-shm").symlink_to(tmp_path / "nowhere" / "shm")
    before = (tmp_path / "index.sqlite").read_bytes()
    assert found(opened(read_only=True), 1, 0) == ["a#0"]
    assert (tmp_path / "index.sqlite").read_bytes() == before
    (tmp_path / "index.sqlite-wal").write_bytes(b"commits that are not in the file yet")
    with pytest.raises(StoreError, match="cannot be"):
        opened(read_only=True)


def test_a_file_that_is_no_index_is_refused_and_left_alone(opened, tmp_path: Path) -> None:
    path = tmp_path / "notes.sqlite"
    path.write_text("my notes, not a database at all, but long enough to be taken for one" * 20)
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(CorruptIndexError, match="is not a whole index"):
            opened("notes.sqlite", read_only=read_only)
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused_and_left_alone(opened, tmp_path: Path) -> None:
    path = tmp_path / "theirs.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(CorruptIndexError, match="of another program"):
        opened("theirs.sqlite")
    assert path.read_bytes() == before


def test_an_index_of_a_newer_dialoom_is_refused(opened, tmp_path: Path) -> None:
    opened().close()
    change(tmp_path, "PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer dialoom"):
        opened()


def test_an_index_of_an_older_dialoom_is_brought_up_to_date_by_a_writer(opened, tmp_path: Path) -> None:
    with SqliteVectorStore(tmp_path / "index.sqlite") as store:
        store.replace_documents([one("a", 3, 4, text="a lamp")])
    change(tmp_path, "DROP TABLE words")
    change(tmp_path, "DELETE FROM manifest WHERE key = 'words'")
    change(tmp_path, "PRAGMA user_version = 1")
    single = np.array([[0.6, 0.8]], "<f4").tobytes()
    change(tmp_path, f"UPDATE vectors SET data = x'{single.hex()}'")
    with pytest.raises(StoreError, match=r"by an older dialoom; bring it up to date: dialoom ingest DIR"):
        opened(read_only=True)
    store = opened()
    assert [(hit.chunk.text, round(hit.score, 6)) for hit in store.search(vector(3, 4), 1)] == [
        ("a lamp", 1.0)
    ]
    assert worded(opened(read_only=True), "lamp") == ["a#0"]
    store.remove_document("a")
    assert worded(store, "lamp") == []


def test_words_cut_in_another_way_are_cut_anew_by_a_writer(opened, tmp_path: Path) -> None:
    old = opened()
    old.replace_documents([one("a", 1, 0, text="lamps")])
    change(tmp_path, "UPDATE manifest SET value = 'words-v0' WHERE key = 'words'")
    with pytest.raises(StoreError, match="upgraded by another dialoom"):
        old.remove_document("a")
    with pytest.raises(StoreError, match="older dialoom"):
        opened(read_only=True)
    assert worded(opened(), "lamp") == worded(old, "lamp") == ["a#0"]


def test_an_upgrade_that_fails_leaves_the_index_as_it_was(opened, tmp_path: Path) -> None:
    opened().replace_documents([one("a", 1, 0, text="lamps")])
    change(tmp_path, "UPDATE manifest SET value = 'words-v0' WHERE key = 'words'")
    change(tmp_path, "UPDATE chunks SET metadata = '['")
    with pytest.raises(CorruptIndexError, match="a chunk of the index is damaged"):
        opened()
    change(tmp_path, "UPDATE chunks SET metadata = '{}'")
    assert worded(opened(), "lamp") == ["a#0"]


def test_a_file_of_no_known_layout_is_refused(opened, tmp_path: Path) -> None:
    opened().close()
    change(tmp_path, "PRAGMA user_version = 0")
    with pytest.raises(CorruptIndexError, match="no layout we know"):
        opened()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE vectors SET data = x'00'", "a vector of the index is damaged"),
        ("UPDATE vectors SET dim = 0", "a vector of the index is damaged"),
        ("UPDATE chunks SET metadata = '['", "a chunk of the index is damaged"),
        ("UPDATE chunks SET page = 'x'", "a chunk of the index is damaged"),
        ("DELETE FROM chunks", "vectors without chunks"),
    ],
)
def test_damage_inside_is_named(opened, tmp_path: Path, statement: str, message: str) -> None:
    opened().replace_documents([one("a", 1, 0)])
    change(tmp_path, statement)
    with pytest.raises(CorruptIndexError, match=message):
        opened(read_only=True).search(vector(1, 0), 1)


def test_an_index_that_was_mended_is_read_whole(opened, tmp_path: Path) -> None:
    opened().replace_documents([one("a", 1, 0), one("b", 0, 1)])
    change(tmp_path, "UPDATE vectors SET dim = 7 WHERE doc_id = 'b'")
    reader = opened(read_only=True)
    with pytest.raises(CorruptIndexError):
        reader.search(vector(1, 0), 9)
    change(tmp_path, "UPDATE vectors SET dim = 2")
    assert found(reader, 1, 0) == ["a#0", "b#0"]


def test_documents_of_any_size_are_read_in_the_order_they_were_stored(
    opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialoom.stores.sqlite_index._ROWS_AT_ONCE", 3)
    pieces = [chunk(f"a#{number}", "a") for number in range(8)]
    opened().replace_documents(
        [DocumentChunks("a", pieces, rows(*([1, 0],) * 8)), one("b", 1, 0), one("c", 1, 0)]
    )
    assert found(opened(read_only=True), 1, 0) == [*(piece.id for piece in pieces), "b#0", "c#0"]


def test_a_damaged_manifest_is_named(opened, tmp_path: Path) -> None:
    opened().claim(MANIFEST)
    change(tmp_path, "UPDATE manifest SET value = '{}' WHERE key = 'index'")
    store = opened()
    with pytest.raises(CorruptIndexError, match="manifest of the index"):
        _ = store.manifest


def test_a_place_that_cannot_hold_a_file_is_named(opened, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used"):
        opened("file/index.sqlite")


def test_a_closed_store_says_so(opened) -> None:
    store = opened()
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.documents()


def test_a_writer_that_waits_too_long_for_another_is_told(opened, tmp_path: Path) -> None:
    store = opened()
    store._connection.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(ConflictError, match="another process"):
        store.replace_documents([one("a", 1, 0)])
    other.execute("ROLLBACK")
    other.close()
    store.replace_documents([one("a", 1, 0)])
    assert found(store, 1, 0) == ["a#0"]


def test_a_new_index_beside_a_stubborn_reader_is_told_in_time(
    opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialoom.stores.sqlite_opener.BUSY_SECONDS", 0.05)
    opened().close()
    change(tmp_path, "PRAGMA journal_mode = DELETE")
    reader = sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM chunks").fetchone()
    with pytest.raises(ConflictError, match="another process"):
        opened()
    reader.close()
    assert len(opened()) == 0


def test_text_that_is_not_unicode_is_refused_whole(opened) -> None:
    store = opened()
    with pytest.raises(UsageError, match="surrogate"):
        store.replace_documents([one("a", 1, 0), one("b", 1, 0, text="half \ud83d")])
    assert store.documents() == []


def test_the_package_names_its_stores() -> None:
    assert dialoom.stores.SqliteVectorStore is SqliteVectorStore
    with pytest.raises(AttributeError, match="no name 'Other'"):
        _ = dialoom.stores.Other


def change(folder: Path, statement: str) -> None:
    connection = sqlite3.connect(folder / "index.sqlite")
    with connection:
        connection.execute(statement)
    connection.close()
