"""Saves that do not wait: the contract still holds, and what fails later is told."""

from collections.abc import Callable, Iterator, Sequence
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


class Fed(SqliteCheckpointStore):
    """A store at which, with each group that is committed, something else is there to be saved."""

    feed: Callable[[], None] | None = None

    def commit(self, group: Sequence[Saving]) -> Sequence[Exception | None]:
        if self.feed is not None:
            self.feed()
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


def fill(store: Behind, gated: Gated) -> None:
    """Have 64 checkpoints of bob wait behind one that is being written."""
    saved = [checkpoint_after(None, "b1", thread_id="bob")]
    for at in range(2, QUEUE + 3):
        saved.append(checkpoint_after(saved[-1], f"b{at}", thread_id="bob"))
    store.save(saved[0])
    store.save(saved[1])
    wait_for(gated.at_gate)
    for checkpoint in saved[2:]:
        store.save(checkpoint)


def saving(store: Behind, checkpoint: Checkpoint, told: list[Exception | None]) -> Thread:
    """Save on a thread of its own that waits for room, and note what is told."""

    def save() -> None:
        try:
            store.save(checkpoint)
        except StoreError as error:
            told.append(error)
        else:
            told.append(None)

    thread = Thread(target=save)
    thread.start()
    thread.join(0.05)
    return thread


def test_of_two_who_wait_for_room_with_the_same_version_one_is_refused_at_once(gated: Gated) -> None:
    first = many(1)[0]
    told: list[Exception | None] = []
    with WriteBehindStore(gated) as store:
        store.save(first)
        fill(store, gated)
        rivals = [checkpoint_after(first, name, say(name)) for name in ("one", "two")]
        waiting = [saving(store, rival, told) for rival in rivals]
        assert told == []
        gated.gate.set()
        for thread in waiting:
            thread.join(PATIENCE)
        assert sorted(type(each).__name__ for each in told) == ["ConflictError", "NoneType"]
        winner = store.load("alice")
        assert winner in rivals
        last = checkpoint_after(winner, "c3", say("on"))
        store.save(last)
        store.flush()
        assert list(store.history("alice")) == [last, winner, first]


def test_an_older_one_that_is_saved_again_lets_no_second_writer_in(gated: Gated) -> None:
    checkpoints = many(3)
    gated.gate.set()
    with WriteBehindStore(gated) as store:
        for checkpoint in (*checkpoints, checkpoints[0]):
            store.save(checkpoint)
        with pytest.raises(ConflictError, match="is at version 3"):
            store.save(checkpoint_after(checkpoints[0], "rival"))


def test_who_waits_for_room_is_told_what_failed_meanwhile(gated: Gated) -> None:
    checkpoints = many(QUEUE + 3)
    told: list[Exception | None] = []
    gated.broken = StoreError("disk full")
    with WriteBehindStore(gated) as store:
        store.save(checkpoints[0])
        store.save(checkpoints[1])
        wait_for(gated.at_gate)
        for checkpoint in checkpoints[2:-1]:
            store.save(checkpoint)
        waiting = saving(store, checkpoints[-1], told)
        gated.gate.set()
        waiting.join(PATIENCE)
        assert [str(each) for each in told] == ["disk full"]
        assert gated.groups == [1]


def test_what_is_saved_while_the_disk_is_busy_is_committed_though_nobody_saves_again(gated: Gated) -> None:
    checkpoints = many(3)
    with WriteBehindStore(gated) as store:
        store.save(checkpoints[0])
        store.save(checkpoints[1])
        wait_for(gated.at_gate)
        gated.at_gate.clear()
        store.save(checkpoints[2])
        gated.gate.set()
        wait_for(gated.at_gate)
        store.flush()
        assert gated.groups == [1, 1]


def test_who_reads_or_begins_a_thread_does_not_wait_for_what_others_save_later(tmp_path: Path) -> None:
    with Fed(tmp_path / "threads.db") as fed, WriteBehindStore(fed) as store:
        newest = checkpoint_after(None, "b1", thread_id="bob")
        store.save(newest)

        def save_next() -> None:
            nonlocal newest
            newest = checkpoint_after(newest, f"b{newest.version + 1}", thread_id="bob")
            store.save(newest)

        fed.feed = save_next
        save_next()
        done: list[object] = []

        def use() -> None:
            store.save(many(1)[0])
            store.flush()
            done.extend([store.load("alice"), [*store.threads()]])
            store.erase_thread("alice")
            done.append(store.load("alice"))

        user = Thread(target=use)
        user.start()
        user.join(PATIENCE)
        fed.feed = None
        user.join(PATIENCE)
        assert done == [many(1)[0], ["alice", "bob"], None]


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
        assert gated.groups == [1]
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
