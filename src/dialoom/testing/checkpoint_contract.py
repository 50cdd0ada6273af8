"""What every CheckpointStore keeps to, as tests: subclass `CheckpointStoreContract` and give it a `store`."""

from collections.abc import Callable, Sequence
from functools import partial
from threading import Barrier, Thread
from typing import Any

from dialoom.base.errors import ConflictError, StoreError, UsageError
from dialoom.graph import EMPTY, Checkpoint, CheckpointStore, Frontier, Op, State, replay
from dialoom.graph.checkpoint import PrunableCheckpointStore

THREAD = "alice"
NOW = 1_700_000_100.0
"""The time on the clock of a store that prunes, in seconds; `checkpoint_after` makes older ones."""


def checkpoint_after(
    parent: Checkpoint | None,
    checkpoint_id: str,
    *ops: Op,
    version: int | None = None,
    thread_id: str = THREAD,
) -> Checkpoint:
    """Return a checkpoint that follows `parent` and changes the state by `ops`."""
    before = EMPTY if parent is None else parent.state
    number = 1 if parent is None else parent.version + 1
    return Checkpoint(
        id=checkpoint_id,
        thread_id=thread_id,
        version=number if version is None else version,
        parent_id=None if parent is None else parent.id,
        run_id="run",
        step=number - 1,
        created=1_700_000_000.0 + number,
        fingerprint="0123456789abcdef",
        frontier=Frontier(("next",), ("later",), ("__start__",)),
        ops=ops,
        state=replay(before, ops),
    )


def say(*words: str) -> Op:
    return Op("said", "extend", list(words))


class CheckpointStoreContract:
    """Subclass it in a test module, with a pytest fixture named `store` that gives an empty store.

    A store that outlives its process also overrides `reopen`.
    """

    def reopen(self, store: CheckpointStore) -> CheckpointStore:
        """Return a store over what `store` made durable; here, where nothing is, the same one."""
        return store

    def test_what_was_saved_is_loaded_whole(self, store: CheckpointStore) -> None:
        saved = checkpoint_after(
            None,
            "a",
            Op("n", "set", {"int": 1, "float": 0.5, "none": None, "list": [True, "é世", {"deep": []}]}),
            say("hi", "there"),
            Op("facts", "update", {"sky": "blue"}),
        )
        store.save(saved)
        assert self.reopen(store).load(THREAD) == saved

    def test_state_is_what_all_changes_come_to_in_order(self, store: CheckpointStore) -> None:
        first = checkpoint_after(None, "a", Op("n", "set", 1), say("one"))
        second = checkpoint_after(first, "b", say("two"), Op("n", "set", 2), say("three"))
        third = checkpoint_after(
            second, "c", Op("facts", "update", {"x": 1}), Op("facts", "update", {"y": 2})
        )
        _save(store, first, second, third)
        loaded = self.reopen(store).load(THREAD)
        assert loaded is not None
        assert loaded.state == State(n=2, said=["one", "two", "three"], facts={"x": 1, "y": 2})

    def test_any_checkpoint_can_be_loaded_by_its_id(self, store: CheckpointStore) -> None:
        first = checkpoint_after(None, "a", say("one"))
        second = checkpoint_after(first, "b", say("two"))
        _save(store, first, second)
        assert store.load(THREAD, "a") == first
        assert store.load(THREAD, "b") == second

    def test_what_is_not_there_loads_as_none(self, store: CheckpointStore) -> None:
        store.save(checkpoint_after(None, "a"))
        assert store.load("nobody") is None
        assert store.load(THREAD, "nothing") is None
        assert store.load("nobody", "a") is None

    def test_a_second_writer_is_refused_and_changes_nothing(self, store: CheckpointStore) -> None:
        first = checkpoint_after(None, "a", say("one"))
        mine = checkpoint_after(first, "mine", say("mine"))
        yours = checkpoint_after(first, "yours", say("yours"))
        _save(store, first, mine)
        _refused(ConflictError, lambda: store.save(yours))
        assert self.reopen(store).load(THREAD) == mine
        assert store.load(THREAD, "yours") is None

    def test_a_gap_in_the_versions_is_refused(self, store: CheckpointStore) -> None:
        first = checkpoint_after(None, "a")
        _refused(ConflictError, lambda: store.save(checkpoint_after(None, "b", version=2)))
        store.save(first)
        _refused(ConflictError, lambda: store.save(checkpoint_after(first, "c", version=3)))
        assert store.load(THREAD) == first

    def test_saving_the_same_again_does_nothing(self, store: CheckpointStore) -> None:
        first = checkpoint_after(None, "a", say("one"))
        second = checkpoint_after(first, "b", say("two"))
        _save(store, first, second, second, first)
        assert [held.id for held in self.reopen(store).history(THREAD)] == ["b", "a"]
        assert store.load(THREAD) == second

    def test_a_parent_of_another_thread_is_refused(self, store: CheckpointStore) -> None:
        elsewhere = checkpoint_after(None, "elsewhere", thread_id="bob")
        first = checkpoint_after(None, "a")
        _save(store, elsewhere, first)
        _refused(StoreError, lambda: store.save(checkpoint_after(elsewhere, "b", version=2)))
        assert store.load(THREAD) == first

    def test_history_is_newest_first_and_each_has_its_own_state(self, store: CheckpointStore) -> None:
        first = checkpoint_after(None, "a", say("one"))
        second = checkpoint_after(first, "b", say("two"))
        branch = checkpoint_after(first, "c", say("other"), version=3)
        after_branch = checkpoint_after(branch, "d", say("end"))
        _save(store, first, second, branch, after_branch)
        assert list(self.reopen(store).history(THREAD)) == [after_branch, branch, second, first]
        assert store.load(THREAD) == after_branch
        assert list(store.history("nobody")) == []

    def test_threads_do_not_see_each_other(self, store: CheckpointStore) -> None:
        bob = checkpoint_after(None, "a", say("bob"), thread_id="bob")
        alice = checkpoint_after(None, "a", say("alice"))
        _save(store, bob, alice)
        assert list(self.reopen(store).threads()) == ["alice", "bob"]
        assert store.load("bob") == bob
        assert store.load("alice") == alice

    def test_an_erased_thread_is_gone_and_may_begin_anew(self, store: CheckpointStore) -> None:
        bob = checkpoint_after(None, "b", thread_id="bob")
        first = checkpoint_after(None, "a", say("secret"))
        _save(store, bob, first, checkpoint_after(first, "z"))
        store.erase_thread(THREAD)
        store.erase_thread(THREAD)
        reopened = self.reopen(store)
        assert list(reopened.threads()) == ["bob"]
        assert reopened.load(THREAD) is None
        assert list(reopened.history(THREAD)) == []
        reopened.save(first)
        assert reopened.load(THREAD) == first
        assert reopened.load("bob") == bob

    def test_of_many_writers_at_once_one_wins(self, store: CheckpointStore) -> None:
        first = checkpoint_after(None, "a")
        store.save(first)
        rivals = [checkpoint_after(first, f"r{at}", say(f"r{at}")) for at in range(8)]
        lost = _all_at_once([partial(store.save, rival) for rival in rivals])
        assert sum(1 for error in lost if error is None) == 1
        assert {type(error) for error in lost if error is not None} == {ConflictError}
        head = store.load(THREAD)
        assert head is not None
        assert head == rivals[lost.index(None)]

    def test_writers_on_different_threads_all_win(self, store: CheckpointStore) -> None:
        firsts = [checkpoint_after(None, "a", say(f"t{at}"), thread_id=f"t{at}") for at in range(8)]
        assert _all_at_once([partial(store.save, first) for first in firsts]) == [None] * 8
        assert [store.load(first.thread_id) for first in firsts] == firsts


class PrunableStoreContract(CheckpointStoreContract):
    """The same for a `PrunableCheckpointStore`; its fixture `store` goes by a `ManualClock` at `NOW`."""

    def test_pruning_keeps_the_newest_and_their_states(self, store: PrunableCheckpointStore) -> None:
        alice, bob = _thread(store, THREAD, 5), _thread(store, "bob", 2)
        assert store.prune(keep_last=2) == 3
        for held in (store, self.reopen(store)):
            assert list(held.history(THREAD)) == [alice[4], alice[3]]
            assert held.load(THREAD) == alice[4]
            assert held.load(THREAD, alice[3].id) == alice[3]
            assert held.load(THREAD, alice[0].id) is None
            assert list(held.history("bob")) == [bob[1], bob[0]]

    def test_a_pruned_thread_goes_on_and_can_be_pruned_again(self, store: PrunableCheckpointStore) -> None:
        alice = _thread(store, THREAD, 3)
        assert store.prune(keep_last=1, thread_id=THREAD) == 2
        sixth = checkpoint_after(alice[2], "later", say("later"))
        store.save(sixth)
        assert store.prune(keep_last=1, thread_id=THREAD) == 1
        reopened = self.reopen(store)
        assert list(reopened.history(THREAD)) == [sixth]
        _refused(ConflictError, lambda: reopened.save(alice[0]))
        reopened.save(sixth)

    def test_pruning_can_be_limited_to_one_thread(self, store: PrunableCheckpointStore) -> None:
        alice, bob = _thread(store, THREAD, 3), _thread(store, "bob", 3)
        assert store.prune(keep_last=1, thread_id="bob") == 2
        assert store.prune(keep_last=1, thread_id="nobody") == 0
        assert list(store.history(THREAD)) == alice[::-1]
        assert list(store.history("bob")) == [bob[2]]

    def test_pruning_by_age_keeps_the_newest_however_old(self, store: PrunableCheckpointStore) -> None:
        alice = _thread(store, THREAD, 5)
        age = NOW - alice[3].created
        assert store.prune(max_age=age) == 3
        assert list(store.history(THREAD)) == [alice[4], alice[3]]
        assert store.prune(max_age=0) == 1
        assert list(store.history(THREAD)) == [alice[4]]

    def test_of_two_limits_each_counts(self, store: PrunableCheckpointStore) -> None:
        alice, bob = _thread(store, THREAD, 5), _thread(store, "bob", 5)
        young = NOW - alice[1].created
        assert store.prune(keep_last=2, max_age=young, thread_id=THREAD) == 3
        assert store.prune(keep_last=4, max_age=NOW - bob[3].created, thread_id="bob") == 3
        assert list(store.history(THREAD)) == [alice[4], alice[3]]
        assert list(store.history("bob")) == [bob[4], bob[3]]

    def test_a_branch_whose_root_was_pruned_keeps_its_state(self, store: PrunableCheckpointStore) -> None:
        first, second = _thread(store, THREAD, 2)
        branch = checkpoint_after(first, "branch", say("other"), version=3)
        _save(store, branch)
        assert store.prune(keep_last=2) == 1
        assert list(self.reopen(store).history(THREAD)) == [branch, second]

    def test_a_prune_without_a_limit_is_refused(self, store: PrunableCheckpointStore) -> None:
        _refused(UsageError, store.prune)
        _refused(UsageError, lambda: store.prune(keep_last=0))
        _refused(UsageError, lambda: store.prune(max_age=-1))

    def test_compacting_loses_nothing(self, store: PrunableCheckpointStore) -> None:
        alice = _thread(store, THREAD, 4)
        store.compact()
        assert list(store.history(THREAD)) == alice[::-1]
        fifth = checkpoint_after(alice[3], "more", say("more"))
        store.save(fifth)
        assert self.reopen(store).load(THREAD) == fifth


def _thread(store: CheckpointStore, thread_id: str, count: int) -> list[Checkpoint]:
    """Save `count` checkpoints that follow each other; return them, oldest first."""
    line = [checkpoint_after(None, f"{thread_id}1", say("1"), thread_id=thread_id)]
    for at in range(2, count + 1):
        line.append(checkpoint_after(line[-1], f"{thread_id}{at}", say(f"{at}"), thread_id=thread_id))
    _save(store, *line)
    return line


def _save(store: CheckpointStore, *checkpoints: Checkpoint) -> None:
    for checkpoint in checkpoints:
        store.save(checkpoint)


def _refused(kind: type[Exception], call: Callable[[], Any]) -> None:
    try:
        call()
    except kind:
        return
    raise AssertionError(f"the store took what it must refuse with {kind.__name__}")


def _all_at_once(calls: Sequence[Callable[[], None]]) -> list[Exception | None]:
    """Run `calls` on a thread each, let go together; return what each raised."""
    together = Barrier(len(calls), timeout=30)
    raised: list[Exception | None] = [None] * len(calls)

    def run(at: int) -> None:
        together.wait()
        try:
            calls[at]()
        except Exception as error:  # noqa: BLE001 - seam: the outcome is what the test looks at
            raised[at] = error

    threads = [Thread(target=run, args=(at,)) for at in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    return raised
