"""Who waits is written by who writes: one write for all, each with an answer of its own."""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest

from dialoom.base.errors import ConflictError, StoreError
from dialoom.graph import Checkpoint
from dialoom.stores.group_commit import GroupCommit
from dialoom.stores.jsonl_checkpoints import JsonlCheckpointStore
from dialoom.stores.sqlite_checkpoints import SqliteCheckpointStore
from dialoom.testing.checkpoint_contract import checkpoint_after, say
from tests.graph.graphs import PATIENCE, wait_for

BAD, DEADLY = 7, 13


class Desk:
    """Writes groups of numbers; a 0 holds the desk until `go`."""

    def __init__(self) -> None:
        self.busy, self.go = Event(), Event()
        self.groups: list[list[int]] = []
        self.told: dict[int, type[BaseException] | None] = {}
        self.commits: GroupCommit[int] = GroupCommit(self.write)

    def write(self, group: Sequence[int]) -> list[Exception | None]:
        self.groups.append(sorted(group))
        if 0 in group:
            self.busy.set()
            wait_for(self.go)
        if DEADLY in group:
            raise KeyboardInterrupt
        return [ValueError("bad") if each == BAD else None for each in group]

    def submit(self, item: int) -> None:
        try:
            self.commits.submit(item)
        except BaseException as error:  # noqa: BLE001 - the outcome is what the test looks at
            self.told[item] = type(error)
        else:
            self.told[item] = None

    def submit_behind(self, *items: int) -> None:
        """Submit 0, have `items` queue behind it, let go and wait for all."""
        threads = [Thread(target=self.submit, args=(item,)) for item in (0, *items)]
        threads[0].start()
        wait_for(self.busy)
        for thread in threads[1:]:
            thread.start()
        deadline = time.monotonic() + PATIENCE
        while len(self.commits._waiting) < len(items):
            assert time.monotonic() < deadline, "they did not queue"
        self.go.set()
        for thread in threads:
            thread.join(PATIENCE)


def test_those_who_wait_share_the_next_write_and_one_that_is_refused_fails_alone() -> None:
    desk = Desk()
    desk.submit_behind(1, BAD, 2)
    assert desk.groups == [[0], [1, 2, BAD]]
    assert desk.told == {0: None, 1: None, 2: None, BAD: ValueError}


def test_who_is_alone_writes_at_once() -> None:
    desk = Desk()
    desk.commits.submit(1)
    with pytest.raises(ValueError, match="bad"):
        desk.commits.submit(BAD)
    assert desk.groups == [[1], [BAD]]


def test_when_the_one_who_writes_is_interrupted_the_others_are_told() -> None:
    desk = Desk()
    desk.submit_behind(DEADLY, 3)
    assert sorted(each.__name__ for each in desk.told.values() if each) == [
        "KeyboardInterrupt",
        "StoreError",
    ]
    desk.commits.submit(4)
    assert desk.groups == [[0], [3, DEADLY], [4]]


def versions(count: int) -> list[Checkpoint]:
    saved = [checkpoint_after(None, "c1", say("1"))]
    for at in range(2, count + 1):
        saved.append(checkpoint_after(saved[-1], f"c{at}", say(str(at))))
    return saved


def test_a_gap_within_a_group_is_refused_and_with_it_what_follows_the_gap(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    saved = versions(3)
    gap = checkpoint_after(saved[2], "c5", say("5"), version=5)
    with SqliteCheckpointStore(path) as store:
        store.save(saved[0])
        group = [saved[1], saved[2], gap, checkpoint_after(gap, "c6", say("6"))]
        errors = store.commit([store.prepare(each) for each in group])
        assert [type(error) for error in errors] == [type(None), type(None), ConflictError, ConflictError]
        assert list(store.history("alice")) == saved[::-1]


def test_what_follows_nothing_begins_anew_in_a_long_thread_too(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    saved = versions(3)
    anew = checkpoint_after(None, "c4", say("anew"), version=4)
    with SqliteCheckpointStore(path) as store:
        for checkpoint in (*saved, anew):
            store.save(checkpoint)
        assert list(store.history("alice")) == [anew, *saved[::-1]]


def test_a_thread_whose_newest_is_another_than_was_known_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteCheckpointStore(path) as store, SqliteCheckpointStore(path) as other:
        saved = versions(2)
        for checkpoint in saved:
            store.save(checkpoint)
        with closing(sqlite3.connect(path)) as file, file:
            file.execute("UPDATE checkpoint SET id = 'other' WHERE id = 'c2'")
        with pytest.raises(StoreError, match="thread 'alice' has no checkpoint 'c2' to follow"):
            store.save(checkpoint_after(saved[-1], "c3", say("3")))
        assert [each.id for each in other.history("alice")] == ["other", "c1"]


def test_what_follows_a_checkpoint_another_has_rebased_is_folded_from_there(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    saved = versions(4)
    with SqliteCheckpointStore(path) as store, SqliteCheckpointStore(path) as other:
        for checkpoint in saved[:3]:
            store.save(checkpoint)
        assert other.prune(keep_last=1) == 2
        store.save(saved[3])
        assert list(other.history("alice")) == [saved[3], saved[2]]
        assert other.load("alice", "c4") == saved[3]
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT base FROM checkpoint ORDER BY place").fetchall() == [(3,), (3,)]


def test_what_is_repeated_or_branched_from_within_a_group_is_as_if_saved_one_by_one(tmp_path: Path) -> None:
    first, second = versions(2)
    branch = checkpoint_after(first, "branch", say("other"), version=3)
    late = checkpoint_after(first, "late", say("late"))
    path = tmp_path / "threads.jsonl"
    with JsonlCheckpointStore(path) as store:
        group = [first, first, second, first, branch, late, second]
        errors = store.commit([store.prepare(each) for each in group])
        assert [type(error).__name__ for error in errors] == ["NoneType"] * 5 + ["ConflictError", "NoneType"]
        assert list(store.history("alice")) == [branch, second, first]
        assert path.read_bytes().count(b"\n") == 3
