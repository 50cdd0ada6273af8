"""Checkpoints in a SQLite file: the contract of all stores, and what only a file can get wrong."""

import secrets
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.base.errors import ConflictError, StoreError, UsageError
from dialoom.graph import START, Checkpoint, CheckpointStore, Op, RunOptions
from dialoom.graph.codec import UnreadableError
from dialoom.stores import sqlite_checkpoints, sqlite_opener
from dialoom.stores.array_types import ARRAY_TYPES
from dialoom.stores.sqlite_checkpoints import SqliteCheckpointStore
from dialoom.testing.checkpoint_contract import NOW, PrunableStoreContract, checkpoint_after, say
from dialoom.testing.clock import ManualClock
from tests.graph.graphs import line, speakers


class TestSqliteCheckpointStore(PrunableStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqliteCheckpointStore]:
        self.path = tmp_path / "threads.db"
        self.opened = [SqliteCheckpointStore(self.path, clock=ManualClock(NOW))]
        yield self.opened[0]
        for store in self.opened:
            store.close()

    def reopen(self, store: CheckpointStore) -> CheckpointStore:
        self.opened.append(SqliteCheckpointStore(self.path, clock=ManualClock(NOW)))
        return self.opened[-1]


def long_thread(store: CheckpointStore, count: int, words: int = 200) -> list[Checkpoint]:
    saved = [checkpoint_after(None, "c1", say("1" * words))]
    for at in range(2, count + 1):
        saved.append(checkpoint_after(saved[-1], f"c{at}", say(f"{at}" * words)))
    for checkpoint in saved:
        store.save(checkpoint)
    return saved


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "线程 été" / "threads.db"


def test_a_long_thread_is_read_from_its_newest_snapshot(path: Path) -> None:
    with SqliteCheckpointStore(path) as store:
        saved = long_thread(store, 300, words=300)
        assert store.load("alice") == saved[-1]
        assert store.load("alice", "c150") == saved[149]
        assert list(store.history("alice")) == saved[::-1]
        store.compact()
    with closing(sqlite3.connect(path)) as file:
        bases = [base for (base,) in file.execute("SELECT DISTINCT base FROM checkpoint ORDER BY base")]
    assert 2 <= len(bases) <= 6  # each is written after as much as it holds has changed


def test_a_large_state_is_compressed(path: Path) -> None:
    big = checkpoint_after(None, "a", Op("text", "set", "word " * 100_000))
    with SqliteCheckpointStore(path, synchronous="normal") as store:
        store.save(big)
        assert store.load("alice") == big
        store.compact()
    assert path.stat().st_size < 50_000


def damage(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(statement, values)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE checkpoint SET body = x'00112233445566' WHERE id = 'c2'", "checkpoint 2 of thread 'alice'"),
        ("UPDATE checkpoint SET body = x'' WHERE id = 'c1'", "checkpoint 1 of thread 'alice'"),
        ("DELETE FROM checkpoint WHERE id = 'c2'", "checkpoint 3 of thread 'alice'"),
        ("DELETE FROM checkpoint WHERE id = 'c1'", "checkpoint 2 of thread 'alice'"),
        ("UPDATE checkpoint SET body = 'text' WHERE id = 'c2'", "checkpoint 2 of thread 'alice'"),
        ("UPDATE checkpoint SET body = 5 WHERE id = 'c3'", "checkpoint 3 of thread 'alice'"),
        ("UPDATE checkpoint SET id = x'00' WHERE id = 'c3'", "checkpoint 3 of thread 'alice'"),
        ("UPDATE checkpoint SET created = 'noon' WHERE id = 'c3'", "checkpoint 3 of thread 'alice'"),
        ("UPDATE checkpoint SET base = 'one' WHERE id = 'c3'", "checkpoint 3 of thread 'alice'"),
        ("UPDATE checkpoint SET base = x'31' WHERE id = 'c3'", "checkpoint 3 of thread 'alice'"),
        ("UPDATE checkpoint SET base = 1.5 WHERE id = 'c3'", "checkpoint 2 of thread 'alice'"),
        ("UPDATE checkpoint SET base = 9 WHERE id = 'c3'", "checkpoint 3 of thread 'alice'"),
    ],
)
def test_a_damaged_row_is_named_and_other_threads_are_readable(path: Path, statement: str, told: str) -> None:
    bob = checkpoint_after(None, "b", say("bob"), thread_id="bob")
    with SqliteCheckpointStore(path) as store:
        long_thread(store, 3)
        store.save(bob)
        damage(path, statement)
        with pytest.raises(UnreadableError, match=f"{told} in .* cannot be read: .*; restore the file, or"):
            store.load("alice")
        with pytest.raises(UnreadableError):
            list(store.history("alice"))
        result = line("a", store=store).run_sync(None, RunOptions(thread_id="alice"))
        assert (result.stop_reason, result.steps) == ("error", 0)
        assert store.load("bob") == bob
        store.erase_thread("alice")
        assert list(store.threads()) == ["bob"]


def test_what_is_erased_leaves_no_bytes_in_the_file(path: Path) -> None:
    with SqliteCheckpointStore(path) as store:
        store.save(checkpoint_after(None, "a", say("a secret word")))
        store.save(checkpoint_after(None, "b", say("other"), thread_id="bob"))
        store.erase_thread("alice")
        for file in path.parent.iterdir():
            assert b"a secret word" not in file.read_bytes()
        store.erase_thread("nobody")


def test_pruning_and_compacting_make_the_file_small(path: Path) -> None:
    with SqliteCheckpointStore(path) as store:
        saved = long_thread(store, 400)
        store.compact()
        before = path.stat().st_size
        assert store.prune(keep_last=1) == 399
        store.compact()
        assert store.load("alice") == saved[-1]
    assert path.stat().st_size < before


def test_a_file_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is a file of another program; choose another path"):
        SqliteCheckpointStore(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"just text, and more than a header of it" * 10, b"SQLite format 3\x00" + b"x" * 200]
)
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="holds no whole file of checkpoints; restore it, or choose another"):
        SqliteCheckpointStore(path)
    assert path.read_bytes() == content


def test_a_file_of_a_newer_version_is_refused(path: Path) -> None:
    SqliteCheckpointStore(path).close()
    damage(path, "PRAGMA user_version = 9")
    with pytest.raises(StoreError, match=r"was written by a newer dialoom \(layout 9\); upgrade to use it"):
        SqliteCheckpointStore(path)


def test_a_place_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be used"):
        SqliteCheckpointStore(tmp_path / "file" / "threads.db")
    with pytest.raises(StoreError, match="cannot be used"):
        SqliteCheckpointStore(tmp_path)


def test_a_closed_store_says_so(path: Path) -> None:
    store = SqliteCheckpointStore(path)
    store.close()
    store.close()
    for call in (
        lambda: store.load("alice"),
        lambda: store.save(checkpoint_after(None, "a")),
        lambda: store.erase_thread("alice"),
        store.compact,
    ):
        with pytest.raises(StoreError, match="is closed; open it again"):
            call()


def test_half_a_character_in_an_id_is_refused_and_nothing_is_saved(path: Path) -> None:
    with SqliteCheckpointStore(path) as store:
        with pytest.raises(UsageError, match="half a surrogate pair; choose another"):
            store.save(checkpoint_after(None, "a", thread_id="\ud800"))
        assert list(store.threads()) == []


def test_a_file_that_another_holds_too_long_is_a_conflict(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_opener, "BUSY_SECONDS", 0.05)
    with SqliteCheckpointStore(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ConflictError, match=r"was locked by another process for .* seconds; try again"):
            store.save(checkpoint_after(None, "a"))
        errors = store.commit([store.prepare(checkpoint_after(None, "a", thread_id=name)) for name in "xy"])
        assert [type(error) for error in errors] == [ConflictError, ConflictError]
        other.execute("ROLLBACK")
        store.save(checkpoint_after(None, "a"))


def test_of_a_group_one_that_is_refused_fails_nobody_else(path: Path) -> None:
    with SqliteCheckpointStore(path) as store:
        good = [checkpoint_after(None, "a", thread_id=name) for name in ("bob", "carol")]
        gap = checkpoint_after(None, "x", version=5)
        broken = checkpoint_after(None, "a", thread_id="\ud800")
        errors = store.commit([store.prepare(each) for each in (good[0], gap, broken, good[1])])
        assert [type(error) for error in errors] == [type(None), ConflictError, UsageError, type(None)]
        assert list(store.threads()) == ["bob", "carol"]


def test_a_full_disk_names_the_cause_and_keeps_what_was_there(path: Path) -> None:
    with SqliteCheckpointStore(path) as store:
        saved = long_thread(store, 2)
        pages = store._writer.execute("PRAGMA page_count").fetchone()[0]
        store._writer.execute(f"PRAGMA max_page_count = {pages}")
        third = checkpoint_after(saved[-1], "c3", Op("n", "set", secrets.token_hex(100_000)))
        with pytest.raises(StoreError, match=r"the disk of .* is full; free some space, then try again"):
            store.save(third)
        assert store.load("alice") == saved[-1]
        store._writer.execute("PRAGMA max_page_count = 100000")
        store.save(third)
        assert store.load("alice") == third


def test_a_file_that_became_read_only_says_so(path: Path) -> None:
    with SqliteCheckpointStore(path) as store:
        store._writer.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreError, match="cannot be written; check its permissions"):
            store.save(checkpoint_after(None, "a"))


def test_two_that_make_the_same_file_at_once_both_get_it(path: Path) -> None:
    opened: list[SqliteCheckpointStore] = []
    makers = [Thread(target=lambda: opened.append(SqliteCheckpointStore(path))) for _ in range(4)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join(30)
    saved = long_thread(opened[0], 2)
    assert [store.load("alice") for store in opened] == [saved[-1]] * 4
    for store in opened:
        store.close()


def test_a_store_opened_before_a_fork_is_refused_in_the_child(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteCheckpointStore(path) as store:
        monkeypatch.setattr("os.getpid", lambda: -1)
        with pytest.raises(StoreError, match="was opened before a fork; open it again in this process"):
            store.load("alice")
        monkeypatch.undo()


def test_saves_of_several_threads_share_a_commit(path: Path) -> None:
    with SqliteCheckpointStore(path) as store:
        firsts = [checkpoint_after(None, "a", thread_id=f"t{at}") for at in range(20)]
        assert store.commit([store.prepare(each) for each in firsts]) == [None] * 20
        assert [store.load(each.thread_id) for each in firsts] == firsts


def test_what_cannot_be_stored_ends_the_run_with_the_path_to_it(path: Path) -> None:
    builder = speakers("a")
    builder.add_channel("facts")
    builder.add_node("bad", lambda _: {"facts": {"file": [object()]}})
    builder.add_edge(START, "a")
    builder.add_edge("a", "bad")
    with SqliteCheckpointStore(path) as store:
        result = builder.build(store).run_sync(None, RunOptions(thread_id="alice"))
        assert (result.stop_reason, result.state) == ("error", {"said": ["a"]})
        assert "channel 'facts'['file'][0] holds a object, which cannot be stored" in result.errors[0].message
        head = store.load("alice")
        assert head is not None
        assert head.state == {"said": ["a"]}


def test_arrays_and_numbers_of_numpy_come_back_as_they_were(path: Path) -> None:
    array = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    saved = checkpoint_after(None, "a", Op("x", "set", {"array": array, "score": numpy.float64(0.5)}))
    with SqliteCheckpointStore(path) as store:
        store.save(saved)
        loaded = store.load("alice")
        with pytest.raises(StoreError, match="an array of object cannot be stored; store its columns"):
            store.save(checkpoint_after(saved, "b", Op("x", "set", numpy.array([object()]))))
    assert loaded is not None
    back = loaded.state["x"]
    assert (back["array"].dtype, back["array"].tolist()) == (numpy.float32, array.tolist())
    assert type(back["score"]) is numpy.float64
    with pytest.raises(ValueError, match="an array of objects is not data"):
        ARRAY_TYPES[0].decode({"dtype": "|O", "shape": [1], "data": b"x" * 8})


def test_a_file_of_the_first_layout_is_brought_up_and_gone_on_with(path: Path) -> None:
    with SqliteCheckpointStore(path) as store:
        saved = long_thread(store, 300, words=300)
    for statement in (
        "ALTER TABLE checkpoint RENAME TO newer",
        (
            "CREATE TABLE checkpoint (thread INTEGER NOT NULL, version INTEGER NOT NULL, id TEXT NOT NULL,"
            " created REAL NOT NULL, base INTEGER NOT NULL, size INTEGER NOT NULL, since INTEGER NOT NULL,"
            " body BLOB NOT NULL, PRIMARY KEY (thread, version)) WITHOUT ROWID"
        ),
        (
            "INSERT INTO checkpoint SELECT place >> 32, place & 4294967295, id, created, base, size, since,"
            " body FROM newer"
        ),
        "DROP TABLE newer",
        "PRAGMA user_version = 1",
    ):
        damage(path, statement)
    with SqliteCheckpointStore(path) as store, SqliteCheckpointStore(path) as other:
        following = checkpoint_after(saved[-1], "next", say("on"))
        store.save(following)
        assert list(other.history("alice")) == [following, *saved[::-1]]


@pytest.mark.parametrize("change", ["prune", "erase", "erase and begin anew", "follow", "compact"])
def test_a_store_notices_what_another_did_to_its_thread(path: Path, change: str) -> None:
    with SqliteCheckpointStore(path) as store, SqliteCheckpointStore(path) as other:
        saved = long_thread(store, 5)
        following = checkpoint_after(saved[-1], "next", say("on"))
        match change:
            case "prune":
                other.prune(keep_last=1)
                store.save(following)
                assert list(other.history("alice")) == [following, saved[-1]]
            case "erase":
                other.erase_thread("alice")
                with pytest.raises(ConflictError, match="thread 'alice' is at version 0"):
                    store.save(following)
                assert list(other.threads()) == []
            case "erase and begin anew":
                other.erase_thread("alice")
                again = long_thread(other, 5)
                store.save(following)
                assert list(other.history("alice")) == [following, *again[::-1]]
            case "follow":
                first = checkpoint_after(saved[-1], "first", say("first"))
                other.save(first)
                with pytest.raises(ConflictError, match="thread 'alice' is at version 6"):
                    store.save(following)
                assert other.load("alice") == first
            case _:
                other.compact()
                store.save(following)
                assert other.load("alice") == following


def test_a_store_that_writes_many_threads_remembers_the_place_of_some(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_checkpoints, "MAX_SPOTS", 2)
    with SqliteCheckpointStore(path, synchronous="normal") as store:
        firsts = [checkpoint_after(None, "c1", say(name), thread_id=name) for name in "abcde"]
        seconds = [checkpoint_after(first, "c2", say("on"), thread_id=first.thread_id) for first in firsts]
        for checkpoint in (*firsts, *seconds):
            store.save(checkpoint)
        assert [store.load(name) for name in "abcde"] == seconds


def test_a_file_that_cannot_be_brought_up_is_left_as_it_is(path: Path) -> None:
    with SqliteCheckpointStore(path) as store:
        long_thread(store, 2)
    damage(path, "ALTER TABLE checkpoint RENAME TO elsewhere")
    damage(path, "PRAGMA user_version = 1")
    for _ in range(2):
        with pytest.raises(StoreError, match="cannot be used"):
            SqliteCheckpointStore(path)
    damage(path, "ALTER TABLE elsewhere RENAME TO checkpoint")
    damage(path, "PRAGMA user_version = 2")
    with SqliteCheckpointStore(path) as store:
        assert len(list(store.history("alice"))) == 2


@given(data=st.data())
@settings(max_examples=60)
def test_a_group_comes_to_the_same_as_its_saves_one_by_one(data: st.DataObject) -> None:
    """Random saves of two threads: new, repeated, late, early, beginning again, branching, with snapshots."""
    saves: list[Checkpoint] = []
    for at in range(data.draw(st.integers(2, 40), label="saves")):
        thread_id = data.draw(st.sampled_from(["alice", "bob"]))
        known = [each for each in saves if each.thread_id == thread_id]
        way = data.draw(st.sampled_from(["on", "on", "on", "on", "again", "late", "early", "anew", "branch"]))
        if way == "again" and known:
            saves.append(data.draw(st.sampled_from(known)))
            continue
        newest = max(known, key=lambda each: each.version, default=None)
        parent = data.draw(st.sampled_from(known)) if way in {"late", "branch"} and known else newest
        ahead = {"branch": 1, "anew": 1, "early": 2}.get(way)
        version = newest.version + ahead if ahead and newest else None
        parent = None if way == "anew" else parent
        words = say("x" * data.draw(st.sampled_from([1, 1, 30_000])))
        saves.append(checkpoint_after(parent, f"c{at}", words, version=version, thread_id=thread_id))
    cut = data.draw(st.integers(0, len(saves)), label="first group")
    with (
        tempfile.TemporaryDirectory() as folder,
        SqliteCheckpointStore(Path(folder, "grouped"), synchronous="normal") as grouped,
        SqliteCheckpointStore(Path(folder, "single"), synchronous="normal") as single,
    ):
        told = [
            error
            for group in (saves[:cut], saves[cut:])
            for error in grouped.commit([grouped.prepare(each) for each in group])
        ]
        alone = [single.commit([single.prepare(each)])[0] for each in saves]
        assert [repr(each) for each in told] == [repr(each) for each in alone]
        for thread_id in ("alice", "bob"):
            assert list(grouped.history(thread_id)) == list(single.history(thread_id))
