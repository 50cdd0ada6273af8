"""Joins: a node waits for several others, as long as they can still come."""

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.graph import (
    END,
    START,
    Graph,
    GraphBuilder,
    GraphBuildError,
    GraphProblem,
    JoinCount,
    MemoryCheckpointStore,
    NodeContext,
    NodeError,
    NodeResult,
    RunOptions,
)
from dialoom.graph.joins import Join, Wait, arrive
from tests.graph.graphs import speakers

ALICE = RunOptions(thread_id="alice")


def branches(wait: Wait, takes: list[str], store: MemoryCheckpointStore | None = None) -> Graph:
    """A start that takes some of the branches a, b -> b2 and c, which join before d."""
    builder = speakers("a", "b", "b2", "c", "d")
    builder.add_conditional_edges(START, lambda _: takes, {name: name for name in "abc"})
    builder.add_edge("b", "b2")
    builder.add_join(["a", "b2", "c"], "d", wait)
    return builder.build(store)


@pytest.mark.parametrize(
    ("wait", "takes", "said"),
    [
        ("reachable", ["a", "b", "c"], ["a", "b", "c", "b2", "d"]),
        ("reachable", ["a"], ["a", "d"]),
        ("reachable", ["b"], ["b", "b2", "d"]),
        ("all", ["a", "b", "c"], ["a", "b", "c", "b2", "d"]),
        ("any", ["a", "b", "c"], ["a", "b", "c", "b2", "d"]),
        ("any", ["b"], ["b", "b2", "d"]),
        (1, ["c"], ["c", "d"]),
        (2, ["a", "b"], ["a", "b", "b2", "d"]),
    ],
)
def test_a_join_runs_its_target_once(wait: Wait, takes: list[str], said: list[str]) -> None:
    """G17: a branch that was not taken is not waited for."""
    result = branches(wait, takes).run_sync()
    assert (result.stop_reason, result.state["said"]) == ("finished", said)


@pytest.mark.parametrize(
    ("wait", "takes", "missing"), [("all", ["a"], "b2, c"), ("all", ["b", "c"], "a"), (2, ["c"], "a, b2")]
)
def test_a_join_that_can_never_have_enough_is_an_error_and_not_silence(
    wait: Wait, takes: list[str], missing: str
) -> None:
    """G17: with wait="all" it is an error."""
    graph = branches(wait, takes, MemoryCheckpointStore())
    stalled = graph.run_sync(None, ALICE)
    message = (
        f"stalled join d: waiting for {missing}, which nothing leads to any more;"
        " use wait='reachable' to go on without"
    )
    assert (stalled.stop_reason, stalled.errors) == ("error", (NodeError(node="d", message=message),))
    assert graph.resume_sync("alice").errors == stalled.errors


def test_declared_as_a_join_branches_of_unequal_length_meet_once_and_with_plain_edges_twice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """G18."""

    def fork() -> GraphBuilder:
        builder = speakers("a", "b", "b2", "c", "d")
        for source, target in ((START, "a"), ("a", "b"), ("a", "c"), ("b", "b2")):
            builder.add_edge(source, target)
        return builder

    joined = fork()
    joined.add_join(["b2", "c"], "d")
    graph = joined.build()
    assert (graph.run_sync().state["said"], graph.warnings) == (["a", "b", "c", "b2", "d"], ())
    plain = fork()
    plain.add_edge("b2", "d")
    plain.add_edge("c", "d")
    with caplog.at_level(logging.WARNING, "dialoom.graph"):
        graph = plain.build()
    assert graph.run_sync().state["said"] == ["a", "b", "c", "b2", "d", "d"]
    warning = GraphProblem(
        "W-MERGE",
        "node 'd'",
        "branches of unequal length from 'a' meet here, so it runs once for each length;"
        " to run it once: add_join(['b2', 'c'], 'd')",
    )
    assert graph.warnings == (warning,)
    assert [record.getMessage() for record in caplog.records] == [f"graph 'speakers': {warning}"]


def test_an_edge_that_skips_a_branch_is_warned_of_and_equal_lengths_and_loops_are_not() -> None:
    skipping = speakers("a", "b", "d")
    for source, target in ((START, "a"), ("a", "b"), ("a", "d"), ("b", "d"), ("d", END)):
        skipping.add_edge(source, target)
    assert [(each.code, each.where) for each in skipping.build().warnings] == [("W-MERGE", "node 'd'")]
    equal = speakers("a", "b", "c", "d")
    for source, target in ((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "a")):
        equal.add_edge(source, target)
    assert equal.build().warnings == ()


def test_a_join_in_a_loop_begins_anew_each_time() -> None:
    builder = speakers("a", "b", "c")
    builder.add_channel("n", default=0)
    builder.add_node("d", lambda ctx: {"said": ["d"], "n": ctx.state["n"] + 1})
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("a", "c")
    builder.add_join(["b", "c"], "d", "all")
    builder.add_conditional_edges("d", lambda state: "a" if state["n"] < 2 else END, {"a": "a", END: END})
    assert builder.build().run_sync().state["said"] == ["a", "b", "c", "d", "a", "b", "c", "d"]


def test_a_join_for_any_takes_those_that_come_later_in_silence_and_then_begins_anew() -> None:
    builder = speakers("fast", "slow", "slower", "d")
    builder.add_channel("n", default=0)
    builder.add_node("again", lambda ctx: {"n": ctx.state["n"] + 1})
    builder.add_edge(START, "fast")
    builder.add_edge(START, "slow")
    builder.add_edge("slow", "slower")
    builder.add_edge("slower", "again")
    builder.add_join(["fast", "slower"], "d", "any")
    builder.add_conditional_edges("again", lambda state: ["fast", "slow"] if state["n"] < 2 else END)
    said = builder.build().run_sync().state["said"]
    assert said == ["fast", "slow", "slower", "d", "fast", "slow", "slower", "d"]


def test_a_source_that_goes_elsewhere_is_not_waited_for() -> None:
    builder = speakers("a", "d", "elsewhere")
    builder.add_node("b", lambda _: NodeResult.ok({"said": ["b"]}, goto="elsewhere"))
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.add_edge("b", "elsewhere")
    builder.add_join(["a", "b"], "d")
    assert builder.build().run_sync().state["said"] == ["a", "b", "d", "elsewhere"]


def test_a_join_waits_for_a_source_that_failed_and_runs_again() -> None:
    broken = [True]

    def shaky(_: NodeContext) -> dict[str, list[str]]:
        if broken:
            raise OSError
        return {"said": ["b"]}

    builder = speakers("a", "d")
    builder.add_node("b", shaky)
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.add_join(["a", "b"], "d", "all")
    store = MemoryCheckpointStore()
    graph = builder.build(store)
    assert graph.run_sync(None, ALICE).stop_reason == "error"
    head = store.load("alice")
    assert head is not None
    assert head.frontier.joins == (JoinCount("d", ("a",)),)
    broken.clear()
    assert graph.resume_sync("alice").state["said"] == ["a", "b", "d"]


def test_joins_that_wait_for_each_other_are_let_go_in_order_and_run_once() -> None:
    builder = speakers("a", "d", "c", "e")
    builder.add_edge(START, "a")
    builder.add_edge(START, "d")
    builder.add_join(["a", "e"], "c")
    builder.add_join(["d", "c"], "e")
    result = builder.build().run_sync()
    assert (result.stop_reason, result.state["said"]) == ("finished", ["a", "d", "c", "e"])


def test_a_join_waits_for_what_another_join_will_lead_to() -> None:
    builder = speakers("a", "b", "c", "d", "e")
    for name in "abd":
        builder.add_edge(START, name)
    builder.add_join(["c", "d"], "e")
    builder.add_join(["a", "b"], "c")
    assert builder.build().run_sync().state["said"] == ["a", "b", "d", "c", "e"]


def test_what_is_wrong_with_a_join_is_named_at_build() -> None:
    builder = speakers("a", "b", "c", "d")
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    wait: Any = 3
    builder.add_join(["a", "nobody"], "c")
    builder.add_join(["a", "a"], "c")
    builder.add_join(["a", "c"], "d", wait)
    builder.add_join(["a"], "b")
    with pytest.raises(GraphBuildError) as refused:
        builder.build()
    assert [(each.code, each.where) for each in refused.value.problems] == [
        ("duplicate-join", "join before 'c'"),
        ("unknown-node", "join before 'c'"),
        ("bad-join", "join before 'c'"),
        ("bad-join", "join before 'd'"),
        ("bad-join", "join before 'b'"),
    ]


@given(
    st.lists(st.lists(st.sampled_from("abc"), max_size=3), min_size=1, max_size=6),
    st.sampled_from(["reachable", "all", "any", 2]),
)
def test_after_the_last_arrival_a_join_has_run_or_says_why_not(rounds: list[list[str]], wait: Wait) -> None:
    feeds = {name: frozenset(name) for name in "abc"}
    joins = {"d": Join("d", ("a", "b", "c"), wait, feeds)}
    counts: tuple[JoinCount, ...] = ()
    came = [name for arrivals in rounds for name in arrivals]
    fires = 0
    for at, arrivals in enumerate(rounds):
        counts, fired, stalled = arrive(
            joins, counts, arrivals, {name for rest in rounds[at + 1 :] for name in rest}
        )
        fires += len(fired)
        assert not stalled or at == len(rounds) - 1 or not any(rounds[at + 1 :])
        if stalled:
            return
    assert bool(fires) == bool(came)
    assert counts == ()
