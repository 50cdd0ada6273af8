"""What users of other engines complain of: cases G1 to G28, each with a test, here or where it belongs."""

import asyncio
import random
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from dialoom.graph import (
    END,
    START,
    Graph,
    GraphBuilder,
    MemoryCheckpointStore,
    NodeContext,
    Reducers,
    RunOptions,
)
from dialoom.stores.sqlite_checkpoints import SqliteCheckpointStore
from dialoom.testing import ManualClock
from dialoom.testing.clock import settle
from dialoom.testing.faults import FAULT_POINTS, Faults, FaultyCheckpointStore
from tests.graph.graphs import PATIENCE, line, saying, speakers, wait_for

CASES = (1, 2, 4, 5, 7, 9, 10, 12, 13, 14, 15, 17, 18, 20, 21, 22, 23, 24, 25, 27, 28)
ALICE = RunOptions(thread_id="alice")


def test_every_case_has_a_test_that_names_it() -> None:
    told = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    named = {int(number) for number in re.findall(r'"""G(\d+)[:.]', told)}
    assert named == set(CASES)


def appending(path: Path, messages: int) -> int:
    """Return the bytes of a thread to which each superstep appends a message of 160 characters."""
    builder = GraphBuilder("talk")
    builder.add_channel("said", Reducers.append, type=list[dict[str, str]])
    builder.add_node("say", lambda _: {"said": [{"role": "user", "content": "x" * 140}]})
    builder.add_edge(START, "say")
    builder.add_conditional_edges("say", lambda state: "say" if len(state["said"]) < messages else END)
    options = RunOptions(thread_id="alice", max_steps=messages)
    with SqliteCheckpointStore(path, synchronous="normal") as store:
        assert len(builder.build(store).run_sync(None, options).state["said"]) == messages
        store.compact()
    return path.stat().st_size


def test_a_thread_on_disk_grows_with_what_was_said(tmp_path: Path) -> None:
    """G1: 2,000 supersteps in under 2 MB, and twice as many in about twice the space."""
    half, whole = appending(tmp_path / "half", 1_000), appending(tmp_path / "whole", 2_000)
    assert whole < 2_000_000
    assert whole <= 2.2 * half


@pytest.mark.parametrize("first", ["reset", "add"])
def test_a_reset_and_an_addition_of_one_superstep_come_in_the_order_of_their_nodes(first: str) -> None:
    """G4: a node clears a channel, a sibling adds to it: the order of adding, live and after a reload."""
    builder = GraphBuilder("reset")
    builder.add_channel(
        "said", Reducers.custom(lambda old, new: [] if new is None else [*old, *new]), default=["old"]
    )
    nodes = {"reset": lambda _: {"said": None}, "add": lambda _: {"said": ["x"]}}
    for name in (first, *(other for other in nodes if other != first)):
        builder.add_node(name, nodes[name])
        builder.add_edge(START, name)
    store = MemoryCheckpointStore()
    result = builder.build(store).run_sync(None, ALICE)
    head = store.load("alice")
    assert head is not None
    assert result.state == head.state == {"said": ["x"] if first == "reset" else []}


@pytest.mark.parametrize("seed", range(20))
def test_sixty_four_nodes_and_a_fault_have_one_outcome(seed: int, tmp_path: Path) -> None:
    """G5: faults at random commits; only an effect whose keeping was what failed happens again."""
    chance, effects, broken = random.Random(seed), Counter[str](), 0
    names = [f"n{at}" for at in range(64)]

    def paying(name: str) -> Any:
        def node(ctx: NodeContext) -> dict[str, list[str]]:
            return {"said": [ctx.once("pay", lambda: effects.update([name]) or name)]}

        return node

    builder = speakers()
    for name in names:
        builder.add_node(name, paying(name), blocking=False)
        builder.add_edge(START, name)
    with SqliteCheckpointStore(tmp_path / "threads", synchronous="normal") as store:
        for _ in range(20):
            faults = Faults()
            faults.fail(chance.choice(FAULT_POINTS[:2]), time=chance.randint(1, 66))
            graph = builder.build(FaultyCheckpointStore(store, faults))
            result = graph.resume_sync("alice") if list(store.threads()) else graph.run_sync(None, ALICE)
            if result.stop_reason == "finished":
                break
            broken += 1
        history = list(store.history("alice"))
    # a node whose effect could not be kept failed, so what it says comes later, but once
    assert Counter(result.state["said"]) == Counter(names)
    assert history[0].state == result.state
    assert [each.version for each in history] == list(range(len(history), 0, -1))
    assert set(effects) == set(names)
    assert effects.total() - len(names) <= broken


def test_written_to_as_the_node_before_it_a_subgraph_is_what_comes_next() -> None:
    """G12: `update_state(as_node="a")` of a -> sub -> b leaves sub next, and it begins anew."""
    runs: list[str] = []

    def noted(name: str) -> Any:
        return lambda _: runs.append(name) or {"said": [name]}

    child, builder = speakers(), speakers()
    child.add_node("x", noted("x"))
    child.add_edge(START, "x")
    builder.add_node("a", noted("a"))
    builder.add_subgraph("sub", child.build())
    builder.add_node("b", noted("b"))
    for source, target in ((START, "a"), ("a", "sub"), ("sub", "b")):
        builder.add_edge(source, target)
    graph = builder.build(MemoryCheckpointStore())
    graph.run_sync(None, ALICE)
    runs.clear()
    updated = graph.update_state_sync("alice", {"said": ["edited"]}, as_node="a")
    assert updated.frontier.nodes == ("sub",)
    result = graph.resume_sync("alice")
    assert (runs, result.state["said"]) == (["x", "b"], ["a", "x", "b", "edited", "x", "b"])
    assert next(graph.history("alice")).id == result.checkpoint_id


async def test_a_cancel_scope_of_anyio_ends_a_nested_graph_and_its_thread_goes_on_later() -> None:
    """G14: no tick after the scope is left, no orphan task, and the thread can be resumed."""
    clock, ticks, through = ManualClock(), list[int](), asyncio.Event()

    async def ticking(_: NodeContext) -> dict[str, list[str]]:
        while not through.is_set():
            await clock.sleep(0.05)
            ticks.append(1)
        return {"said": ["through"]}

    inner, outer = speakers(), speakers()
    inner.add_node("tick", ticking)
    inner.add_edge(START, "tick")
    outer.add_subgraph("sub", inner.build())
    outer.add_edge(START, "sub")
    graph = outer.build(MemoryCheckpointStore(), clock=clock)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(graph.run, None, ALICE)
            await settle()
            await clock.advance(0.1)
            scope.cancel()
    assert (scope.cancelled_caught, len(ticks)) == (True, 2)
    await clock.advance(1)
    assert (len(ticks), clock.sleeping, asyncio.all_tasks()) == (2, 0, {asyncio.current_task()})
    through.set()
    assert (await graph.resume("alice")).state == {"said": ["through"]}


def test_a_worker_that_lost_its_thread_to_another_commits_nothing(tmp_path: Path) -> None:
    """G28: while its node runs, another process takes the thread over; the late commit is refused."""
    begun, release, results = threading.Event(), threading.Event(), list[Any]()

    def graph_of(store: SqliteCheckpointStore, node: Any) -> Graph:
        builder = speakers("a")
        builder.add_node("slow", node)
        builder.add_edge(START, "a")
        builder.add_edge("a", "slow")
        return builder.build(store)

    def slow(_: NodeContext) -> dict[str, list[str]]:
        begun.set()
        wait_for(release)
        return {"said": ["late"]}

    path = tmp_path / "threads"
    with SqliteCheckpointStore(path) as mine, SqliteCheckpointStore(path) as theirs:
        worker = threading.Thread(target=lambda: results.append(graph_of(mine, slow).run_sync(None, ALICE)))
        worker.start()
        assert begun.wait(PATIENCE)
        assert graph_of(theirs, saying("theirs")).resume_sync("alice").stop_reason == "finished"
        release.set()
        worker.join(PATIENCE)
        (result,) = results
        assert (result.stop_reason, result.state["said"]) == ("conflict", ["a"])
        assert "thread 'alice' is at version 3, so another run was first" in result.errors[0].message
        head = mine.load("alice")
        assert head is not None
        assert (head.version, head.state) == (3, {"said": ["a", "theirs"]})


@pytest.mark.parametrize("name", ["a,b", "a/b", "a#1", "a[0]"])
def test_names_may_hold_what_separates_names_elsewhere(name: str) -> None:
    store = MemoryCheckpointStore()
    graph = line(name, "b", store=store)
    assert graph.run_sync(None, ALICE).state == {"said": [name, "b"]}
