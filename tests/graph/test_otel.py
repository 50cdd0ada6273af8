"""Runs as OpenTelemetry spans: with a stand-in for the package, and with the package where it is there."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from dialoom.base.errors import MissingExtraError
from dialoom.graph import (
    START,
    Chunk,
    GraphBuilder,
    NodeBegin,
    NodeContext,
    NodeEnd,
    NodeResult,
    OtelObserver,
    RetryPolicy,
    RunBegin,
    RunFinished,
    RunOptions,
)
from dialoom.graph import otel as otel_module


class Span:
    """A span as OpenTelemetry's, that can be looked at."""

    def __init__(self, name: str, context: "Span | None", attributes: dict[str, Any]) -> None:
        self.name = name
        self.parent = None if context is None else context.name
        self.attributes = dict(attributes)
        self.events: list[tuple[str, Any]] = []
        self.status = "unset"
        self.ended = 0

    def set_attribute(self, key: str, value: object) -> None:
        self.attributes[key] = value

    def set_status(self, status: str) -> None:
        self.status = status

    def add_event(self, name: str, attributes: dict[str, Any]) -> None:
        self.events.append((name, attributes))

    def end(self) -> None:
        self.ended += 1


class Tracer:
    """Keeps the spans it made."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def start_span(self, name: str, *, attributes: dict[str, Any], context: Span | None = None) -> Span:
        self.spans.append(Span(name, context, attributes))
        return self.spans[-1]


@pytest.fixture
def tracer(monkeypatch: pytest.MonkeyPatch) -> Tracer:
    """What the stand-in for the package gives to those who ask for a tracer."""
    tracer = Tracer()
    package = SimpleNamespace(
        get_tracer=lambda _: tracer,
        set_span_in_context=lambda span: span,
        StatusCode=SimpleNamespace(ERROR="error"),
    )
    monkeypatch.setitem(sys.modules, "opentelemetry", SimpleNamespace(trace=package))
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", package)
    return tracer


def shop() -> GraphBuilder:
    """A node that needs two attempts, and one that fails with something secret."""
    builder = GraphBuilder("shop")

    def flaky(ctx: NodeContext) -> None:
        ctx.emit("secret chunk")
        if ctx.attempt == 1:
            raise OSError("secret of the server")

    builder.add_node("fetch", flaky, blocking=False, retry=RetryPolicy(delay=0))
    builder.add_node("ship", lambda _: NodeResult.fail("secret address"), blocking=False)
    builder.add_edge(START, "fetch")
    builder.add_edge("fetch", "ship")
    return builder


def test_a_run_is_a_span_with_its_nodes_below(tracer: Tracer) -> None:
    result = shop().build(observers=[OtelObserver()]).run_sync({}, RunOptions(thread_id="alice"))
    root, fetch, ship = tracer.spans
    assert (root.name, root.parent, root.status, root.ended) == ("invoke_workflow shop", None, "error", 1)
    assert root.attributes == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.agent.name": "shop",
        "gen_ai.conversation.id": "alice",
        "dialoom.run.id": result.run_id,
        "dialoom.stop_reason": "error",
        "dialoom.steps": 1,
        "error.type": "node_error",
    }
    assert (fetch.name, fetch.parent, fetch.status, fetch.ended) == ("node fetch", root.name, "unset", 1)
    assert fetch.attributes == {"dialoom.node": "fetch", "dialoom.step": 1, "dialoom.node.status": "ok"}
    assert fetch.events == [("retry", {"dialoom.attempt": 1})]
    assert (ship.status, ship.ended) == ("error", 1)
    assert "secret" not in str([vars(span) for span in tracer.spans])


def test_nodes_of_a_subgraph_and_strays_find_their_parent(tracer: Tracer) -> None:
    observer = OtelObserver(tracer)
    head: dict[str, Any] = {"run_id": "r", "thread_id": "t"}
    for event in (
        NodeBegin(**head, seq=1, step=1, node="unheard"),
        RunBegin(**head, seq=1, graph="parent"),
        NodeBegin(**head, seq=2, step=1, node="search"),
        RunBegin(**head, seq=3, graph="child", ns=("search",)),
        NodeBegin(**head, seq=4, step=1, node="rank", ns=("search",)),
        Chunk(**head, seq=5, step=1, node="rank", ns=("search",), value="x"),
        NodeBegin(**head, seq=6, step=1, node="stray", ns=("elsewhere",)),
        NodeEnd(**head, seq=7, step=1, node="rank", ns=("search",), status="ok", elapsed=1.0),
        RunFinished(**head, seq=8, steps=1, stop_reason="finished", checkpoint_id=None),
    ):
        observer.on_event(event)
    assert [(span.name, span.parent) for span in tracer.spans] == [
        ("invoke_workflow parent", None),
        ("node search", "invoke_workflow parent"),
        ("node rank", "node search"),
        ("node stray", "invoke_workflow parent"),
    ]


def test_no_more_runs_than_there_is_room_for_are_followed(
    tracer: Tracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otel_module, "MAX_RUNS", 0)
    shop().build(observers=[OtelObserver()]).run_sync()
    assert tracer.spans == []


def test_without_the_package_its_install_line_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(MissingExtraError, match=r'pip install "dialoom\[otel\]"'):
        OtelObserver()


def test_the_real_package_takes_our_spans() -> None:
    sdk = pytest.importorskip(
        "opentelemetry.sdk.trace", reason="NOTICE: opentelemetry-sdk is not installed; real spans not tried"
    )
    export: Any = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    processors: Any = pytest.importorskip("opentelemetry.sdk.trace.export")
    exporter = export.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(processors.SimpleSpanProcessor(exporter))
    shop().build(observers=[OtelObserver(provider.get_tracer("test"))]).run_sync()
    fetch, ship, root = exporter.get_finished_spans()
    assert (root.name, fetch.name, ship.name) == ("invoke_workflow shop", "node fetch", "node ship")
    assert fetch.parent.span_id == ship.parent.span_id == root.context.span_id
    assert not root.status.is_ok
