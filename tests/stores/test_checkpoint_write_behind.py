"""Saves that do not wait: the contract still holds, and what fails later is told."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event, Thread

import pytest

from dialoom.base.errors import ConflictError, StoreError
from dialoom.graph import Checkpoint, CheckpointStore, Op, RunOptions
from dialoom.stores.sqlite_checkpoints import Saving, SqliteCheckpointStore
from dialoom.stores.write_behind import QUEUE, WriteBehindStore
from dialoom.testing.checkpoint_contract import CheckpointStoreContract, checkpoint_after, say
from tests.graph.graphs import PATIENCE, line, wait_for

Behind = WriteBehindStore[Saving]


class Gated(SqliteCheckpointStore):
    """A store whose commits of groups wait for a gate."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.where = path
        self.gate, self.at_gate = Event(), Event()
        self.groups: list[int] = []
        self.broken: Exception | None = None

    def commit(self, group: Sequence[Saving]) -> Sequence[Exception | None]:
        if group[0].checkpoint.version > 1:
            self.at_gate.set()
            wait_for(self.gate)
            self.groups.append(len(group))
            if self.broken is not None:
                raise self.broken
        return super().commit(group)


class _Contract(CheckpointStoreContract):
    def reopen(self, store: CheckpointStore) -> CheckpointStore:
        assert isinstance(store, WriteBehindStore)
        store.flush()
        self.opened.append(SqliteCheckpointStore(self.path))
        return self.opened[-1]

    def open(self, folder: Path) -> SqliteCheckpointStore:
        self.path = folder / "threads.db"
        self.opened = [SqliteCheckpointStore(self.path)]
        return self.opened[0]

    def close(self) -> None:
        for store in self.opened:
            store.close()


class TestAsync(_Contract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Behind]:
        with WriteBehindStore(self.open(tmp_path)) as store:
            yield store
        self.close()


class TestExit(_Contract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Behind]:
        with WriteBehindStore(self.open(tmp_path), "exit") as store:
            yield store
        self.close()


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[Gated]:
    with Gated(tmp_path / "threads.db") as store:
        yield store
        store.gate.set()


def many(count: int) -> list[Checkpoint]:
    saved = [checkpoint_after(None, "c1", say("1"))]
    for at in range(2, count + 1):
        saved.append(checkpoint_after(saved[-1], f"c{at}", say(str(at))))
    return saved


def test_saves_go_on_while_the_disk_is_busy_and_are_committed_in_groups(gated: Gated) -> None:
    checkpoints = many(6)
    with WriteBehindStore(gated) as store:
        store.save(checkpoints[0])
        store.save(checkpoints[1])
        wait_for(gated.at_gate)
        for checkpoint in checkpoints[2:]:
            store.save(checkpoint)
        gated.gate.set()
        store.flush()
        assert gated.groups == [1, 4]
        assert list(gated.history("alice")) == checkpoints[::-1]
        store.flush()
    store.close()


def test_a_save_waits_for_room_when_64_wait(gated: Gated) -> None:
    checkpoints = many(QUEUE + 3)
    with WriteBehindStore(gated) as store:
        store.save(checkpoints[0])
        store.save(checkpoints[1])
        wait_for(gated.at_gate)
        for checkpoint in checkpoints[2:-1]:
            store.save(checkpoint)
        last = Thread(target=store.save, args=(checkpoints[-1],))
        last.start()
        last.join(0.05)
        assert last.is_alive()
        gated.gate.set()
        last.join(PATIENCE)
        assert store.load("alice") == checkpoints[-1]


def test_exit_writes_when_it_is_asked_to(gated: Gated) -> None:
    checkpoints = many(5)
    gated.gate.set()
    with WriteBehindStore(gated, "exit") as store:
        for checkpoint in checkpoints:
            store.save(checkpoint)
        assert gated.groups == []
        assert list(store.history("alice")) == checkpoints[::-1]
        assert gated.groups == [4]
        assert list(store.threads()) == ["alice"]


@pytest.mark.parametrize("error", [StoreError("disk full"), RuntimeError("bug")])
def test_what_fails_later_is_told_by_the_next_save_and_nothing_follows_it(
    gated: Gated, error: Exception
) -> None:
    checkpoints = many(4)
    gated.broken = error
    with WriteBehindStore(gated) as store:
        store.save(checkpoints[0])
        store.save(checkpoints[1])
        wait_for(gated.at_gate)
        store.save(checkpoints[2])
        gated.gate.set()
        with pytest.raises(type(error), match=str(error)):
            store.flush()
        gated.broken = None
        with pytest.raises(ConflictError):
            store.save(checkpoints[3])
        assert store.load("alice") == checkpoints[0]


def test_a_failure_raises_at_close_too(gated: Gated) -> None:
    store = WriteBehindStore(gated)
    gated.broken = StoreError("disk full")
    gated.gate.set()
    for checkpoint in many(2):
        store.save(checkpoint)
    with pytest.raises(StoreError, match="disk full"):
        store.close()
    with pytest.raises(StoreError, match="closed; make a new one"):
        store.load("alice")


def test_another_process_that_was_first_is_told_at_the_next_save(gated: Gated) -> None:
    checkpoints = many(3)
    rival = checkpoint_after(checkpoints[0], "rival", say("rival"))
    with WriteBehindStore(gated) as store:
        store.save(checkpoints[0])
        store.save(checkpoints[1])
        wait_for(gated.at_gate)
        with SqliteCheckpointStore(gated.where) as other:
            other.save(rival)
        gated.gate.set()
        with pytest.raises(ConflictError, match="thread 'alice' is at version 2"):
            store.flush()
        assert store.load("alice") == rival


def test_what_cannot_be_stored_is_refused_at_once(gated: Gated) -> None:
    with WriteBehindStore(gated) as store, pytest.raises(StoreError, match="channel 'x' holds a object"):
        store.save(checkpoint_after(None, "a", Op("x", "set", object())))


def test_a_run_over_it_comes_to_the_same(tmp_path: Path) -> None:
    with SqliteCheckpointStore(tmp_path / "threads.db") as inner:
        with WriteBehindStore(inner) as store:
            result = line("a", "b", store=store).run_sync(None, RunOptions(thread_id="alice"))
        head = inner.load("alice")
    assert head is not None
    assert (head.state, head.id) == (result.state, result.checkpoint_id)
