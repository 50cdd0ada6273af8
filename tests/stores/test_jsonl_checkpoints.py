"""Checkpoints as JSON lines: the contract of all stores, and what only a file can get wrong."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialoom.base.errors import ConflictError, StoreError
from dialoom.graph import Checkpoint, CheckpointStore
from dialoom.graph.codec import UnreadableError
from dialoom.stores.file_lock import FileLock
from dialoom.stores.jsonl_checkpoints import JsonlCheckpointStore
from dialoom.testing.checkpoint_contract import NOW, PrunableStoreContract, checkpoint_after, say
from dialoom.testing.clock import ManualClock
from tests.graph.graphs import line


class TestJsonlCheckpointStore(PrunableStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[JsonlCheckpointStore]:
        self.path = tmp_path / "threads.jsonl"
        self.opened = [JsonlCheckpointStore(self.path, clock=ManualClock(NOW))]
        yield self.opened[0]
        for store in self.opened:
            store.close()

    def reopen(self, store: CheckpointStore) -> CheckpointStore:
        self.opened.append(JsonlCheckpointStore(self.path, clock=ManualClock(NOW)))
        return self.opened[-1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "线程 été" / "threads.jsonl"


def thread(store: CheckpointStore, count: int, words: int = 1) -> list[Checkpoint]:
    saved = [checkpoint_after(None, "c1", say("1" * words))]
    for at in range(2, count + 1):
        saved.append(checkpoint_after(saved[-1], f"c{at}", say(f"{at}" * words)))
    for checkpoint in saved:
        store.save(checkpoint)
    return saved


@pytest.mark.promise("graph-125", "graph-133")
def test_a_save_adds_one_line_and_rewrites_nothing(path: Path) -> None:
    with JsonlCheckpointStore(path) as store:
        saved = thread(store, 3)
        before, inode = path.read_bytes(), path.stat().st_ino
        store.save(checkpoint_after(saved[-1], "c4", say("4")))
    after = path.read_bytes()
    assert after.startswith(before)
    assert (after.count(b"\n"), path.stat().st_ino) == (4, inode)
    assert path.with_name("threads.jsonl.lock").exists()
    assert json.loads(after.splitlines()[3])["ops"] == [["said", "extend", ["4"]]]


@pytest.mark.promise("graph-123", "graph-141")
def test_another_process_reads_the_whole_history_at_any_path(path: Path) -> None:
    with JsonlCheckpointStore(path) as store:
        saved = thread(store, 3)
    code = (
        "import sys; from dialoom.stores.jsonl_checkpoints import JsonlCheckpointStore\n"
        "print([each.id for each in JsonlCheckpointStore(sys.argv[1]).history('alice')])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([each.id for each in reversed(saved)])


def test_a_long_thread_is_read_from_its_newest_snapshot(path: Path) -> None:
    with JsonlCheckpointStore(path, fsync=False) as store:
        saved = thread(store, 300, words=300)
        assert store.load("alice") == saved[-1]
        assert store.load("alice", "c150") == saved[149]
        assert list(store.history("alice")) == saved[::-1]
    assert 2 <= sum(1 for each in path.read_text().splitlines() if '"state":' in each) <= 6


@pytest.mark.promise("graph-128", "graph-129")
@pytest.mark.parametrize("cut", [1, 20, 10_000])
def test_a_line_a_crash_cut_short_is_dropped_and_repaired_by_the_next_save(path: Path, cut: int) -> None:
    with JsonlCheckpointStore(path) as store:
        first, second = thread(store, 2)
    whole = path.read_bytes()
    line_length = len(whole.splitlines(keepends=True)[1])
    path.write_bytes(whole[: -min(cut, line_length - 1)])
    with JsonlCheckpointStore(path) as store:
        assert store.load("alice") == first
        store.save(second)
        assert store.load("alice") == second
    assert path.read_bytes() == whole


def test_a_line_somebody_is_still_writing_is_not_there_yet(path: Path) -> None:
    with JsonlCheckpointStore(path) as store:
        first, second = thread(store, 2)
        whole = path.read_bytes()
        path.write_bytes(whole[:-5])
        assert store.load("alice") == first
        with path.open("ab") as file:
            file.write(whole[-5:])
        assert store.load("alice") == second


@pytest.mark.parametrize(
    ("at", "new", "reason"),
    [
        (30, b"X", "line 1 of .* is damaged: its checksum is wrong"),
        (
            30,
            b"\x00",
            "line 1 of .* is damaged: its checksum is wrong, and it does not say for sure of which",
        ),
        (0, b"no\n", "line 1 of .* is damaged: it is no checkpoint"),
    ],
)
def test_any_other_damage_is_named_and_nothing_is_written(
    path: Path, at: int, new: bytes, reason: str
) -> None:
    with JsonlCheckpointStore(path) as store:
        saved = thread(store, 3)
    whole = path.read_bytes()
    assert whole[at : at + 1] != new
    path.write_bytes(whole[:at] + new + whole[at + len(new) :])
    damaged = path.read_bytes()
    with JsonlCheckpointStore(path) as store:
        for call in (
            lambda: store.load("alice"),
            lambda: store.save(saved[2]),
            lambda: list(store.threads()),
        ):
            with pytest.raises(UnreadableError, match=reason):
                call()
    assert path.read_bytes() == damaged


@pytest.mark.parametrize(
    ("gone", "told"),
    [(1, "has version 3 after 1"), (0, "what version 2 of thread 'alice' follows is missing")],
)
def test_a_line_that_is_gone_is_missed(path: Path, gone: int, told: str) -> None:
    with JsonlCheckpointStore(path) as store:
        thread(store, 3)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
    with JsonlCheckpointStore(path) as store, pytest.raises(UnreadableError, match=told):
        store.load("alice")


def test_a_line_that_changes_under_an_open_store_is_noticed(path: Path) -> None:
    with JsonlCheckpointStore(path) as store:
        thread(store, 2)
        with path.open("r+b") as file:
            file.seek(40)
            file.write(b"~")
        with pytest.raises(
            UnreadableError, match=r"checkpoint 1 in .* cannot be read: its checksum is wrong"
        ):
            store.load("alice")


def test_lines_without_a_checksum_and_empty_lines_are_read(path: Path) -> None:
    with JsonlCheckpointStore(path) as store:
        saved = thread(store, 2)
    plain = [json.loads(each) for each in path.read_text().splitlines()]
    for each in plain:
        del each["crc"]
    path.write_text("\n\n".join(json.dumps(each) for each in plain) + "\n")
    with JsonlCheckpointStore(path) as store:
        assert list(store.history("alice")) == saved[::-1]
        store.compact()
        assert path.read_text().count('{"crc":"') == path.read_text().count("\n") == 2
        assert list(store.history("alice")) == saved[::-1]


OLDER = [
    {"thread": "alice", "step": 1, "state": {"said": ["a"]}, "active": ["b"]},
    {"thread_id": "bob", "id": "b", "step": 0, "state": {"n": 1}, "run_id": "r", "created": 5.0},
    {"thread": "alice", "step": 2, "state": {"said": ["a", "b"]}, "frontier": {"ready": ["c"]}},
]


@pytest.mark.promise("graph-127")
def test_a_file_in_the_older_form_is_read_and_rewritten_at_the_first_save(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(json.dumps(OLDER, indent=1))
    older = path.read_bytes()
    with JsonlCheckpointStore(path) as store:
        head = store.load("alice")
        assert head is not None
        assert (head.state, head.frontier.ready, head.version) == ({"said": ["a", "b"]}, ("c",), 2)
        assert [each.state["said"] for each in store.history("alice")] == [["a", "b"], ["a"]]
        assert list(store.threads()) == ["alice", "bob"]
        assert path.read_bytes() == older
        third = checkpoint_after(head, "c", say("c"))
        store.save(third)
        assert store.load("alice") == third
    assert [json.loads(each)["version"] for each in path.read_text().splitlines()] == [1, 1, 2, 3]
    with JsonlCheckpointStore(path) as store:
        assert next(store.history("alice")) == third
        assert line("a", "b", "c", store=store).resume_sync("bob").stop_reason == "finished"


def test_an_array_of_something_else_is_refused_and_kept(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("[1, 2]")
    with JsonlCheckpointStore(path) as store:
        with pytest.raises(UnreadableError, match="neither lines nor an array of checkpoints; restore it"):
            store.load("alice")
        with pytest.raises(UnreadableError):
            store.save(checkpoint_after(None, "a"))
    assert path.read_text() == "[1, 2]"


@pytest.mark.promise("graph-134", "graph-135")
def test_what_one_rewrites_another_reads_anew(path: Path) -> None:
    with JsonlCheckpointStore(path) as mine, JsonlCheckpointStore(path) as yours:
        saved = thread(mine, 4)
        bob = checkpoint_after(None, "b", say("a secret word"), thread_id="bob")
        yours.save(bob)
        assert mine.prune(keep_last=1, thread_id="alice") == 3
        assert list(yours.history("alice")) == [saved[3]]
        fifth = checkpoint_after(saved[3], "c5", say("5"))
        yours.save(fifth)
        mine.erase_thread("bob")
        mine.erase_thread("nobody")
        assert list(yours.threads()) == ["alice"]
        yours.compact()
        assert mine.load("alice") == fifth
    assert b"a secret word" not in path.read_bytes()
    assert sorted(each.name for each in path.parent.iterdir()) == ["threads.jsonl", "threads.jsonl.lock"]


def test_a_file_that_is_taken_away_begins_anew(path: Path) -> None:
    with JsonlCheckpointStore(path) as store:
        saved = thread(store, 2)
        path.unlink()
        assert store.load("alice") is None
        store.save(saved[0])
        assert store.load("alice") == saved[0]
        path.write_bytes(b"")
        assert store.load("alice") is None


def test_a_write_that_fails_leaves_no_trace(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JsonlCheckpointStore(path) as store:
        first, second = thread(store, 1)[0], checkpoint_after(None, "x", thread_id="x")
        before = path.read_bytes()

        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fdatasync", full)
        with pytest.raises(StoreError, match=r"cannot be used \(no space left on device\); choose another"):
            store.save(second)
        monkeypatch.undo()
        assert path.read_bytes() == before
        assert store.load("alice") == first
        store.save(second)
        assert store.load("x") == second


def test_a_store_held_by_another_process_for_too_long_is_a_conflict(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.mkdir()
    with FileLock(path).held():
        waiting = FileLock(path, wait=0.02)
        with pytest.raises(ConflictError, match="is held by another process; try again"), waiting.held():
            pass
        waiting.close()


def test_a_closed_store_says_so(path: Path) -> None:
    store = JsonlCheckpointStore(path)
    store.close()
    store.close()
    for call in (lambda: store.load("alice"), lambda: store.save(checkpoint_after(None, "a")), store.compact):
        with pytest.raises(StoreError, match="is closed; open it again"):
            call()


def test_a_store_opened_before_a_fork_is_refused_in_the_child(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with JsonlCheckpointStore(path) as store:
        monkeypatch.setattr("os.getpid", lambda: -1)
        with pytest.raises(StoreError, match="was opened before a fork; open it again in this process"):
            store.load("alice")
        monkeypatch.undo()


def test_a_place_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be used"):
        JsonlCheckpointStore(tmp_path / "file" / "threads.jsonl")


def test_a_group_is_one_write_and_a_refusal_fails_nobody_else(path: Path) -> None:
    with JsonlCheckpointStore(path) as store:
        good = [checkpoint_after(None, "a", thread_id=name) for name in ("bob", "carol")]
        after_bob = checkpoint_after(good[0], "b", thread_id="bob")
        gap = checkpoint_after(None, "x", version=5)
        errors = store.commit([store.prepare(each) for each in (good[0], gap, after_bob, good[1])])
        assert [type(error) for error in errors] == [type(None), ConflictError, type(None), type(None)]
        assert store.load("bob") == after_bob
