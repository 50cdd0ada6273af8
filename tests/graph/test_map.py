"""A map runs one node over the items of a channel: bounded, in order, with a policy for each failure."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from dialoom.graph import (
    START,
    Chunk,
    Graph,
    GraphBuilder,
    GraphBuildError,
    MemoryCheckpointStore,
    NodeBegin,
    NodeContext,
    NodeResult,
    Reducers,
    ResumeCommand,
    Retry,
    RetryPolicy,
    RunControl,
    RunOptions,
    RunResult,
    Send,
)
from tests.graph.graphs import PATIENCE, Heard

ALICE = RunOptions(thread_id="alice")
BOTH = pytest.mark.parametrize(
    "how", [Graph.run_sync, lambda graph, *given: asyncio.run(graph.run(*given))], ids=["sync", "async"]
)
How = Callable[..., RunResult]


def scoring(node: Any, heard: Heard | None = None, **choices: Any) -> Graph:
    builder = GraphBuilder("scoring")
    builder.add_channel("items")
    builder.add_channel("scores")
    builder.add_map("score", node, over="items", into="scores", **choices)
    builder.add_edge(START, "score")
    return builder.build(MemoryCheckpointStore(), [heard] if heard else [])


@pytest.mark.promise("graph-005")
@BOTH
@pytest.mark.parametrize("limit", [1, 2, 7, 64])
def test_every_item_runs_exactly_once_and_results_keep_their_order(how: How, limit: int) -> None:
    """G21: at any concurrency."""
    runs: Counter[int] = Counter()

    def square(ctx: NodeContext) -> int:
        runs[ctx.input] += 1
        assert ctx.item == ctx.input
        return ctx.input**2

    result = how(scoring(square, max_concurrency=limit), {"items": list(range(20))})
    assert result.state["scores"] == [number**2 for number in range(20)]
    assert runs == dict.fromkeys(range(20), 1)


async def test_an_async_map_keeps_the_order_of_its_items_whoever_is_first() -> None:
    async def later(ctx: NodeContext) -> str:
        for _ in range(5 - ctx.input):
            await asyncio.sleep(0)
        return f"item {ctx.input}"

    heard = Heard()
    result = await scoring(later, heard).run({"items": [0, 1, 2, 3]})
    assert result.state["scores"] == ["item 0", "item 1", "item 2", "item 3"]
    begun = [event for event in heard.events if isinstance(event, NodeBegin)]
    assert [(event.node, event.item) for event in begun] == [("score", at) for at in range(4)]


@pytest.mark.promise("graph-006")
@BOTH
def test_no_more_items_are_in_flight_than_the_limit_says(how: How) -> None:
    lock, flight, most = threading.Lock(), 0, 0
    two = threading.Barrier(2)

    def node(_: NodeContext) -> None:
        nonlocal flight, most
        with lock:
            flight += 1
            most = max(most, flight)
        two.wait(PATIENCE)  # so that two are in flight, and with three there would be a third
        with lock:
            flight -= 1

    assert how(scoring(node, max_concurrency=2), {"items": list(range(8))}).stop_reason == "finished"
    assert most == 2


def test_sixty_four_items_that_wait_wait_together() -> None:
    """G21: fan-out is not as narrow as a default pool."""
    all_here = threading.Barrier(64)
    result = scoring(lambda _: all_here.wait(PATIENCE) >= 0, max_concurrency=64).run_sync(
        {"items": list(range(64))}
    )
    assert result.state["scores"] == [True] * 64


def test_a_map_of_nothing_writes_an_empty_list() -> None:
    assert scoring(lambda ctx: ctx.input).run_sync({"items": []}).state["scores"] == []


def odd_fails(ctx: NodeContext) -> int | NodeResult:
    return NodeResult.fail(f"{ctx.input} is odd") if ctx.input % 2 else ctx.input


@BOTH
def test_a_failed_item_is_kept_in_its_place_or_left_out(how: How) -> None:
    collected = how(scoring(odd_fails, on_item_error="collect"), {"items": [0, 1, 2]})
    assert collected.state["scores"] == [0, {"item": 1, "error": "1 is odd", "attempts": 1}, 2]
    skipped = how(scoring(odd_fails, on_item_error="skip"), {"items": [0, 1, 2]})
    assert (skipped.state["scores"], skipped.errors) == ([0, 2], ())


@BOTH
def test_a_failed_item_fails_the_map_and_on_resume_only_it_runs_again(how: How) -> None:
    runs: Counter[int] = Counter()
    broken = {1, 3}

    def node(ctx: NodeContext) -> int:
        runs[ctx.input] += 1
        if ctx.input in broken:
            raise OSError(f"no {ctx.input}")
        return ctx.input

    graph = scoring(node)
    failed = how(graph, {"items": [0, 1, 2, 3]}, ALICE)
    assert (failed.stop_reason, [error.message for error in failed.errors]) == ("error", ["OSError: no 1"])
    assert "scores" not in failed.state
    broken.clear()
    assert graph.resume_sync("alice").state["scores"] == [0, 1, 2, 3]
    assert runs == {0: 1, 1: 2, 2: 1, 3: 2}


def test_items_are_tried_again_each_for_itself() -> None:
    runs: Counter[int] = Counter()

    def node(ctx: NodeContext) -> int:
        runs[ctx.input] += 1
        if ctx.attempt <= ctx.input:
            raise OSError
        return ctx.attempt

    graph = scoring(node, retry=RetryPolicy(delay=0), on_item_error="collect")
    result = graph.run_sync({"items": [0, 1, 5]})
    assert result.state["scores"] == [1, 2, {"item": 2, "error": "OSError", "attempts": 3}]
    assert runs == {0: 1, 1: 2, 5: 3}


@BOTH
def test_items_ask_and_those_that_are_through_do_not_run_again(how: How) -> None:
    runs: Counter[str] = Counter()

    def node(ctx: NodeContext) -> str:
        runs[ctx.input] += 1
        return ctx.input if ctx.input == "calm" else f"{ctx.input}: {ctx.interrupt('sure?')}"

    graph = scoring(node)
    paused = how(graph, {"items": ["x", "calm", "y"]}, ALICE)
    assert [each.id for each in paused.interrupts] == ["score[0]#1", "score[2]#1"]
    paused = graph.resume_sync("alice", ResumeCommand.for_id("score[2]#1", "yes"))
    assert (paused.stop_reason, [each.id for each in paused.interrupts]) == ("interrupted", ["score[0]#1"])
    done = graph.resume_sync("alice", ResumeCommand.for_node("score", "no"))
    assert done.state["scores"] == ["x: no", "calm", "y: yes"]
    assert runs == {"x": 2, "calm": 1, "y": 2}


def test_a_node_with_several_questions_is_answered_by_id() -> None:
    graph = scoring(lambda ctx: ctx.interrupt("?"))
    graph.run_sync({"items": [1, 2]}, ALICE)
    with pytest.raises(Exception, match="waits with 2 questions; answer by id, one of: 'score"):
        graph.resume_sync("alice", ResumeCommand.for_node("score", 1))


@pytest.mark.promise("graph-051")
@BOTH
def test_a_stop_starts_no_further_items_and_keeps_those_that_are_through(how: How) -> None:
    control, runs = RunControl(), []

    def node(ctx: NodeContext) -> int:
        runs.append(ctx.input)
        if len(runs) == 2:
            control.cancel()
        return ctx.input

    graph = scoring(node, max_concurrency=1)
    stopped = how(graph, {"items": [0, 1, 2, 3]}, RunOptions(thread_id="alice", control=control))
    # whether the item that asked for the stop still counts depends on where it ran
    assert (stopped.stop_reason, runs) == ("cancelled", [0, 1])
    assert graph.resume_sync("alice").state["scores"] == [0, 1, 2, 3]
    assert Counter(runs)[0] == 1


@pytest.mark.parametrize(
    ("items", "found"), [(None, "has no value"), (7, "holds int"), ("text", "holds str")]
)
def test_what_is_not_a_list_of_items_fails_the_map(items: Any, found: str) -> None:
    (error,) = scoring(lambda ctx: ctx.input).run_sync({"items": items}).errors
    expected = f"it maps over channel 'items', which {found}; write a list of items"
    assert (error.node, error.message) == ("score", expected)


def test_a_map_whose_channel_was_never_written_fails_too() -> None:
    (error,) = scoring(lambda ctx: ctx.input).run_sync().errors
    assert error.message == "it maps over channel 'items', which has no value; write a list of items"


def test_a_plain_item_that_returns_an_awaitable_is_an_error() -> None:
    async def value() -> int:
        return 1

    (error,) = scoring(lambda _: value()).run_sync({"items": [1]}).errors
    assert error.message == "it is plain but returned an awaitable; declare it with async def"


def test_maps_beside_each_other_and_beside_nodes_have_their_own_limits() -> None:
    builder = GraphBuilder("two")
    builder.add_channel("items", default=[1, 2, 3])
    builder.add_channel("out", Reducers.append)
    builder.add_map("double", lambda ctx: ctx.input * 2, over="items", into="out", max_concurrency=1)
    builder.add_map("negate", lambda ctx: -ctx.input, over="items", into="out")
    builder.add_node("plain", lambda _: {"out": ["plain"]})
    for name in ("plain", "negate", "double"):
        builder.add_edge(START, name)
    for how in (Graph.run_sync, lambda graph: asyncio.run(graph.run())):
        assert how(builder.build()).state["out"] == [2, 4, 6, -1, -2, -3, "plain"]


def test_a_map_with_a_question_beside_one_that_failed_ends_with_the_failure() -> None:
    def node(ctx: NodeContext) -> None:
        if ctx.input:
            ctx.interrupt("?")
        raise OSError

    result = scoring(node).run_sync({"items": [0, 1]})
    assert (result.stop_reason, [each.id for each in result.interrupts]) == ("error", ["score[1]#1"])


def test_a_map_takes_no_sends() -> None:
    builder = GraphBuilder("sends")
    builder.add_channel("items", default=[])
    builder.add_map("score", lambda ctx: ctx.input, over="items", into="items")
    builder.add_node("a", lambda _: NodeResult.ok(sends=[Send("score", 1)]))
    builder.add_edge(START, "a")
    builder.add_edge("a", "score")
    (error,) = builder.build().run_sync().errors
    assert error.message == "send to 'score': a map takes its items from a channel; send to a node"


def test_what_is_wrong_with_a_map_is_named_at_build() -> None:
    builder = GraphBuilder("wrong")
    builder.add_channel("items")
    wrong: Any = "retry"
    builder.add_map("score", lambda _: 1, over="item", into="items", max_concurrency=0, on_item_error=wrong)
    builder.add_edge(START, "score")
    with pytest.raises(GraphBuildError) as refused:
        builder.build()
    assert [(problem.code, problem.message) for problem in refused.value.problems] == [
        ("unknown-channel", "there is no channel 'item' for its items"),
        ("bad-map", "max_concurrency is 0; give 1 or more"),
        ("bad-map", "on_item_error is 'retry'; it may be: fail, collect, skip"),
    ]


def test_what_items_emit_and_their_retries_say_which_item_it_was() -> None:
    def item(ctx: NodeContext) -> int:
        ctx.emit(ctx.input)
        if ctx.attempt == 1 and ctx.item == 1:
            raise OSError
        return ctx.input

    heard = Heard()
    builder = GraphBuilder("items")
    builder.add_channel("numbers", default=[7, 8])
    builder.add_channel("results")
    policy = RetryPolicy(delay=0)
    builder.add_map("each", item, over="numbers", into="results", max_concurrency=1, retry=policy)
    builder.add_edge(START, "each")
    builder.build(observers=[heard]).run_sync()
    chunks = [(event.item, event.value) for event in heard.events if isinstance(event, Chunk)]
    assert chunks == [(0, 7), (1, 8), (1, 8)]
    assert [event.item for event in heard.events if isinstance(event, Retry)] == [1]
