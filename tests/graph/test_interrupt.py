"""Nodes ask, people answer: who runs again, with what, and what happened only once."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from dialoom.base.errors import UsageError
from dialoom.graph import (
    START,
    Graph,
    GraphBuilder,
    Interrupt,
    InterruptEvent,
    MemoryCheckpointStore,
    NodeContext,
    NodeEnd,
    ResumeCommand,
    RetryPolicy,
    RunControl,
    RunOptions,
    RunResult,
)
from tests.graph.graphs import PATIENCE, Heard, saying, speakers, wait_for

Run = Callable[[Graph], RunResult]
ALICE = RunOptions(thread_id="alice")


def approval(store: MemoryCheckpointStore | None = None, heard: Heard | None = None, **ask: Any) -> Graph:
    """A node that asks, and one after it."""

    def approve(ctx: NodeContext) -> dict[str, list[str]]:
        return {"said": [f"approved: {ctx.interrupt({'amount': 7}, **ask)}"]}

    builder = speakers()
    builder.add_node("approve", approve)
    builder.add_node("after", saying("after"))
    builder.add_edge(START, "approve")
    builder.add_edge("approve", "after")
    return builder.build(store or MemoryCheckpointStore(), [heard] if heard else [])


QUESTION = Interrupt(id="approve#1", node="approve", payload={"amount": 7}, label="1")


@pytest.mark.promise("graph-052", "graph-053", "graph-054", "graph-058", "graph-059", "graph-098")
@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_question_pauses_the_run_and_its_answer_lets_it_go_on(how: str) -> None:
    heard, store = Heard(), MemoryCheckpointStore()
    graph = approval(store, heard)
    paused = graph.run_sync(None, ALICE) if how == "sync" else asyncio.run(graph.run(None, ALICE))
    assert (paused.stop_reason, paused.interrupts, paused.state) == ("interrupted", (QUESTION,), {"said": []})
    kept = store.load("alice")
    assert kept is not None
    assert (kept.interrupts, kept.frontier.ready) == ((QUESTION,), ("approve",))
    assert heard.names() == [
        "RunBegin", "NodeBegin", "NodeEnd", "InterruptEvent", "StepCommitted", "RunFinished",
    ]  # fmt: skip
    assert [event.interrupt for event in heard.events if isinstance(event, InterruptEvent)] == [QUESTION]
    assert [event.status for event in heard.events if isinstance(event, NodeEnd)] == ["paused"]
    command = ResumeCommand.for_node("approve", "yes")
    done = (
        graph.resume_sync("alice", command) if how == "sync" else asyncio.run(graph.resume("alice", command))
    )
    assert (done.stop_reason, done.interrupts) == ("finished", ())
    assert done.state == {"said": ["approved: yes", "after"]}


@pytest.mark.promise("graph-055", "graph-056", "graph-060", "graph-061", "graph-062")
def test_a_resumed_node_runs_from_its_first_line_and_gets_its_answers_in_order() -> None:
    seen: list[object] = []

    def form(ctx: NodeContext) -> dict[str, list[str]]:
        seen.append((ctx.has_resume, ctx.resume_value))
        name = ctx.interrupt("name?")
        size = ctx.interrupt("size?")
        seen.append(ctx.resume_value)
        return {"said": [name, size]}

    builder = speakers()
    builder.add_node("form", form)
    builder.add_edge(START, "form")
    graph = builder.build(MemoryCheckpointStore())
    first = graph.run_sync(None, ALICE)
    second = graph.resume_sync("alice", ResumeCommand.for_id("form#1", "ann"))
    assert [each.id for each in (*first.interrupts, *second.interrupts)] == ["form#1", "form#2"]
    done = graph.resume_sync("alice", ResumeCommand.for_node("form", "large"))
    assert (done.state, seen) == (
        {"said": ["ann", "large"]},
        [(False, None), (True, "ann"), (True, "large"), "large"],
    )


@pytest.mark.promise("graph-057")
@pytest.mark.parametrize("how", ["sync", "async"])
def test_only_answered_tasks_run_again_and_siblings_that_finished_never_do(how: str) -> None:
    """G7: a is done, b asks twice, c asks once."""
    runs: Counter[str] = Counter()

    def asking(name: str, times: int) -> Any:
        def node(ctx: NodeContext) -> dict[str, list[str]]:
            runs[name] += 1
            return {"said": [f"{name}{ctx.interrupt(at)}" for at in range(times)] or [name]}

        return node

    builder = speakers("after")
    for name, times in (("a", 0), ("b", 2), ("c", 1)):
        builder.add_node(name, asking(name, times))
        builder.add_edge(START, name)
        builder.add_edge(name, "after")
    graph = builder.build(MemoryCheckpointStore())

    def resume(command: ResumeCommand | None = None) -> RunResult:
        if how == "sync":
            return graph.resume_sync("alice", command)
        return asyncio.run(graph.resume("alice", command))

    paused = graph.run_sync(None, ALICE) if how == "sync" else asyncio.run(graph.run(None, ALICE))
    assert [each.id for each in paused.interrupts] == ["b#1", "c#1"]
    assert (paused.state, runs) == ({"said": ["a"]}, {"a": 1, "b": 1, "c": 1})
    paused = resume(ResumeCommand.for_node("c", 1))
    assert [each.id for each in paused.interrupts] == ["b#1"]
    assert (paused.state, runs) == ({"said": ["a", "c1"]}, {"a": 1, "b": 1, "c": 2})
    assert [each.id for each in resume().interrupts] == ["b#1"]
    assert [each.id for each in resume(ResumeCommand.for_node("b", 1)).interrupts] == ["b#2"]
    done = resume(ResumeCommand.for_node("b", 2))
    assert (done.stop_reason, done.interrupts) == ("finished", ())
    assert (done.state, runs) == ({"said": ["a", "c1", "b1", "b2", "after"]}, {"a": 1, "b": 3, "c": 2})


def test_many_are_answered_at_once_by_id_or_by_node() -> None:
    builder = speakers()
    for name in ("a", "b"):
        builder.add_node(name, lambda ctx: {"said": [ctx.interrupt("?")]})
        builder.add_edge(START, name)
    graph = builder.build(MemoryCheckpointStore())
    graph.run_sync(None, ALICE)
    done = graph.resume_sync("alice", ResumeCommand.many({"b": "from b", "a#1": "from a"}))
    assert done.state == {"said": ["from a", "from b"]}


def test_a_key_names_a_question_whatever_the_order() -> None:
    order = ["size", "name"]

    def form(ctx: NodeContext) -> dict[str, list[str]]:
        return {"said": [ctx.interrupt(f"{key}?", key=key) for key in order]}

    builder = speakers()
    builder.add_node("form", form)
    builder.add_edge(START, "form")
    graph = builder.build(MemoryCheckpointStore())
    graph.run_sync(None, ALICE)
    order.reverse()
    paused = graph.resume_sync("alice", ResumeCommand.for_id("form#size", "large"))
    assert [each.id for each in paused.interrupts] == ["form#name"]
    assert graph.resume_sync("alice", ResumeCommand.for_id("form#name", "ann")).state == {
        "said": ["ann", "large"]
    }


def positive(answer: int) -> int:
    if answer < 0:
        raise ValueError("less than nothing")
    return answer


@pytest.mark.parametrize(
    ("schema", "wrong", "reason"),
    [
        (int, "seven", "the answer does not fit: Expected `int`, got `str`"),
        (list[int], 7, "the answer does not fit: Expected `array`, got `int`"),
        (positive, -7, "the answer does not fit: less than nothing"),
    ],
)
def test_an_answer_that_does_not_fit_is_asked_for_again(schema: Any, wrong: Any, reason: str) -> None:
    graph = approval(schema=schema)
    graph.run_sync(None, ALICE)
    again = graph.resume_sync("alice", ResumeCommand.for_node("approve", wrong))
    assert (again.stop_reason, [each.refused for each in again.interrupts]) == ("interrupted", [reason])
    right: Any = [7] if schema == list[int] else 7
    done = graph.resume_sync("alice", ResumeCommand.for_node("approve", right))
    assert done.state == {"said": [f"approved: {right}", "after"]}


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (
            ResumeCommand.for_node("nobody", 1),
            "nothing waits for an answer to 'nobody'; waiting: 'approve#1'",
        ),
        (
            ResumeCommand.for_id("approve#2", 1),
            "nothing waits for an answer to 'approve#2'; waiting: 'approve#1'",
        ),
    ],
)
def test_an_answer_to_nobody_is_refused_and_changes_nothing(command: ResumeCommand, complaint: str) -> None:
    graph = approval()
    graph.run_sync(None, ALICE)
    before = list(graph.history("alice"))
    with pytest.raises(UsageError) as refused:
        graph.resume_sync("alice", command)
    assert (str(refused.value), list(graph.history("alice"))) == (complaint, before)


def test_an_answer_when_nothing_is_asked_is_refused() -> None:
    graph = approval()
    graph.run_sync(None, ALICE)
    graph.resume_sync("alice", ResumeCommand.for_node("approve", 1))
    with pytest.raises(UsageError, match="waiting: nothing"):
        graph.resume_sync("alice", ResumeCommand.for_node("approve", 1))


@pytest.mark.parametrize("retry", [None, RetryPolicy(delay=0)])
def test_no_except_and_no_retry_swallows_a_question(retry: RetryPolicy | None) -> None:
    """G10."""
    tries: list[int] = []

    def careful(ctx: NodeContext) -> dict[str, list[str]]:
        tries.append(ctx.attempt)
        try:
            return {"said": [ctx.interrupt("sure?")]}
        except Exception:  # noqa: BLE001 - what a careful tool wrapper does
            return {"said": ["swallowed"]}

    builder = speakers()
    builder.add_node("careful", careful, retry=retry)
    builder.add_edge(START, "careful")
    graph = builder.build(MemoryCheckpointStore())
    assert graph.run_sync(None, ALICE).stop_reason == "interrupted"
    assert tries == [1]
    assert graph.resume_sync("alice", ResumeCommand.for_node("careful", "yes")).state == {"said": ["yes"]}


def test_answers_outlive_a_failure_after_them() -> None:
    broken = [True]

    def node(ctx: NodeContext) -> dict[str, list[str]]:
        answer = ctx.interrupt("?")
        if broken:
            raise OSError
        return {"said": [answer]}

    builder = speakers()
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.build(MemoryCheckpointStore())
    graph.run_sync(None, ALICE)
    assert graph.resume_sync("alice", ResumeCommand.for_node("node", "yes")).stop_reason == "error"
    broken.clear()
    assert graph.resume_sync("alice").state == {"said": ["yes"]}


def test_questions_count_anew_in_each_attempt() -> None:
    def node(ctx: NodeContext) -> dict[str, list[str]]:
        answer = ctx.interrupt("?")
        if ctx.attempt == 1:
            raise OSError
        return {"said": [answer]}

    builder = speakers()
    builder.add_node("node", node, retry=RetryPolicy(delay=0))
    builder.add_edge(START, "node")
    graph = builder.build(MemoryCheckpointStore())
    graph.run_sync(None, ALICE)
    assert graph.resume_sync("alice", ResumeCommand.for_node("node", "yes")).state == {"said": ["yes"]}


def test_a_pause_works_without_a_store_too_by_its_result() -> None:
    result = GraphBuilder("free")
    result.add_node("ask", lambda ctx: ctx.interrupt("?"))
    result.add_edge(START, "ask")
    assert [each.id for each in result.build().run_sync().interrupts] == ["ask#1"]


def charging(charges: list[str], store: MemoryCheckpointStore, *, fails: bool = False) -> Graph:
    """A node that charges a card and then asks twice."""

    def pay(ctx: NodeContext) -> dict[str, list[str]]:
        receipt = ctx.once("charge", lambda: charges.append("7 EUR") or {"receipt": len(charges)})
        if fails:
            raise OSError
        return {"said": [f"{receipt['receipt']}", ctx.interrupt("fine?"), ctx.interrupt("really?")]}

    builder = speakers()
    builder.add_node("pay", pay)
    builder.add_edge(START, "pay")
    return builder.build(store)


def test_an_effect_before_questions_happens_once_also_over_a_restart() -> None:
    """G9."""
    charges: list[str] = []
    store = MemoryCheckpointStore()
    charging(charges, store).run_sync(None, ALICE)
    charging(charges, store).resume_sync("alice", ResumeCommand.for_node("pay", "yes"))
    done = charging(charges, store).resume_sync("alice", ResumeCommand.for_node("pay", "yes, really"))
    assert (done.state, charges) == ({"said": ["1", "yes", "yes, really"]}, ["7 EUR"])


def test_an_effect_is_durable_before_the_node_goes_on() -> None:
    charges: list[str] = []
    store = MemoryCheckpointStore()
    assert charging(charges, store, fails=True).run_sync(None, ALICE).stop_reason == "error"
    head = store.load("alice")
    assert head is not None
    assert [note.once for note in head.frontier.notes] == [(("charge", {"receipt": 1}),)]
    assert charging(charges, store).resume_sync("alice").stop_reason == "interrupted"
    assert charges == ["7 EUR"]


class Slow(MemoryCheckpointStore):
    """A store that says it may wait, and on which thread it was called."""

    blocking = True

    def __init__(self) -> None:
        super().__init__()
        self.threads_seen: set[str] = set()

    def save(self, checkpoint: Any) -> None:
        self.threads_seen.add(threading.current_thread().name)
        super().save(checkpoint)


@pytest.mark.parametrize("store", [MemoryCheckpointStore(), Slow()], ids=["quick", "slow"])
async def test_an_async_effect_happens_once_and_does_not_hold_up_the_loop(
    store: MemoryCheckpointStore,
) -> None:
    charges: list[str] = []

    async def charge() -> str:
        charges.append("7 EUR")
        return "receipt"

    async def pay(ctx: NodeContext) -> dict[str, list[str]]:
        return {"said": [await ctx.aonce("charge", charge), ctx.interrupt("fine?")]}

    builder = speakers()
    builder.add_node("pay", pay)
    builder.add_edge(START, "pay")
    graph = builder.build(store)
    await graph.run(None, ALICE)
    done = await graph.resume("alice", ResumeCommand.for_node("pay", "yes"))
    assert (done.state, charges) == ({"said": ["receipt", "yes"]}, ["7 EUR"])
    if isinstance(store, Slow):
        assert threading.current_thread().name not in store.threads_seen


def test_an_effect_happens_once_over_attempts_and_without_a_store() -> None:
    charges: list[str] = []

    def pay(ctx: NodeContext) -> dict[str, list[str]]:
        ctx.once("charge", lambda: charges.append("7 EUR"))
        if ctx.attempt < 3:
            raise OSError
        return {"said": charges}

    builder = speakers()
    builder.add_node("pay", pay, retry=RetryPolicy(delay=0))
    builder.add_edge(START, "pay")
    assert builder.build().run_sync().state == {"said": ["7 EUR"]}


async def test_a_node_left_behind_can_change_nothing_any_more() -> None:
    begun, release, left = threading.Event(), threading.Event(), threading.Event()
    effects: list[str] = []
    control = RunControl()

    def stuck(ctx: NodeContext) -> None:
        ctx.once("early", lambda: effects.append("early"))
        begun.set()
        wait_for(release)
        try:
            ctx.once("late", lambda: effects.append("late"))
        finally:
            left.set()

    def stuck_anew(ctx: NodeContext) -> None:
        begun.set()
        wait_for(release)
        try:
            ctx.once("late", lambda: effects.append("late"))
        finally:
            left.set()

    for node, expected in ((stuck, ["early"]), (stuck_anew, [])):
        effects.clear()
        control = RunControl()
        for flag in (begun, release, left):
            flag.clear()
        store = MemoryCheckpointStore()
        builder = GraphBuilder("stuck")
        builder.add_node("stuck", node)
        builder.add_edge(START, "stuck")
        run = asyncio.create_task(
            builder.build(store).run(None, RunOptions(thread_id="alice", control=control))
        )
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        control.cancel()
        assert (await run).stop_reason == "cancelled"
        before = list(store.history("alice"))
        release.set()
        assert await asyncio.to_thread(left.wait, PATIENCE)
        assert (effects, list(store.history("alice"))) == (expected, before)


@pytest.mark.parametrize("blocking", [True, False])
async def test_an_effect_that_is_under_way_when_the_run_is_stopped_is_not_kept(blocking: bool) -> None:
    begun, release, left = threading.Event(), threading.Event(), threading.Event()
    control = RunControl()

    def effect() -> str:
        begun.set()
        wait_for(release)
        return "too late"

    def stuck(ctx: NodeContext) -> None:
        try:
            ctx.once("effect", effect)
        finally:
            left.set()

    store = Slow() if blocking else MemoryCheckpointStore()
    builder = GraphBuilder("stuck")
    builder.add_node("stuck", stuck)
    builder.add_edge(START, "stuck")
    run = asyncio.create_task(builder.build(store).run(None, RunOptions(thread_id="alice", control=control)))
    assert await asyncio.to_thread(begun.wait, PATIENCE)
    control.cancel()
    assert (await run).stop_reason == "cancelled"
    before = list(store.history("alice"))
    release.set()
    assert await asyncio.to_thread(left.wait, PATIENCE)
    assert list(store.history("alice")) == before
