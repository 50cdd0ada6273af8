"""A thread goes on after its graph has changed, or is told why it cannot."""

from typing import Any

import pytest

from dialoom.base.errors import UsageError
from dialoom.graph import (
    END,
    START,
    Graph,
    GraphBuilder,
    GraphBuildError,
    GraphChangedError,
    MemoryCheckpointStore,
    NodeContext,
    Reducers,
    RunOptions,
    Send,
    StateVersionError,
)
from dialoom.graph.frontier import Frontier, JoinCount, TaskNote
from dialoom.graph.migrate import Migration, migrated
from dialoom.graph.state import State

ALICE = RunOptions(thread_id="alice", max_steps=1)


def first_edition(store: MemoryCheckpointStore) -> Graph:
    """Writes `note` and `said`, then stops before `publish`."""
    builder = GraphBuilder("press")
    builder.add_channel("note", type=str)
    builder.add_channel("said", Reducers.append, type=list[str])
    builder.add_node("write", lambda _: {"note": "draft", "said": ["wrote"]}, blocking=False)
    builder.add_node("publish", lambda _: {"said": ["published"]}, blocking=False)
    builder.add_edge(START, "write")
    builder.add_edge("write", "publish")
    graph = builder.build(store)
    assert graph.run_sync({}, ALICE).stop_reason == "max_steps"
    return graph


def second_edition(name: str = "publish") -> GraphBuilder:
    """Has `notes` where there was `note`, and says that `name` ran."""
    builder = GraphBuilder("press")
    builder.add_channel("notes", Reducers.append, type=list[str])
    builder.add_channel("said", Reducers.append, type=list[str])
    builder.add_node("write", lambda _: None, blocking=False)
    builder.add_node(name, lambda _: {"said": [f"now {name}"]}, blocking=False)
    builder.add_edge(START, "write")
    builder.add_edge("write", name)
    return builder


def gathered(state: dict[str, Any]) -> dict[str, Any]:
    return {"notes": [state.pop("note")], **state}


def test_a_removed_channel_is_forgotten_and_the_thread_goes_on_once() -> None:
    store = MemoryCheckpointStore()
    first_edition(store)
    result = second_edition().build(store).resume_sync("alice")
    assert (result.stop_reason, result.steps) == ("finished", 1)
    assert result.state == {"notes": [], "said": ["wrote", "now publish"]}


def test_a_renamed_node_without_a_migration_is_refused_with_both_fingerprints() -> None:
    store = MemoryCheckpointStore()
    old = first_edition(store)
    new = second_edition("print").build(store)
    with pytest.raises(GraphChangedError) as refused:
        new.resume_sync("alice")
    assert (refused.value.node, refused.value.made_by) == ("publish", old.fingerprint)
    assert refused.value.resumed_by == new.fingerprint
    assert [checkpoint.version for checkpoint in new.history("alice")] == [2, 1]


def test_a_migration_moves_the_state_and_renames_nodes() -> None:
    store = MemoryCheckpointStore()
    first_edition(store)
    builder = second_edition("print")
    builder.migrate(gathered, from_=1, to=2, nodes={"publish": "print"})
    graph = builder.build(store)
    result = graph.resume_sync("alice")
    assert result.state == {"notes": ["draft"], "said": ["wrote", "now print"]}
    assert [
        (checkpoint.state_version, checkpoint.step, checkpoint.frontier.ready)
        for checkpoint in graph.history("alice")
    ] == [(2, 1, ()), (2, 0, ("print",)), (1, 1, ("publish",)), (1, 0, ("write",))]


def test_what_a_migration_made_is_in_the_store_and_not_made_again() -> None:
    store = MemoryCheckpointStore()
    first_edition(store)
    builder = second_edition()
    builder.migrate(gathered, from_=1, to=2)
    graph = builder.build(store)
    live = graph.resume_sync("alice").state
    loaded = store.load("alice")
    assert loaded is not None
    assert {name: loaded.state[name] for name in live} == live
    again = graph.run_sync({"said": ["again"]}, RunOptions(thread_id="alice"))
    assert again.state == {"notes": ["draft"], "said": ["wrote", "now publish", "again", "now publish"]}


def test_a_new_run_on_an_old_thread_migrates_too() -> None:
    store = MemoryCheckpointStore()
    first_edition(store)
    builder = second_edition()
    builder.migrate(gathered, from_=1, to=2)
    result = builder.build(store).run_sync({"notes": ["more"]}, RunOptions(thread_id="alice"))
    assert result.state["notes"] == ["draft", "more"]


def test_migrations_are_followed_one_after_another() -> None:
    store = MemoryCheckpointStore()
    first_edition(store)
    builder = second_edition("print")
    builder.migrate(from_=1, to=2, nodes={"publish": "issue"})
    builder.migrate(gathered, from_=2, to=5, nodes={"issue": "print"})
    result = builder.build(store).resume_sync("alice")
    assert result.state == {"notes": ["draft"], "said": ["wrote", "now print"]}


def test_state_of_a_version_that_leads_nowhere_is_refused() -> None:
    store = MemoryCheckpointStore()
    first_edition(store)
    builder = second_edition()
    builder.migrate(gathered, from_=2, to=3)
    with pytest.raises(StateVersionError, match=r"state of version 1 .* is at 3; add migrate\(from_=1, to="):
        builder.build(store).resume_sync("alice")
    builder = second_edition()
    builder.migrate(gathered, from_=1, to=2)
    builder.build(store).resume_sync("alice")
    with pytest.raises(StateVersionError, match=r"state of version 2 .* is at 1; resume it with the newer"):
        second_edition().build(store).resume_sync("alice")


def test_a_migration_that_fails_changes_nothing_and_says_which_it_is() -> None:
    store = MemoryCheckpointStore()
    old = first_edition(store)
    builder = second_edition()
    builder.migrate(lambda state: {"notes": state["no such channel"]}, from_=1, to=2)
    with pytest.raises(
        UsageError, match="migration of the state from version 1 to 2 failed: KeyError: 'no such channel'"
    ):
        builder.build(store).resume_sync("alice")
    assert old.resume_sync("alice").state["said"] == ["wrote", "published"]


def test_an_input_that_does_not_fit_leaves_the_migration_uncommitted() -> None:
    store = MemoryCheckpointStore()
    first_edition(store)
    builder = second_edition()
    builder.migrate(gathered, from_=1, to=2)
    graph = builder.build(store)
    assert graph.resume_sync("alice", inputs={"typo": 1}).stop_reason == "error"
    assert [checkpoint.version for checkpoint in graph.history("alice")] == [2, 1]


def test_migrations_that_cannot_be_followed_are_problems_of_the_graph() -> None:
    builder = second_edition()
    builder.migrate(from_=2, to=2)
    builder.migrate(from_=1, to=3)
    builder.migrate(from_=1, to=4)
    with pytest.raises(GraphBuildError) as refused:
        builder.build()
    assert [(problem.code, problem.where, problem.message) for problem in refused.value.problems] == [
        (
            "bad-migration",
            "migration 2 -> 2",
            "versions count from 1, and it must lead to a later one",
        ),
        ("bad-migration", "migration 1 -> 4", "another one leaves version 1; keep one"),
        ("bad-migration", "migrations", "no migration leaves version 3; add one"),
    ]


def test_every_place_a_frontier_names_a_node_is_renamed() -> None:
    def at(name: str) -> Frontier:
        return Frontier(
            ready=(name, "other"),
            deferred=(name,),
            unrouted=(START, name),
            sends=(Send(name, 1, 0),),
            deferred_sends=(Send(name, 2),),
            joins=(JoinCount(name, (name, "other")),),
            notes=(TaskNote(node=name),),
        )

    step = Migration(1, 2, None, {"old": "new"})
    moved = migrated("g", [step], 1, state=State(a=1), frontier=at("old"))
    assert (moved.state, moved.frontier) == ({"a": 1}, at("new"))


def test_a_graph_without_migrations_has_state_of_version_one() -> None:
    store = MemoryCheckpointStore()
    builder = GraphBuilder("plain")

    def node(_: NodeContext) -> None: ...

    builder.add_node("a", node)
    builder.add_edge(START, "a")
    builder.add_edge("a", END)
    builder.build(store).run_sync({}, RunOptions(thread_id="t"))
    assert [checkpoint.state_version for checkpoint in store.history("t")] == [1, 1]
