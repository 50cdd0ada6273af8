"""Files of checkpoints that were damaged: the thread that is hit is lost, and no other."""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.graph import Checkpoint, CheckpointStore, MemoryCheckpointStore
from dialoom.graph.codec import UnreadableError
from dialoom.stores.jsonl_checkpoints import JsonlCheckpointStore
from dialoom.stores.sqlite_checkpoints import SqliteCheckpointStore
from dialoom.testing.checkpoint_contract import checkpoint_after, say


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "线程 été" / "threads.jsonl"


def versions(name: str, count: int) -> list[Checkpoint]:
    saved = [checkpoint_after(None, f"{name}1", say("1"), thread_id=name)]
    for at in range(2, count + 1):
        saved.append(checkpoint_after(saved[-1], f"{name}{at}", say(f"{at}"), thread_id=name))
    return saved


def save_all(store: CheckpointStore, count: int) -> list[Checkpoint]:
    saved = versions("alice", count)
    for checkpoint in saved:
        store.save(checkpoint)
    return saved


def damage(path: Path, number: int, old: bytes, new: bytes) -> bytes:
    """Change something in one line, and return all lines."""
    lines = path.read_bytes().splitlines(keepends=True)
    assert old in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(old, new)
    path.write_bytes(b"".join(lines))
    return path.read_bytes()


@pytest.mark.parametrize(
    ("number", "old", "new"),
    [
        (2, b'["2"]', b'["X"]'),
        (2, b'"ops":', b'"ops"~'),
        (1, b'["1"]', b'["X"]'),
        (3, b'["3"]', b'["X"]'),
    ],
)
def test_a_damaged_line_ends_its_thread_alone_and_erasing_that_makes_the_file_whole(
    path: Path, number: int, old: bytes, new: bytes
) -> None:
    bob = checkpoint_after(None, "b", say("bob"), thread_id="bob")
    with JsonlCheckpointStore(path) as store:
        saved = save_all(store, 3)
        store.save(bob)
    damaged = damage(path, number, old, new)
    told = f"thread 'alice' cannot be read: line {number} of .*threads.jsonl .* restore the file, or erase"
    with JsonlCheckpointStore(path) as store:
        for call in (
            lambda: store.load("alice"),
            lambda: store.load("alice", saved[number - 1].id),
            lambda: next(store.history("alice")),
            lambda: store.save(checkpoint_after(saved[-1], "c4")),
            lambda: store.prune(keep_last=1, thread_id="alice"),
        ):
            with pytest.raises(UnreadableError, match=told):
                call()
        assert [store.load("alice", each.id) for each in saved[: number - 1]] == saved[: number - 1]
        assert path.read_bytes() == damaged
        newer = checkpoint_after(bob, "b2", say("on"), thread_id="bob")
        store.save(newer)
        assert list(store.history("bob")) == [newer, bob]
        assert list(store.threads()) == ["alice", "bob"]
        assert store.prune(keep_last=1) == 1
        store.compact()
        assert [store.load("bob"), *store.history("bob")] == [newer, newer]
        with pytest.raises(UnreadableError, match=told):
            store.load("alice")
        assert path.read_bytes().splitlines()[:3] == damaged.splitlines()[:3]
        store.erase_thread("alice")
        assert list(store.threads()) == ["bob"]
        store.save(saved[0])
    with JsonlCheckpointStore(path) as store:
        assert (store.load("alice"), store.load("bob")) == (saved[0], newer)


def test_several_damaged_lines_of_a_thread_and_of_two(path: Path) -> None:
    with JsonlCheckpointStore(path) as store:
        save_all(store, 4)
        for name in ("bob", "carol"):
            store.save(checkpoint_after(None, name, say(name), thread_id=name))
    damage(path, 2, b'["2"]', b'["X"]')
    damage(path, 4, b'["4"]', b'["X"]')
    damage(path, 5, b'["bob"]', b'["bib"]')
    with JsonlCheckpointStore(path) as store:
        store.erase_thread("bob")
        assert list(store.threads()) == ["alice", "carol"]
        with pytest.raises(UnreadableError, match="'alice1', the last before it, can be loaded by its id"):
            store.load("alice")
        store.erase_thread("alice")
        assert path.read_bytes().count(b"\n") == 1


@pytest.mark.parametrize(
    ("number", "old", "new"),
    [
        (2, b'"thread_id":"alice"', b'"thread_id":"clice"'),
        (3, b'"thread_id":"alice"', b'"thread_id":"bob"'),
        (2, b'"thread_id":"alice"', b'"thread_id":"\xff"'),
        (2, b'"version":2', b'"version":3'),
        (2, b'"alice1"', b'"alice7"'),
        (2, b"}\n", b"} "),
        (2, b"}\n", b"}"),
        (2, b'"ops":', b"\x00\x00\x00\x00\x00\x00"),
        (2, b'"run_id":"run"', b'"run_id":\n"run"'),
    ],
)
def test_a_damaged_line_that_may_be_of_any_thread_is_refused_whole(
    path: Path, number: int, old: bytes, new: bytes
) -> None:
    with JsonlCheckpointStore(path) as store:
        store.save(checkpoint_after(None, "b", say("bob"), thread_id="bob"))
        save_all(store, 3)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[1], lines[2], lines[3], lines[0]]))
    damaged = damage(path, number, old, new)
    with JsonlCheckpointStore(path) as store:
        for call in (
            lambda: store.load("bob"),
            lambda: store.save(checkpoint_after(None, "x", thread_id="x")),
        ):
            with pytest.raises(
                UnreadableError, match="of which thread it is; restore the file, or cut it off"
            ):
                call()
    assert path.read_bytes() == damaged


@given(st.data())
@settings(max_examples=150)
def test_whatever_is_damaged_no_thread_shows_an_older_state_as_its_newest(data: st.DataObject) -> None:
    """Any byte but of a thread's first line, whose thread nothing else tells, becomes any other."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "threads.jsonl")
        with JsonlCheckpointStore(path, fsync=False) as store:
            saved = {name: versions(name, 3) for name in ("alice", "alicf", "bob")}
            for together in zip(*saved.values(), strict=True):
                for checkpoint in together:
                    store.save(checkpoint)
        whole = bytearray(path.read_bytes())
        firsts = whole.index(b"\n", whole.index(b'"thread_id":"bob"')) + 1
        at = data.draw(st.integers(firsts, len(whole) - 2), label="at")
        whole[at] = data.draw(st.integers(0, 255), label="byte")
        path.write_bytes(whole)
        with JsonlCheckpointStore(path) as store:
            for name, checkpoints in saved.items():
                try:
                    head = store.load(name)
                except UnreadableError:
                    continue
                assert head == checkpoints[-1]


@pytest.mark.parametrize("column", ["id", "base", "size", "since"])
def test_a_row_with_another_kind_of_value_is_not_gone_on_from(path: Path, column: str) -> None:
    with SqliteCheckpointStore(path) as store:
        saved = versions("alice", 2)
        for checkpoint in saved:
            store.save(checkpoint)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(f"UPDATE checkpoint SET {column} = x'00' WHERE id = 'alice2'")
    bob = checkpoint_after(None, "b", thread_id="bob")
    with SqliteCheckpointStore(path) as store:
        group = [checkpoint_after(saved[-1], "c3"), bob]
        errors = store.commit([store.prepare(each) for each in group])
        assert [type(error) for error in errors] == [UnreadableError, type(None)]
        assert "checkpoint 2 of thread 'alice' cannot be gone on from: a column holds" in str(errors[0])
        assert store.load("bob") == bob


@pytest.mark.parametrize("kind", ["memory", "sqlite", "jsonl"])
def test_half_a_character_in_a_name_that_is_looked_for_is_not_there(path: Path, kind: str) -> None:
    with (
        SqliteCheckpointStore(path) as sqlite,
        JsonlCheckpointStore(path.with_suffix(".lines")) as jsonl,
    ):
        store = {"memory": MemoryCheckpointStore(), "sqlite": sqlite, "jsonl": jsonl}[kind]
        saved = checkpoint_after(None, "a", thread_id="世")
        store.save(saved)
        assert store.load("\ud800half") is None
        assert store.load("世", "\udfffhalf") is None
        assert store.load("世", "a") == saved
        assert list(store.history("\ud800half")) == []
        assert store.prune(keep_last=1, thread_id="\ud800half") == 0
        store.erase_thread("\ud800half")
        assert list(store.threads()) == ["世"]
