"""Threads: what is kept, resumed, branched, refused."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dialoom.base.errors import StoreError, UsageError
from dialoom.graph import (
    END,
    START,
    Checkpoint,
    Frontier,
    Graph,
    GraphBuilder,
    GraphChangedError,
    MemoryCheckpointStore,
    NodeContext,
    NodeResult,
    Op,
    Reducers,
    RunFailedError,
    RunOptions,
    RunResult,
)
from dialoom.testing import ManualClock
from tests.graph.graphs import PATIENCE, counter, line, speakers

ALICE = RunOptions(thread_id="alice")


@pytest.mark.promise("graph-016", "graph-119", "graph-122")
def test_the_input_and_every_superstep_are_checkpoints() -> None:
    store = MemoryCheckpointStore()
    builder = speakers("a", "b")
    builder.add_channel("n", default=0)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    graph = builder.build(store, clock=ManualClock(100.0))
    result = graph.run_sync({"said": ["hi"]}, ALICE)
    rest = {"thread_id": "alice", "run_id": result.run_id, "created": 100.0, "fingerprint": graph.fingerprint}
    first, second, third = (f"{result.run_id}:{step}" for step in range(3))
    assert list(graph.history("alice")) == [
        Checkpoint(
            id=third,
            version=3,
            parent_id=second,
            step=2,
            frontier=Frontier(),
            ops=(Op("said", "extend", ["b"]),),
            state={"said": ["hi", "a", "b"], "n": 0},  # type: ignore[arg-type]
            **rest,  # type: ignore[arg-type]
        ),
        Checkpoint(
            id=second,
            version=2,
            parent_id=first,
            step=1,
            frontier=Frontier(("b",)),
            ops=(Op("said", "extend", ["a"]),),
            state={"said": ["hi", "a"], "n": 0},  # type: ignore[arg-type]
            **rest,  # type: ignore[arg-type]
        ),
        Checkpoint(
            id=first,
            version=1,
            parent_id=None,
            step=0,
            frontier=Frontier(("a",)),
            ops=(Op("said", "extend", []), Op("n", "set", 0), Op("said", "extend", ["hi"])),
            state={"said": ["hi"], "n": 0},  # type: ignore[arg-type]
            **rest,  # type: ignore[arg-type]
        ),
    ]
    assert result.checkpoint_id == third


@pytest.mark.promise("graph-017", "graph-018")
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_run_goes_on_from_any_of_its_checkpoints(version: int) -> None:
    graph = counter(MemoryCheckpointStore(), until=4)
    whole = graph.run_sync(None, ALICE)
    checkpoint = next(kept for kept in graph.history("alice") if kept.version == version)
    resumed = graph.resume_sync(checkpoint)
    assert (resumed.stop_reason, resumed.state) == ("finished", whole.state)
    assert (resumed.steps, resumed.thread_id) == (5 - version, "alice")
    head = next(graph.history("alice"))
    assert (head.version, head.state) == (5 + resumed.steps, {"n": 4})


def test_a_branch_follows_the_checkpoint_it_came_from_and_moves_the_head() -> None:
    graph = line("a", "b", store=MemoryCheckpointStore())
    graph.run_sync({"said": ["x"]}, ALICE)
    first = list(graph.history("alice"))[-1]
    graph.resume_sync(first, inputs={"said": ["y"]})
    newest, *_ = graph.history("alice")
    assert newest.state == {"said": ["x", "y", "a", "b"]}
    assert [kept.parent_id for kept in graph.history("alice")][:3] == [
        f"{newest.run_id}:1",
        f"{newest.run_id}:0",
        first.id,
    ]


def test_a_thread_that_was_stopped_goes_on_where_it_stands() -> None:
    graph = counter(MemoryCheckpointStore(), until=5)
    assert graph.run_sync(None, RunOptions(thread_id="alice", max_steps=2)).state == {"n": 2}
    resumed = graph.resume_sync("alice")
    assert (resumed.state, resumed.steps) == ({"n": 5}, 3)


def test_resuming_a_finished_thread_does_nothing_and_keeps_nothing() -> None:
    graph = counter(MemoryCheckpointStore())
    done = graph.run_sync(None, ALICE)
    again = graph.resume_sync("alice")
    assert (again.stop_reason, again.steps, again.state) == ("finished", 0, done.state)
    assert again.checkpoint_id == done.checkpoint_id
    assert len(list(graph.history("alice"))) == 6


@pytest.mark.parametrize("again", ["run", "resume"])
def test_new_input_continues_a_finished_thread(again: str) -> None:
    graph = line("a", store=MemoryCheckpointStore())
    graph.run_sync({"said": ["one"]}, ALICE)
    if again == "run":
        result = graph.run_sync({"said": ["two"]}, ALICE)
    else:
        result = graph.resume_sync("alice", inputs={"said": ["two"]})
    assert result.state == {"said": ["one", "a", "two", "a"]}


def test_input_for_an_unfinished_thread_comes_in_where_it_stands() -> None:
    graph = line("a", "b", store=MemoryCheckpointStore())
    graph.run_sync(None, RunOptions(thread_id="alice", max_steps=1))
    assert graph.resume_sync("alice", inputs={"said": ["now"]}).state == {"said": ["a", "now", "b"]}


def test_a_new_run_on_an_unfinished_thread_enters_at_start() -> None:
    graph = line("a", "b", store=MemoryCheckpointStore())
    graph.run_sync(None, RunOptions(thread_id="alice", max_steps=1))
    assert graph.run_sync(None, ALICE).state == {"said": ["a", "a", "b"]}


@pytest.mark.promise("graph-026")
def test_a_failed_node_runs_again_and_its_siblings_do_not() -> None:
    runs: list[str] = []
    builder = speakers("join")

    def flaky(ctx: NodeContext) -> Any:
        runs.append(ctx.node)
        return NodeResult.fail("once") if runs.count("flaky") == 1 else {"said": ["flaky"]}

    def steady(ctx: NodeContext) -> Any:
        runs.append(ctx.node)
        return {"said": ["steady"]}

    builder.add_node("flaky", flaky)
    builder.add_node("steady", steady)
    for name in ("flaky", "steady"):
        builder.add_edge(START, name)
        builder.add_edge(name, "join")
    graph = builder.build(MemoryCheckpointStore())
    failed = graph.run_sync(None, ALICE)
    assert (failed.stop_reason, failed.state) == ("error", {"said": ["steady"]})
    assert next(graph.history("alice")).frontier == Frontier(("flaky",), ("join",))
    assert graph.resume_sync("alice").state == {"said": ["steady", "flaky", "join"]}
    assert (runs.count("steady"), runs.count("flaky")) == (1, 2)


def test_a_failure_in_the_first_superstep_is_resumable_from_the_input() -> None:
    attempts: list[int] = []

    def flaky(_: NodeContext) -> Any:
        attempts.append(1)
        return NodeResult.fail("once") if len(attempts) == 1 else {"said": ["done"]}

    builder = speakers()
    builder.add_node("flaky", flaky)
    builder.add_edge(START, "flaky")
    graph = builder.build(MemoryCheckpointStore())
    assert graph.run_sync({"said": ["hi"]}, ALICE).stop_reason == "error"
    assert graph.resume_sync("alice").state == {"said": ["hi", "done"]}


def test_two_failures_one_after_the_other_lose_nothing_of_what_waits() -> None:
    broken = {"a", "b"}
    builder = speakers("next", "last")

    def flaky(ctx: NodeContext) -> Any:
        return NodeResult.fail("broken") if ctx.node in broken else {"said": [ctx.node]}

    for name, follower in (("a", "next"), ("b", "last"), ("c", "last")):
        builder.add_node(name, flaky)
        builder.add_edge(START, name)
        builder.add_edge(name, follower)
    graph = builder.build(MemoryCheckpointStore())
    graph.run_sync(None, ALICE)
    broken.discard("a")
    assert graph.resume_sync("alice").stop_reason == "error"
    assert next(graph.history("alice")).frontier == Frontier(("b",), ("next", "last"))
    broken.clear()
    assert graph.resume_sync("alice").state == {"said": ["c", "a", "b", "next", "last"]}


def test_a_broken_conditional_edge_is_asked_again_and_its_node_is_not() -> None:
    answers, runs = iter(["nowhere", "b"]), []
    builder = speakers("b", "c")
    builder.add_node("a", lambda _: runs.append("a") or {"said": ["a"]})
    builder.add_node("beside", lambda _: {"said": ["beside"]})
    builder.add_edge(START, "a")
    builder.add_edge(START, "beside")
    builder.add_edge("beside", "c")
    builder.add_conditional_edges("a", lambda _: next(answers))
    graph = builder.build(MemoryCheckpointStore())
    failed = graph.run_sync(None, ALICE)
    assert failed.errors[0].message.startswith("the conditional edge answered 'nowhere'")
    assert next(graph.history("alice")).frontier == Frontier((), ("c",), ("a",))
    assert graph.resume_sync("alice").state == {"said": ["a", "beside", "b", "c"]}
    assert runs == ["a"]


def test_a_conditional_edge_that_stays_broken_stays_an_error() -> None:
    builder = speakers("a")
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", lambda _: "nowhere")
    graph = builder.build(MemoryCheckpointStore())
    graph.run_sync(None, ALICE)
    again = graph.resume_sync("alice")
    assert (again.stop_reason, again.steps, again.errors[0].node) == ("error", 0, "a")
    assert again.state == {"said": ["a"]}


@pytest.mark.promise("graph-080", "graph-081", "graph-082", "graph-084", "graph-085", "graph-088")
def test_threads_leave_each_other_alone() -> None:
    store = MemoryCheckpointStore()
    graph = line("a", store=store)
    for thread in ("bob", "alice", "bob"):
        result = graph.run_sync({"said": [thread]}, RunOptions(thread_id=thread))
        assert result.thread_id == thread
    assert list(store.threads()) == ["alice", "bob"]
    assert {kept.thread_id for kept in graph.history("alice")} == {"alice"}
    assert next(graph.history("alice")).state == {"said": ["alice", "a"]}
    assert next(graph.history("bob")).state == {"said": ["bob", "a", "bob", "a"]}


def test_a_run_without_a_thread_is_a_thread_of_its_own() -> None:
    graph = counter(MemoryCheckpointStore(), until=3)
    one = graph.run_sync(None, RunOptions(max_steps=1))
    other = graph.run_sync()
    assert one.thread_id == one.run_id != other.thread_id
    assert graph.resume_sync(one.thread_id).state == {"n": 3}


@pytest.mark.promise("graph-087")
def test_a_resume_keeps_the_thread_of_its_checkpoint() -> None:
    graph = counter(MemoryCheckpointStore())
    graph.run_sync(None, RunOptions(thread_id="alice", max_steps=1))
    checkpoint = next(graph.history("alice"))
    assert graph.resume_sync(checkpoint).thread_id == "alice"
    assert graph.resume_sync(checkpoint, options=ALICE).thread_id == "alice"
    with pytest.raises(UsageError, match="asked to resume thread 'alice' as thread 'bob'; name one of them"):
        graph.resume_sync(checkpoint, options=RunOptions(thread_id="bob"))


def test_there_must_be_something_to_resume() -> None:
    with pytest.raises(UsageError, match="there is no thread 'alice' to resume; begin it with run"):
        counter(MemoryCheckpointStore()).resume_sync("alice")
    with pytest.raises(UsageError, match=r"graph 'counter' keeps no checkpoints; build it with build\(store"):
        counter().resume_sync("alice")
    with pytest.raises(UsageError, match="graph 'counter' keeps no checkpoints"):
        counter().history("alice")


def test_a_checkpoint_resumes_without_a_store_too() -> None:
    kept = counter(MemoryCheckpointStore(), until=3)
    kept.run_sync(None, RunOptions(thread_id="alice", max_steps=1))
    result = counter(until=3).resume_sync(next(kept.history("alice")))
    assert (result.state, result.thread_id) == ({"n": 3}, "alice")


@pytest.mark.promise("graph-124")
def test_a_graph_built_again_resumes_what_its_twin_left() -> None:
    store = MemoryCheckpointStore()
    line("a", "b", store=store).run_sync(None, RunOptions(thread_id="alice", max_steps=1))
    assert line("a", "b", store=store).resume_sync("alice").state == {"said": ["a", "b"]}


def test_a_graph_without_the_node_a_thread_waits_for_says_so() -> None:
    """G13: a node that was renamed without a migration."""
    store = MemoryCheckpointStore()
    old = line("a", "b", store=store)
    old.run_sync(None, RunOptions(thread_id="alice", max_steps=1))
    new = line("a", "c", store=store)
    with pytest.raises(GraphChangedError) as changed:
        new.resume_sync("alice")
    assert (changed.value.node, changed.value.made_by, changed.value.resumed_by) == (
        "b",
        old.fingerprint,
        new.fingerprint,
    )
    assert str(changed.value) == (
        f"the checkpoint was made by graph {old.fingerprint} and waits for node 'b', which is not in graph"
        f" {new.fingerprint}; resume it with the graph that made it, or begin a new run"
    )
    assert new.run_sync(None, ALICE).state == {"said": ["a", "a", "c"]}


def two_versions(change: Callable[[GraphBuilder], None], store: MemoryCheckpointStore) -> Graph:
    builder = GraphBuilder("versions")
    builder.add_node("stop", lambda _: NodeResult.ok(halt=True))
    builder.add_edge(START, "stop")
    builder.add_node("go", lambda ctx: {"seen": dict(ctx.state)})
    builder.add_edge("stop", "go")
    change(builder)
    return builder.build(store)


def test_a_channel_that_is_no_longer_there_is_left_out_and_a_new_one_has_its_default() -> None:
    """G13: a channel that was removed."""
    store = MemoryCheckpointStore()

    def old(builder: GraphBuilder) -> None:
        builder.add_channel("seen")
        builder.add_channel("note", default="gone")

    def new(builder: GraphBuilder) -> None:
        builder.add_channel("seen")
        builder.add_channel("fresh", default="new")
        builder.add_channel("list", Reducers.append, default=["x"])

    two_versions(old, store).run_sync(None, ALICE)
    graph = two_versions(new, store)
    result = graph.resume_sync("alice")
    assert result.state["seen"] == {"fresh": "new", "list": ["x"]}
    head = store.load("alice")
    assert head is not None
    assert head.state == {"note": "gone", **result.state}


@pytest.mark.parametrize(
    ("old", "new", "first", "second", "both"),
    [
        (Reducers.overwrite, Reducers.append, [1], [2], [1, 2]),
        (Reducers.append, Reducers.overwrite, [1], [2], [2]),
        (Reducers.append, Reducers.custom(lambda old, new: [*old, *new]), [1], [2], [1, 2]),
        (Reducers.overwrite, Reducers.merge, {"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
    ],
)
def test_a_channel_that_changed_its_reducer_keeps_what_it_held(
    old: Any, new: Any, first: Any, second: Any, both: Any
) -> None:
    """G4: nothing is lost when a channel changes its kind."""
    store = MemoryCheckpointStore()

    def build(reducer: Any) -> Graph:
        builder = GraphBuilder("changing")
        builder.add_channel("cell", reducer)
        builder.add_node("nothing", lambda _: None)
        builder.add_edge(START, "nothing")
        return builder.build(store)

    build(old).run_sync({"cell": first}, ALICE)
    result = build(new).run_sync({"cell": second}, ALICE)
    assert result.state == {"cell": both}
    head = store.load("alice")
    assert head is not None
    assert head.state == result.state


@pytest.mark.parametrize(
    ("reducer", "reason"),
    [(Reducers.append, "cannot be appended to"), (Reducers.merge, "cannot be merged into")],
)
def test_a_new_reducer_that_cannot_take_what_is_there_is_refused(reducer: Any, reason: str) -> None:
    store = MemoryCheckpointStore()
    builder = GraphBuilder("text")
    builder.add_channel("cell", default="text")
    builder.add_node("nothing", lambda _: None)
    builder.add_edge(START, "nothing")
    builder.build(store).run_sync(None, ALICE)
    builder = GraphBuilder("other")
    builder.add_channel("cell", reducer)
    builder.add_node("nothing", lambda _: None)
    builder.add_edge(START, "nothing")
    written = [1] if reducer is Reducers.append else {"a": 1}
    result = builder.build(store).run_sync({"cell": written}, ALICE)
    assert result.errors[0].message == f"write to channel 'cell' refused: it holds str, which {reason}"


def test_two_runs_from_one_checkpoint_do_not_share_what_they_append() -> None:
    graph = line("a", "b", store=MemoryCheckpointStore())
    graph.run_sync({"said": ["x"]}, RunOptions(thread_id="alice", max_steps=1))
    checkpoint = next(graph.history("alice"))
    apart = line("a", "b")
    results = [apart.resume_sync(checkpoint, inputs={"said": [word]}) for word in ("one", "two")]
    assert [result.state["said"] for result in results] == [["x", "a", "one", "b"], ["x", "a", "two", "b"]]
    assert checkpoint.state == {"said": ["x", "a"]}


def test_of_two_runs_on_one_thread_the_second_to_commit_ends_as_a_conflict() -> None:
    both = threading.Barrier(2, timeout=PATIENCE)
    builder = speakers("first")
    builder.add_node("meet", lambda ctx: both.wait() >= 0 and {"said": [ctx.run_id]})
    builder.add_edge(START, "first")
    builder.add_edge("first", "meet")
    store = MemoryCheckpointStore()
    # built twice, as in two processes: one graph would not let its second run begin
    graph, twin = builder.build(store), builder.build(store)
    graph.run_sync(None, RunOptions(thread_id="alice", max_steps=1))
    results: list[RunResult] = []
    threads = [
        threading.Thread(target=lambda each=each: results.append(each.resume_sync("alice")))
        for each in (graph, twin)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    won, lost = sorted(results, key=lambda result: result.stop_reason != "finished")
    assert (won.stop_reason, lost.stop_reason) == ("finished", "conflict")
    assert lost.state == {"said": ["first"]}
    assert lost.errors[0].message == (
        "could not save the checkpoint: ConflictError: thread 'alice' is at version 3,"
        " so another run was first; load it again, then decide"
    )
    assert next(graph.history("alice")).state == {"said": ["first", won.run_id]}
    with pytest.raises(RunFailedError, match="could not save the checkpoint"):
        lost.raise_for_error()


class Failing:
    """A store that fails on demand."""

    blocking = True

    def __init__(self) -> None:
        self.kept = MemoryCheckpointStore()
        self.refuse: set[str] = set()

    def save(self, checkpoint: Checkpoint) -> None:
        self._check(f"save {checkpoint.step}")
        self.kept.save(checkpoint)

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Checkpoint | None:
        self._check("load")
        return self.kept.load(thread_id, checkpoint_id)

    def history(self, thread_id: str) -> Iterator[Checkpoint]:
        return self.kept.history(thread_id)

    def threads(self) -> Iterator[str]:
        return self.kept.threads()

    def erase_thread(self, thread_id: str) -> None:
        self.kept.erase_thread(thread_id)

    def _check(self, call: str) -> None:
        if call in self.refuse:
            raise StoreError(f"disk full at {call}")


@pytest.mark.promise("graph-120")
async def test_a_store_of_ones_own_gets_every_checkpoint_also_when_it_blocks() -> None:
    store = Failing()
    result = await counter(store, until=3).run(None, ALICE)
    assert result.state == {"n": 3}
    assert [kept.state for kept in store.history("alice")] == [{"n": 3}, {"n": 2}, {"n": 1}, {"n": 0}]


async def test_a_superstep_that_could_not_be_saved_did_not_happen() -> None:
    store = Failing()
    store.refuse.add("save 2")
    result = await counter(store, until=3).run(None, ALICE)
    assert (result.stop_reason, result.state, result.steps) == ("error", {"n": 1}, 1)
    (error,) = result.errors
    assert (error.node, error.message) == (
        "",
        "could not save the checkpoint: StoreError: disk full at save 2",
    )
    store.refuse.clear()
    assert (await counter(store, until=3).resume("alice")).state == {"n": 3}


def test_errors_of_nodes_are_not_lost_when_the_store_fails_too() -> None:
    store = Failing()
    store.refuse.add("save 1")
    builder = speakers("fine")
    builder.add_node("bad", lambda _: NodeResult.fail("no luck"))
    builder.add_edge(START, "fine")
    builder.add_edge(START, "bad")
    result = builder.build(store).run_sync()
    assert [error.node for error in result.errors] == ["bad", ""]


def test_a_thread_that_cannot_be_read_is_an_error_of_the_run() -> None:
    store = Failing()
    store.refuse.add("load")
    result = counter(store).run_sync(None, ALICE)
    assert (result.stop_reason, result.state, result.steps) == ("error", {}, 0)
    assert result.errors[0].message.startswith("could not read the thread: ")
    assert counter(store).resume_sync("alice").stop_reason == "error"


def test_input_that_cannot_be_saved_begins_nothing() -> None:
    store, ran = Failing(), []
    store.refuse.add("save 0")
    builder = GraphBuilder("careful")
    builder.add_node("a", lambda _: ran.append("a"))
    builder.add_edge(START, "a")
    builder.add_edge("a", END)
    assert builder.build(store).run_sync(None, ALICE).stop_reason == "error"
    assert ran == []
