"""What users do with a store, on each of ours: resume, count, prune. What is reloaded is what was live."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier, Thread
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.base.ids import new_id
from dialoom.graph import (
    EMPTY,
    Checkpoint,
    CheckpointStore,
    Frontier,
    MemoryCheckpointStore,
    RunOptions,
    RunResult,
    replay,
)
from dialoom.graph.checkpoint import PrunableCheckpointStore
from dialoom.stores.jsonl_checkpoints import JsonlCheckpointStore
from dialoom.stores.sqlite_checkpoints import SqliteCheckpointStore
from dialoom.stores.write_behind import WriteBehindStore
from dialoom.testing.checkpoint_contract import NOW, checkpoint_after, say
from dialoom.testing.clock import ManualClock
from tests.graph.graphs import counter, line
from tests.graph.test_replay import WRITES, graph_of, plans

CLOCK = ManualClock(NOW)


@pytest.fixture(params=["memory", "sqlite", "jsonl"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PrunableCheckpointStore]:
    if request.param == "memory":
        yield MemoryCheckpointStore(clock=CLOCK)
        return
    kind = {"sqlite": SqliteCheckpointStore, "jsonl": JsonlCheckpointStore}[request.param]
    with kind(tmp_path / "threads", clock=CLOCK) as opened:
        yield opened


def saved(store: CheckpointStore, thread_id: str, count: int) -> list[Checkpoint]:
    made = [checkpoint_after(None, f"{thread_id}1", say("1"), thread_id=thread_id)]
    for at in range(2, count + 1):
        made.append(checkpoint_after(made[-1], f"{thread_id}{at}", say(str(at)), thread_id=thread_id))
    for checkpoint in made:
        store.save(checkpoint)
    return made


@pytest.mark.promise("graph-086", "graph-089")
def test_the_newest_checkpoint_is_ready_to_resume_and_all_can_be_counted(
    store: PrunableCheckpointStore,
) -> None:
    graph = counter(store, until=3)
    graph.run_sync(None, RunOptions(thread_id="alice", max_steps=1))
    newest = store.load("alice")
    assert newest is not None
    assert newest.state == {"n": 1}
    assert graph.resume_sync(newest).state == {"n": 3}
    assert len(list(store.history("alice"))) == 4
    assert [list(store.history("bob")), list(store.threads())] == [[], ["alice"]]


@pytest.mark.promise("graph-090", "graph-091")
def test_a_thread_without_history_is_none_and_cannot_be_resumed(store: PrunableCheckpointStore) -> None:
    assert store.load("nobody") is None
    with pytest.raises(UsageError, match="there is no thread 'nobody' to resume; begin it with run"):
        counter(store).resume_sync("nobody")


class FiveMethods:
    """The least a store can be."""

    blocking = False

    def __init__(self) -> None:
        self.kept: list[Checkpoint] = []

    def save(self, checkpoint: Checkpoint) -> None:
        self.kept.append(checkpoint)

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Checkpoint | None:
        return next(iter(self.history(thread_id)), None)

    def history(self, thread_id: str) -> Iterator[Checkpoint]:
        return (each for each in reversed(self.kept) if each.thread_id == thread_id)

    def threads(self) -> Iterator[str]:
        return iter(sorted({each.thread_id for each in self.kept}))

    def erase_thread(self, thread_id: str) -> None:
        self.kept = [each for each in self.kept if each.thread_id != thread_id]


@pytest.mark.promise("graph-121")
def test_five_methods_make_a_store() -> None:
    store = FiveMethods()
    graph = line("a", "b", store=store)
    graph.run_sync(None, RunOptions(thread_id="alice", max_steps=1))
    assert graph.resume_sync("alice").state == {"said": ["a", "b"]}
    assert len(list(graph.history("alice"))) == 3


@pytest.mark.promise("graph-130", "graph-131")
def test_every_store_can_erase_a_thread(store: PrunableCheckpointStore) -> None:
    saved(store, "alice", 3)
    bob = saved(store, "bob", 2)
    store.erase_thread("alice")
    assert (store.load("alice"), list(store.history("alice")), list(store.threads())) == (None, [], ["bob"])
    assert store.load("bob") == bob[-1]


@pytest.mark.promise("graph-132")
def test_compacting_loses_no_checkpoint(store: PrunableCheckpointStore) -> None:
    alice = saved(store, "alice", 5)
    store.prune(keep_last=3)
    store.compact()
    assert list(store.history("alice")) == alice[:1:-1]


@pytest.mark.promise("graph-136", "graph-137", "graph-138", "graph-139")
def test_history_is_pruned_by_count_by_age_by_thread_and_by_all_of_them(
    store: PrunableCheckpointStore,
) -> None:
    alice, bob = saved(store, "alice", 6), saved(store, "bob", 6)
    assert store.prune(keep_last=5) == 2
    assert store.prune(keep_last=4, thread_id="alice") == 1
    assert store.prune(max_age=NOW - alice[3].created, thread_id="alice") == 1
    assert store.prune(keep_last=4, max_age=NOW - bob[4].created, thread_id="bob") == 3
    assert list(store.history("alice")) == alice[:2:-1]
    assert list(store.history("bob")) == bob[:3:-1]


@pytest.mark.promise("graph-140")
def test_the_time_a_checkpoint_was_made_is_kept(tmp_path: Path) -> None:
    made = checkpoint_after(None, "a")
    for kind in (SqliteCheckpointStore, JsonlCheckpointStore):
        with kind(tmp_path / kind.__name__) as store:
            store.save(made)
        with kind(tmp_path / kind.__name__) as store:
            loaded = store.load("alice")
        assert loaded is not None
        assert loaded.created == made.created


@pytest.mark.promise("graph-126")
def test_threads_that_save_at_once_get_whole_lines_and_one_order(tmp_path: Path) -> None:
    path, start = tmp_path / "threads.jsonl", Barrier(8, timeout=60)
    with JsonlCheckpointStore(path) as store:

        def work(name: str) -> None:
            start.wait()
            saved(store, name, 20)

        workers = [Thread(target=work, args=(f"t{at}",)) for at in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert [len(list(store.history(f"t{at}"))) for at in range(8)] == [20] * 8
    with JsonlCheckpointStore(path) as again:
        assert len(list(again.threads())) == 8


LEAST = 2
"""Supersteps that are in every run: a subgraph, which counts its own, has so many."""


class Cut(NamedTuple):
    """Where a run is stopped: after so many supersteps. `fork` counts from the end to where it is forked."""

    steps: int
    fork: int = 0


class Told(NamedTuple):
    """What a run came to, and the supersteps of its thread."""

    state: Any
    reason: str
    errors: list[str]
    steps: int
    kept: list[Any]


class Shelves:
    """Every store there is, each with a second object over the same file that reads what the first wrote."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        memory = MemoryCheckpointStore()
        behind = self._sqlite(folder / "behind", stack)
        self.pairs: dict[str, tuple[Any, Any]] = {
            "memory": (memory, memory),
            "sqlite": (self._sqlite(folder / "sqlite", stack), self._sqlite(folder / "sqlite", stack)),
            "jsonl": (self._jsonl(folder / "jsonl", stack), self._jsonl(folder / "jsonl", stack)),
            "behind": (stack.enter_context(WriteBehindStore(behind)), self._sqlite(folder / "behind", stack)),
        }

    def _sqlite(self, path: Path, stack: ExitStack) -> SqliteCheckpointStore:
        return stack.enter_context(SqliteCheckpointStore(path, synchronous="normal"))

    def _jsonl(self, path: Path, stack: ExitStack) -> JsonlCheckpointStore:
        return stack.enter_context(JsonlCheckpointStore(path, fsync=False))

    def check(self, plan: Any, inputs: dict[str, Any], cuts: Sequence[Cut]) -> None:
        """Run a graph on every store, cut it, reload it each time; compare all, and with a run nobody cut."""
        thread_id = new_id()
        stories = {name: cut_up(plan, pair, inputs, cuts, thread_id) for name, pair in self.pairs.items()}
        assert all(told == stories["memory"] for told in stories.values())
        last, steps = stories["memory"][-1], sum(told.steps for told in stories["memory"])
        if last.reason == "max_steps":
            whole = graph_of(plan, None).run_sync(inputs, RunOptions(max_steps=steps))
            assert (last.state, last.reason, last.errors) == ended(whole)
        elif last.reason in {"finished", "halted", "interrupted", "error"}:
            whole = graph_of(plan, None).run_sync(inputs, RunOptions(max_steps=steps + 1))
            assert (last.state, last.reason, last.errors) == ended(whole)
        for name, (store, _) in self.pairs.items():
            if last.reason != "error":
                assert forked_up(plan, store, thread_id, last, at=cuts[0].fork), name


def test_a_subgraph_that_was_stopped_comes_to_the_same_on_every_store(tmp_path: Path) -> None:
    """Found by the property test: a stopped child's logs are lists once they have been on disk."""
    with ExitStack() as stack:
        shelves = Shelves(tmp_path, stack)
        shelves.check([({}, [], "once"), ({}, [], "sub")], {}, [Cut(2)])
        sending = [({}, [3], "send"), ({}, [], "edges"), ({}, [], "edges"), ({}, [], "sub")]
        shelves.check(sending, {}, [Cut(2), Cut(2), Cut(2)])


@pytest.fixture(scope="module")
def shelves(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelves]:
    with ExitStack() as stack:
        yield Shelves(tmp_path_factory.mktemp("shelves"), stack)


def plain(frontier: Frontier) -> Any:
    """Return a frontier as values: a subgraph's note holds live logs in memory, and lists once reloaded."""
    return msgspec.to_builtins(frontier, enc_hook=list)


def ended(result: RunResult) -> tuple[Any, ...]:
    return result.state, result.stop_reason, [error.message for error in result.errors]


def cut_up(
    plan: Any, pair: tuple[Any, Any], inputs: dict[str, Any], cuts: Sequence[Cut], thread_id: str
) -> list[Told]:
    """Run until the first cut, go on until the next, and so on, as long as there is anything to do."""
    story: list[Told] = []
    for cut in cuts:
        story.append(run_and_reload(plan, pair, None if story else inputs, cut, thread_id))
        if story[-1].reason != "max_steps":
            break
    return story


def run_and_reload(
    plan: Any, pair: tuple[Any, Any], inputs: dict[str, Any] | None, cut: Cut, thread_id: str
) -> Told:
    """Run or resume until `cut`; return all that must be the same on every store."""
    store, reader = pair
    graph = graph_of(plan, store)
    before = reader.load(thread_id)
    options = RunOptions(thread_id=thread_id, max_steps=cut.steps)
    begins = inputs is not None
    result = graph.run_sync(inputs, options) if begins else graph.resume_sync(thread_id, options=options)
    if isinstance(store, WriteBehindStore):
        store.flush()
    head = reader.load(thread_id)
    history = list(reader.history(thread_id))
    state = EMPTY
    for each in reversed(history):
        state = replay(state, each.ops)
        assert each.state == state
        assert reader.load(thread_id, each.id) == each
    assert head is not None
    assert (head.state, head.id) == (result.state, result.checkpoint_id)
    assert before is None or before in history
    # which of two parallel tasks saves first within a superstep is a race; what the superstep comes to is not
    whole = [each for each in history if "." not in each.id]
    kept = [(each.version, each.step, plain(each.frontier), each.ops, each.state) for each in whole]
    return Told(*ended(result), result.steps, kept)


def forked_up(plan: Any, store: Any, thread_id: str, last: Told, *, at: int) -> bool:
    """Fork a thread at one of its checkpoints and go on; whether that comes to where the thread came."""
    graph = graph_of(plan, store)
    whole = [each for each in graph.history(thread_id) if "." not in each.id]  # newest first
    left = at % len(whole)
    has_subgraph = any(ending == "sub" for _, _, ending in plan)
    if left == 0 or (has_subgraph and left < LEAST):
        return True
    fork = graph.fork_sync(whole[left])
    result = graph.resume_sync(fork.thread_id, options=RunOptions(max_steps=left))
    story = [each.state for each in graph.history(fork.thread_id) if "." not in each.id]
    return result.state == last.state and [whole[at].state for at in range(left + 1)] == story


CUTS = st.builds(Cut, st.integers(LEAST, 5), fork=st.integers(0, 9))


@given(plan=plans(), inputs=WRITES, cuts=st.lists(CUTS, min_size=1, max_size=3))
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
def test_two_hundred_random_graphs_come_to_the_same_on_every_store(
    shelves: Shelves, plan: Any, inputs: dict[str, Any], cuts: list[Cut]
) -> None:
    shelves.check(plan, inputs, cuts)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@given(plan=plans(), inputs=WRITES, cuts=st.lists(CUTS, min_size=1, max_size=5))
@settings(deadline=None, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow])
def test_two_thousand_random_graphs_come_to_the_same_on_every_store(
    shelves: Shelves, plan: Any, inputs: dict[str, Any], cuts: list[Cut]
) -> None:
    shelves.check(plan, inputs, cuts)
