"""The observers that come with the engine: log, trace and metrics."""

import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dialoom.base.errors import UsageError
from dialoom.base.events import Event
from dialoom.graph import (
    START,
    Graph,
    GraphBuilder,
    JsonTraceObserver,
    LoggingObserver,
    MetricsObserver,
    NodeBegin,
    NodeContext,
    NodeEnd,
    NodeResult,
    RetryPolicy,
    RunBegin,
    RunFinished,
)
from dialoom.testing import ManualClock
from tests.graph.graphs import PATIENCE, counter, line


def shop(*observers: Any, clock: ManualClock | None = None) -> Graph:
    """Two nodes at once, of which the second fails."""
    builder = GraphBuilder("shop")
    builder.add_node("pay", lambda ctx: ctx.emit("card 4111"), blocking=False)
    builder.add_node("ship", lambda _: NodeResult.fail("no address: 1 High Street"), blocking=False)
    builder.add_edge(START, "pay")
    builder.add_edge(START, "ship")
    return builder.build(observers=observers, clock=clock or ManualClock())


class Slow:
    """A node that takes `seconds` on `clock`."""

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds

    async def __call__(self, _: NodeContext) -> None:
        await self._clock.advance(self._seconds)


@pytest.mark.promise("graph-111")
def test_the_log_tells_the_life_of_a_run(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "dialoom.graph")
    result = shop(LoggingObserver()).run_sync()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "run of graph 'shop' began"),
        ("DEBUG", "node 'pay' began in step 1"),
        ("DEBUG", "node 'pay' ended in step 1: ok after 0.000 s"),
        ("DEBUG", "node 'ship' began in step 1"),
        ("DEBUG", "node 'ship' ended in step 1: error after 0.000 s"),
        ("WARNING", "node 'ship' failed in step 1"),
        ("DEBUG", "node 'ship' says: no address: 1 High Street"),
        ("DEBUG", "step 1 committed"),
        ("INFO", "run ended after 1 steps: error"),
    ]
    assert {record.__dict__["run_id"] for record in caplog.records} == {result.run_id}
    assert caplog.records[-1].__dict__["stop_reason"] == "error"


def test_above_debug_the_log_holds_nothing_that_nodes_or_errors_say(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = logging.getLogger("shop.graph")
    caplog.set_level(logging.INFO, "shop.graph")
    shop(LoggingObserver(logger)).run_sync()
    assert [record.name for record in caplog.records] == ["shop.graph"] * 3
    told = "".join(str(record.__dict__) for record in caplog.records)
    assert "4111" not in told
    assert "High Street" not in told


@pytest.mark.promise("graph-112", "graph-113")
async def test_a_trace_has_one_span_for_every_node_with_its_start_and_duration() -> None:
    clock = ManualClock()
    trace = JsonTraceObserver(clock=clock)
    builder = GraphBuilder("kitchen")
    builder.add_node("cook", Slow(clock, 2.0))
    builder.add_node("eat", Slow(clock, 0.5))
    builder.add_edge(START, "cook")
    builder.add_edge("cook", "eat")
    result = await builder.build(observers=[trace], clock=clock).run()
    ok = {"parent": None, "ns": [], "item": None, "status": "ok", "error": None, "retries": 0}
    assert json.loads(trace.to_json()) == {
        "run_id": result.run_id,
        "thread_id": result.thread_id,
        "graph": "kitchen",
        "stop_reason": "finished",
        "steps": 2,
        "seconds": 2.5,
        "error": None,
        "dropped": 0,
        "spans": [
            {"id": 1, "node": "cook", "step": 1, "start": 0.0, "seconds": 2.0, **ok},
            {"id": 2, "node": "eat", "step": 2, "start": 2.0, "seconds": 0.5, **ok},
        ],
    }


def test_a_span_says_what_went_wrong_and_a_trace_what_no_node_did() -> None:
    trace = JsonTraceObserver()
    shop(trace).run_sync()
    failed = trace.to_dict()
    assert [(span["node"], span["status"], span["error"]) for span in failed["spans"]] == [
        ("pay", "ok", None),
        ("ship", "error", "no address: 1 High Street"),
    ]
    assert failed["stop_reason"] == "error"
    shop(trace).run_sync({"typo": 1})
    assert trace.to_dict()["spans"] == []
    assert "there is no such channel" in trace.to_dict()["error"]


def test_spans_of_a_subgraph_hang_below_the_node_it_runs_in() -> None:
    trace = JsonTraceObserver(max_spans=3)
    head: dict[str, Any] = {"run_id": "r", "thread_id": "t", "step": 1}
    child: dict[str, Any] = {**head, "ns": ("search",)}
    inner: dict[str, Any] = {**head, "ns": ("search", "rank")}
    for event in (
        RunBegin(run_id="r", thread_id="t", seq=1, graph="parent"),
        NodeBegin(**head, seq=2, node="search"),
        RunBegin(run_id="r", thread_id="t", seq=3, graph="child", ns=("search",)),
        NodeBegin(**child, seq=4, node="rank"),
        NodeBegin(**inner, seq=5, node="score"),
        NodeBegin(**inner, seq=6, node="one too many"),
        NodeEnd(**inner, seq=7, node="one too many", status="ok", elapsed=1.0),
        NodeEnd(**inner, seq=8, node="score", status="ok", elapsed=1.0),
        NodeEnd(**child, seq=9, node="rank", status="ok", elapsed=2.0),
        RunFinished(
            run_id="r",
            thread_id="t",
            seq=10,
            steps=1,
            stop_reason="finished",
            checkpoint_id=None,
            ns=("search",),
        ),
        NodeEnd(**head, seq=11, node="search", status="ok", elapsed=3.0),
    ):
        trace.on_event(event)
    seen = trace.to_dict()
    assert (seen["graph"], seen["stop_reason"], seen["dropped"]) == ("parent", None, 1)
    assert [(span["id"], span["parent"], span["node"], span["seconds"]) for span in seen["spans"]] == [
        (1, None, "search", 3.0),
        (2, 1, "rank", 2.0),
        (3, 2, "score", 1.0),
    ]


def test_a_trace_keeps_the_newest_runs_and_says_so_of_others() -> None:
    trace = JsonTraceObserver(max_runs=2)
    with pytest.raises(UsageError, match="has not heard of any run yet"):
        trace.to_dict()
    graph = line("a", observers=(trace,))
    first, second, third = (graph.run_sync().run_id for _ in range(3))
    assert trace.to_dict()["run_id"] == third
    assert trace.to_dict(second)["run_id"] == second
    with pytest.raises(UsageError, match=f"has not heard of a run '{first}'; it keeps 2"):
        trace.to_json(first)
    trace.on_event(Event(run_id=first, seq=9))


@pytest.mark.promise("graph-114")
def test_trace_and_metrics_may_be_fed_from_many_threads_at_once() -> None:
    trace, metrics = JsonTraceObserver(), MetricsObserver()
    together = threading.Barrier(8, timeout=PATIENCE)
    graph = counter(observers=(trace, metrics))

    def run(_: int) -> str:
        together.wait()
        return graph.run_sync().run_id

    with ThreadPoolExecutor(8) as pool:
        run_ids = list(pool.map(run, range(8)))
    for run_id in run_ids:
        spans = trace.to_dict(run_id)["spans"]
        assert [(span["id"], span["step"], span["status"]) for span in spans] == [
            (at, at, "ok") for at in range(1, 6)
        ]
    assert (metrics.to_dict()["steps"], metrics.to_dict()["nodes"][0]["ended"]) == (40, 40)


@pytest.mark.promise("graph-115", "graph-116", "graph-118", "docs-013")
async def test_metrics_sum_up_runs_steps_errors_and_the_seconds_of_every_node() -> None:
    clock = ManualClock()
    metrics = MetricsObserver()
    builder = GraphBuilder("kitchen")
    builder.add_node("cook", Slow(clock, 2.0))
    builder.add_edge(START, "cook")
    kitchen = builder.build(observers=[metrics], clock=clock)
    await kitchen.run()
    await kitchen.run()
    await shop(metrics, clock=clock).run()
    zero = {
        "ns": [],
        "ended": 1,
        "errors": 0,
        "retries": 0,
        "cancelled": 0,
        "paused": 0,
        "seconds": 0.0,
        "slowest": 0.0,
    }
    assert json.loads(metrics.to_json()) == {
        "runs": 3,
        "ended": {"finished": 2, "error": 1},
        "steps": 3,
        "node_errors": 1,
        "retries": 0,
        "interrupts": 0,
        "chunks": 1,
        "unlisted": 0,
        "nodes": [
            {**zero, "node": "cook", "ended": 2, "seconds": 4.0, "slowest": 2.0},
            {**zero, "node": "pay"},
            {**zero, "node": "ship", "errors": 1},
        ],
    }


def test_metrics_count_nodes_they_have_no_room_to_list() -> None:
    metrics = MetricsObserver(max_nodes=1)
    line("a", "b", "a2", observers=(metrics,)).run_sync()
    counts = metrics.to_dict()
    assert [node["node"] for node in counts["nodes"]] == ["a"]
    assert (counts["steps"], counts["unlisted"]) == (3, 2)


def test_tasks_of_one_node_at_the_same_time_have_spans_of_their_own() -> None:
    trace = JsonTraceObserver()
    builder = GraphBuilder("school")
    builder.add_channel("pupils", type=list[str])
    builder.add_channel("marks")

    def mark(ctx: NodeContext) -> int:
        if ctx.input == "eve" and ctx.attempt == 1:
            raise OSError("the pen is dry")
        return len(ctx.input)

    again = RetryPolicy(attempts=2, delay=0)
    builder.add_map("mark", mark, over="pupils", into="marks", max_concurrency=1, retry=again)
    builder.add_edge(START, "mark")
    result = builder.build(observers=[trace]).run_sync({"pupils": ["ann", "eve"]})
    assert result.state["marks"] == [3, 3]
    assert [
        (span["node"], span["item"], span["status"], span["retries"]) for span in trace.to_dict()["spans"]
    ] == [("mark", 0, "ok", 0), ("mark", 1, "ok", 1)]


def unsure() -> GraphBuilder:
    """A node that asks, beside one that fails once."""
    builder = GraphBuilder("unsure")

    def flaky(ctx: NodeContext) -> None:
        if ctx.attempt == 1:
            raise OSError("secret of the server")

    builder.add_node("ask", lambda ctx: ctx.interrupt("secret question"), blocking=False)
    builder.add_node("fetch", flaky, blocking=False, retry=RetryPolicy(delay=0))
    builder.add_edge(START, "ask")
    builder.add_edge(START, "fetch")
    return builder


@pytest.mark.promise("graph-117")
def test_metrics_count_retries_and_pauses() -> None:
    metrics = MetricsObserver()
    assert unsure().build(observers=[metrics]).run_sync().stop_reason == "interrupted"
    counts = metrics.to_dict()
    assert (counts["retries"], counts["interrupts"], counts["node_errors"]) == (1, 1, 0)
    assert [(node["node"], node["retries"], node["paused"]) for node in counts["nodes"]] == [
        ("ask", 0, 1),
        ("fetch", 1, 0),
    ]


def test_a_retry_of_a_node_without_room_is_counted_in_the_total() -> None:
    metrics = MetricsObserver(max_nodes=0)
    unsure().build(observers=[metrics]).run_sync()
    assert (metrics.to_dict()["retries"], metrics.to_dict()["nodes"]) == (1, [])


def test_the_log_tells_retries_and_pauses_without_their_words(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dialoom.graph")
    unsure().build(observers=[LoggingObserver()]).run_sync()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "run of graph 'unsure' began"),
        ("WARNING", "node 'fetch' failed attempt 1 and is tried again in 0.000 s"),
        ("INFO", "step 1 waits for an answer"),
        ("INFO", "run ended after 1 steps: interrupted"),
    ]
    assert "secret" not in "".join(str(record.__dict__) for record in caplog.records)


def test_a_retry_of_a_span_that_found_no_room_is_not_counted() -> None:
    trace = JsonTraceObserver(max_spans=0)
    unsure().build(observers=[trace]).run_sync()
    assert (trace.to_dict()["spans"], trace.to_dict()["dropped"]) == ([], 2)


def test_a_span_whose_parent_is_not_known_stands_alone() -> None:
    trace = JsonTraceObserver()
    head: dict[str, Any] = {"run_id": "r", "thread_id": "t", "step": 1}
    trace.on_event(RunBegin(run_id="r", thread_id="t", seq=1, graph="g"))
    trace.on_event(NodeBegin(**head, seq=2, node="search"))
    trace.on_event(NodeBegin(**head, seq=3, node="stray", ns=("elsewhere",)))
    assert [span["parent"] for span in trace.to_dict()["spans"]] == [None, None]
