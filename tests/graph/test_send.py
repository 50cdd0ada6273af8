"""Tasks of their own: a node, or the conditional edge after it, sends work to nodes, each with its input."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from dialoom.base.errors import UsageError
from dialoom.graph import (
    END,
    START,
    Graph,
    GraphBuilder,
    MemoryCheckpointStore,
    NodeContext,
    NodeResult,
    ResumeCommand,
    RunOptions,
    Send,
)
from tests.graph.graphs import saying, speakers

ALICE = RunOptions(thread_id="alice")


def sending(
    *sends: Send, goto: Any = None, work: Any = None, store: MemoryCheckpointStore | None = None
) -> Graph:
    builder = speakers("next")
    builder.add_node(
        "plan", lambda _: NodeResult.ok({"said": ["plan"]}, goto=goto, sends=sends), blocking=False
    )
    builder.add_node("work", work or (lambda ctx: {"said": [f"{ctx.item}:{ctx.input}"]}), dynamic=True)
    builder.add_node("last", saying("last"))
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "next")
    builder.add_edge("work", "last")
    return builder.build(store)


@pytest.mark.parametrize(
    "how", [Graph.run_sync, lambda graph: asyncio.run(graph.run())], ids=["sync", "async"]
)
def test_each_send_is_a_task_beside_what_follows_and_what_they_lead_to_runs_once(how: Any) -> None:
    result = how(sending(Send("work", "x"), Send("work", {"deep": [1]}), Send("last")))
    assert result.state == {"said": ["plan", "next", "0:x", "1:{'deep': [1]}", "last", "last"]}
    assert result.steps == 3


def test_a_goto_replaces_the_edges_and_sends_come_on_top() -> None:
    assert sending(Send("work", 1), goto=()).run_sync().state == {"said": ["plan", "0:1", "last"]}
    assert sending(Send("work", 1), goto=END).run_sync().state == {"said": ["plan", "0:1", "last"]}
    assert sending(Send("work", 1), goto="last").run_sync().state == {"said": ["plan", "0:1", "last", "last"]}


def test_a_conditional_edge_sends_too() -> None:
    builder = speakers("other")
    builder.add_channel("todo", default=["x", "y"])
    builder.add_node("work", lambda ctx: {"said": [f"{ctx.item}:{ctx.input}"]}, dynamic=True)
    builder.add_node("plan", lambda _: None)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges(
        "plan", lambda state: [*(Send("work", each) for each in state["todo"]), "other"]
    )
    assert builder.build().run_sync().state["said"] == ["other", "0:x", "1:y"]


def test_a_conditional_edge_may_answer_with_one_send() -> None:
    builder = speakers()
    builder.add_node("work", lambda ctx: {"said": [ctx.input]}, dynamic=True)
    builder.add_conditional_edges(START, lambda _: Send("work", "at once"))
    assert builder.build().run_sync().state["said"] == ["at once"]


def test_a_send_to_nobody_is_an_error_that_names_who_is_there() -> None:
    expected = "send to 'nobody': there is no such node; the graph has: next, plan, work, last"
    failed = sending(Send("nobody")).run_sync()
    assert (failed.state["said"], [error.message for error in failed.errors]) == ([], [expected])
    builder = speakers("a")
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", lambda _: Send("nobody"))
    (error,) = builder.build().run_sync().errors
    assert error.message == (
        "the conditional edge answered with a send to 'nobody': there is no such node; the graph has: a"
    )


def test_a_failed_task_runs_again_with_its_input_and_its_siblings_do_not() -> None:
    runs: Counter[str] = Counter()
    broken = {"y"}

    def work(ctx: NodeContext) -> dict[str, list[str]]:
        runs[ctx.input] += 1
        if ctx.input in broken:
            raise OSError
        return {"said": [ctx.input]}

    graph = sending(*(Send("work", each) for each in "xyz"), work=work, store=MemoryCheckpointStore())
    failed = graph.run_sync(None, ALICE)
    assert (failed.stop_reason, failed.state["said"]) == ("error", ["plan", "next", "x", "z"])
    broken.clear()
    assert graph.resume_sync("alice").state["said"] == ["plan", "next", "x", "z", "y", "last"]
    assert runs == {"x": 1, "y": 2, "z": 1}


def test_tasks_of_one_node_ask_each_for_itself() -> None:
    def work(ctx: NodeContext) -> dict[str, list[str]]:
        return {"said": [f"{ctx.input}: {ctx.interrupt('?')}"]}

    graph = sending(Send("work", "x"), Send("work", "y"), goto=(), work=work, store=MemoryCheckpointStore())
    paused = graph.run_sync(None, ALICE)
    assert [each.id for each in paused.interrupts] == ["work[0]#1", "work[1]#1"]
    paused = graph.resume_sync("alice", ResumeCommand.for_id("work[1]#1", "no"))
    assert paused.state["said"] == ["plan", "y: no"]
    done = graph.resume_sync("alice", ResumeCommand.for_node("work", "yes"))
    assert done.state["said"] == ["plan", "y: no", "x: yes", "last"]


def test_sends_of_those_that_finished_wait_for_a_sibling_that_failed() -> None:
    broken = [True]

    def shaky(ctx: NodeContext) -> NodeResult:
        if broken:
            raise OSError
        return NodeResult.ok(sends=[Send("work", "from shaky")])

    builder = speakers()
    builder.add_node("work", lambda ctx: {"said": [f"{ctx.item}:{ctx.input}"]}, dynamic=True)
    builder.add_node("calm", lambda _: NodeResult.ok(sends=[Send("work", "from calm")]))
    builder.add_node("shaky", shaky)
    builder.add_edge(START, "calm")
    builder.add_edge(START, "shaky")
    store = MemoryCheckpointStore()
    graph = builder.build(store)
    assert graph.run_sync(None, ALICE).stop_reason == "error"
    head = store.load("alice")
    assert head is not None
    assert head.frontier.deferred_sends == (Send("work", "from calm", 0),)
    broken.clear()
    assert graph.resume_sync("alice").state["said"] == ["0:from calm", "1:from shaky"]


def test_a_name_with_any_sign_in_it_is_never_taken_apart() -> None:
    builder = GraphBuilder("odd names")
    for name in ("a,b", "a", "b", "a/b#1", "a[0]"):
        builder.add_node(name, lambda ctx: ctx.interrupt(ctx.node))
        builder.add_edge(START, name)
    graph = builder.build(MemoryCheckpointStore())
    paused = graph.run_sync(None, ALICE)
    assert [each.id for each in paused.interrupts] == ["a,b#1", "a#1", "b#1", "a/b#1#1", "a[0]#1"]
    command = ResumeCommand.many({each.id: None for each in paused.interrupts})
    assert graph.resume_sync("alice", command).stop_reason == "finished"


TOO_MANY = "its superstep sends more than 2; send fewer at a time, or raise max_sends of build"


def worker(*names: str) -> GraphBuilder:
    builder = speakers(*names)
    builder.add_node("work", saying("work"), dynamic=True, blocking=False)
    return builder


def test_what_a_superstep_sends_is_bounded_and_the_node_that_sends_too_much_is_named() -> None:
    builder = worker()
    sends = [Send("work")]
    for name, count in (("one", 1), ("two", 2), ("more", 1)):
        builder.add_node(name, lambda _, count=count: NodeResult.ok(sends=sends * count), blocking=False)
        builder.add_edge(START, name)
    store = MemoryCheckpointStore()
    result = builder.build(store, max_sends=2).run_sync(None, ALICE)
    assert [(error.node, error.message) for error in result.errors] == [
        ("two", f"with the 2 tasks it sends, {TOO_MANY}")
    ]
    assert builder.build(store, max_sends=4).resume_sync("alice").state == {"said": ["work"] * 4}


@pytest.mark.parametrize("beside", [False, True])
def test_what_conditional_edges_send_is_bounded_too(beside: bool) -> None:
    builder = worker("plan", *(["other"] if beside else []))
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", lambda _: [Send("work")] * 3, {"work": "work"})
    if beside:
        builder.add_edge(START, "other")
    result = builder.build(max_sends=2).run_sync()
    assert [(error.node, error.message) for error in result.errors] == [
        ("plan", f"with the 3 tasks it sends, {TOO_MANY}")
    ]
    assert result.state == {"said": ["plan", "other"] if beside else ["plan"]}


def test_ten_thousand_may_be_sent_unless_something_else_is_said() -> None:
    def graph(count: int) -> Graph:
        builder = worker()
        builder.add_node("plan", lambda _: NodeResult.ok(sends=[Send("work")] * count), blocking=False)
        builder.add_edge(START, "plan")
        return builder.build()

    assert len(graph(10_000).run_sync().state["said"]) == 10_000
    (error,) = graph(10_001).run_sync().errors
    assert "with the 10001 tasks it sends, its superstep sends more than 10000;" in error.message
    with pytest.raises(UsageError, match="max_sends is 0; give 1 or more"):
        speakers("a").build(max_sends=0)
