"""Turns of agents as OpenTelemetry spans, with the real package."""

import asyncio
import sys
from typing import Any

import pytest

from dialoom.agent import AgentOtelObserver, ReActAgent
from dialoom.base.errors import MissingExtraError
from dialoom.graph import MetricsObserver, RunControl, RunOptions
from dialoom.llm import Gate, MockProvider, ProviderError, TextDelta, Usage
from tests.agent.tools import add, call, refund

sdk: Any = pytest.importorskip("opentelemetry.sdk.trace", reason="NOTICE: no opentelemetry-sdk")
processors: Any = pytest.importorskip("opentelemetry.sdk.trace.export")
memory: Any = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")


class Spans:
    """What was exported, by name; `observer` makes it."""

    def __init__(self) -> None:
        self._exporter = memory.InMemorySpanExporter()
        provider = sdk.TracerProvider()
        provider.add_span_processor(processors.SimpleSpanProcessor(self._exporter))
        self.observer = AgentOtelObserver(provider.get_tracer("test"))

    def tree(self) -> list[tuple[str, str | None]]:
        """Each span with the name of the one above it, in the order in which they began."""
        spans = sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
        names = {span.context.span_id: span.name for span in spans if span.context}
        return [(span.name, names[span.parent.span_id] if span.parent else None) for span in spans]

    def of(self, name: str) -> list[Any]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]


async def test_a_turn_is_a_span_with_its_requests_and_calls_below() -> None:
    spans = Spans()
    model = MockProvider(model="gpt-4o").queue_tool_calls(call("c1", "add", a=2, b=3))
    model.queue_text("a secret 5", usage=Usage(input_tokens=30, output_tokens=4, cache_read_tokens=10))
    agent = ReActAgent(model, [add], name="helper").add_observer(spans.observer)
    await agent.run("a secret question", RunOptions(thread_id="t"))
    assert spans.tree() == [
        ("invoke_agent helper", None),
        ("chat", "invoke_agent helper"),
        ("execute_tool add", "invoke_agent helper"),
        ("chat", "invoke_agent helper"),
    ]
    (turn,) = spans.of("invoke_agent helper")
    assert dict(turn.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "helper",
        "gen_ai.conversation.id": "t",
    }
    assert dict(spans.of("chat")[1].attributes) == {
        "gen_ai.operation.name": "chat",
        "dialoom.round": 2,
        "gen_ai.provider.name": "mock",
        "gen_ai.response.model": "gpt-4o",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.usage.cache_read.input_tokens": 10,
    }
    (tool,) = spans.of("execute_tool add")
    assert dict(tool.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.call.id": "c1",
    }
    told = str([dict(span.attributes) for name, _ in spans.tree() for span in spans.of(name)])
    assert "secret" not in told


async def test_an_agent_that_is_asked_lies_below_the_one_that_asks() -> None:
    spans = Spans()
    expert = ReActAgent(MockProvider().queue_text("5"), name="expert")
    model = MockProvider().queue_tool_calls(call("c1", "expert", question="2 + 3?")).queue_text("Five.")
    await ReActAgent(model, [expert.as_tool("Sums.")], name="boss").add_observer(spans.observer).run("?")
    assert spans.tree() == [
        ("invoke_agent boss", None),
        ("chat", "invoke_agent boss"),
        ("execute_tool expert", "invoke_agent boss"),
        ("invoke_agent expert", "invoke_agent boss"),
        ("chat", "invoke_agent expert"),
        ("chat", "invoke_agent boss"),
    ]


async def test_failures_are_marked_and_what_is_open_when_the_run_is_over_is_ended() -> None:
    spans, gate, control = Spans(), Gate(), RunControl()
    model = MockProvider().queue_tool_calls(call("c1", "nobody" * 50))
    model.queue_error(ProviderError("auth", "the key is not valid"))
    agent = ReActAgent(model, [refund], name="helper").add_observer(spans.observer)
    failed = await agent.run("?")
    (tool,) = [spans.of(name)[0] for name, _ in spans.tree() if name.startswith("execute_tool")]
    assert (tool.status.status_code.name, tool.attributes["error.type"]) == ("ERROR", "tool_error")
    assert len(tool.name) < 100
    chat = spans.of("chat")[-1]
    assert (chat.attributes["error.type"], chat.attributes["dialoom.stop_reason"]) == (
        "provider_error",
        "halted",
    )
    model.queue_events(TextDelta("half"), gate)
    running = asyncio.create_task(agent.resume(failed, options=RunOptions(control=control)))
    await gate.reached.wait()
    control.cancel()
    await running
    assert spans.of("invoke_agent helper")[-1].attributes["dialoom.stop_reason"] == "cancelled"
    await ReActAgent(MockProvider()).add_observer(spans.observer).run("?")
    assert spans.of("invoke_agent agent")[0].attributes["dialoom.stop_reason"] == "error"
    assert spans.of("chat")[-1].attributes["error.type"] == "provider_error"


async def test_calls_that_share_an_id_are_spans_of_their_own() -> None:
    spans = Spans()
    model = MockProvider().queue_tool_calls(call("c", "add", a=1, b=1), call("c", "add", a=2, b=2))
    await ReActAgent(model.queue_text("Done."), [add]).add_observer(spans.observer).run("?")
    assert len(spans.of("execute_tool add")) == 2


async def test_events_of_which_no_beginning_was_heard_are_passed_over() -> None:
    spans = Spans()
    model = MockProvider().queue_tool_calls(call("c1", "refund", order=9, amount=30)).queue_text("Done.")
    agent = ReActAgent(model, [refund], name="helper")
    waiting = await agent.run("Refund order 9.")
    agent.add_observer(spans.observer).add_observer(MetricsObserver())
    await agent.resume(waiting, {"c1": {"type": "approve"}})
    assert spans.tree() == [("invoke_agent helper", None), ("chat", "invoke_agent helper")]


def test_without_the_package_the_line_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(MissingExtraError, match=r'pip install "dialoom\[otel\]"'):
        AgentOtelObserver()
