"""One listener interface, and a base of it with a method for each thing an agent does."""

import threading
from typing import Any

import pytest

from dialoom.agent import AgentObserver, Approval, ReActAgent, ToolFinished
from dialoom.base.events import Event
from dialoom.graph import JsonTraceObserver, MetricsObserver, StepCommitted
from dialoom.llm import ChatResponse, MockProvider, ToolCall
from dialoom.tools import tool
from tests.agent.tools import add, call, refund


class Diary(AgentObserver):
    """Writes down what it hears, and who speaks at the same time."""

    def __init__(self) -> None:
        self.lines: list[tuple[Any, ...]] = []
        self.others = 0
        self._speaking = threading.Lock()

    def on_event(self, event: Event) -> None:
        if not self._speaking.acquire(blocking=False):
            self.others += 1
            return
        try:
            super().on_event(event)
        finally:
            self._speaking.release()

    def on_model_start(self, number: int) -> None:
        self.lines.append(("asks", number))

    def on_delta(self, text: str) -> None:
        self.lines.append(("says", text))

    def on_model_end(self, response: ChatResponse) -> None:
        self.lines.append(("said", response.text))

    def on_tool_call(self, call: ToolCall) -> None:
        self.lines.append(("calls", call.id))

    def on_tool_result(self, finished: ToolFinished) -> None:
        self.lines.append(("gets", finished.call_id, finished.content))

    def on_approval(self, approval: Approval) -> None:
        self.lines.append(("waits", approval.id))

    def on_final(self, answer: str) -> None:
        self.lines.append(("answers", answer))


@pytest.mark.promise("agent-040", "agent-041", "agent-042")
async def test_an_observer_hears_each_thing_in_order() -> None:
    model = MockProvider().queue_tool_calls(call("c1", "add", a=2, b=3)).queue_text("It is 5.", chunks=2)
    diary = Diary()
    await ReActAgent(model, [add]).add_observer(diary).run("2 + 3?")
    assert diary.lines == [
        ("asks", 1),
        ("said", ""),
        ("calls", "c1"),
        ("gets", "c1", "5"),
        ("asks", 2),
        ("says", "It i"),
        ("says", "s 5."),
        ("said", "It is 5."),
        ("answers", "It is 5."),
    ]


@pytest.mark.promise("agent-040")
async def test_calls_that_are_not_run_are_told_like_any_other() -> None:
    model = MockProvider().queue_tool_calls(call("c1", "nobody"), call("c2", "add", a="x", b=1))
    diary = Diary()
    await ReActAgent(model.queue_text("I see."), [add]).add_observer(diary).run("Go.")
    assert [line[:2] for line in diary.lines if line[0] in {"calls", "gets"}] == [
        ("calls", "c1"),
        ("gets", "c1"),
        ("calls", "c2"),
        ("gets", "c2"),
    ]


async def test_a_wait_for_a_person_is_told() -> None:
    model = MockProvider().queue_tool_calls(call("c1", "refund", order=9, amount=30))
    diary = Diary()
    await ReActAgent(model, [refund]).add_observer(diary).run("Refund order 9.")
    assert diary.lines[-1] == ("waits", "c1")


@pytest.mark.promise("agent-044")
async def test_an_observer_is_called_by_one_thread_at_a_time_while_tools_run_in_parallel() -> None:
    together = threading.Barrier(8, timeout=60)

    @tool
    def step(n: int) -> int:
        together.wait()
        return n

    model = MockProvider().queue_tool_calls(*(call(f"c{n}", "step", n=n) for n in range(8)))
    diary = Diary()
    await ReActAgent(model.queue_text("Done."), [step]).add_observer(diary).run("Go.")
    assert diary.others == 0
    assert sorted(line[1] for line in diary.lines if line[0] == "calls") == [f"c{n}" for n in range(8)]
    assert sorted(line[1] for line in diary.lines if line[0] == "gets") == [f"c{n}" for n in range(8)]


async def test_an_observer_that_fails_is_logged_and_the_turn_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(AgentObserver):
        def on_tool_call(self, call: ToolCall) -> None:
            raise ValueError("no ink")

    model = MockProvider().queue_tool_calls(call("c1", "add", a=2, b=3)).queue_text("5")
    result = await ReActAgent(model, [add]).add_observer(Broken()).run("2 + 3?")
    assert result.answer == "5"
    assert "observer failed" in caplog.text


async def test_a_base_observer_hears_everything_and_does_nothing() -> None:
    model = MockProvider().queue_tool_calls(
        call("c1", "refund", order=9, amount=30), call("c2", "add", a=1, b=1)
    )
    agent = ReActAgent(model.queue_text("Done."), [add, refund]).add_observer(AgentObserver())
    waiting = await agent.run("Go.")
    assert (await agent.resume(waiting, {"c1": {"type": "approve"}})).finished


async def test_the_engines_own_observers_work_on_agents_too() -> None:
    class Commits:
        def __init__(self) -> None:
            self.nodes: list[tuple[str, ...]] = []

        def on_event(self, event: Event) -> None:
            if isinstance(event, StepCommitted):
                self.nodes.append(event.nodes)

    commits, metrics, trace = Commits(), MetricsObserver(), JsonTraceObserver()
    model = MockProvider().queue_tool_calls(call("c1", "add", a=2, b=3)).queue_text("5")
    agent = ReActAgent(model, [add])
    for observer in (commits, metrics, trace):
        agent.add_observer(observer)
    await agent.run("2 + 3?")
    assert commits.nodes == [("model",), ("tools",), ("model",)]
