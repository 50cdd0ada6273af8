"""Runs and nodes as OpenTelemetry spans, with the names of the GenAI conventions where they fit."""

from threading import Lock
from typing import Any, Final

from dialoom.base.errors import MissingExtraError
from dialoom.base.events import Event
from dialoom.graph.events import ErrorEvent, NodeBegin, NodeEnd, Retry, RunBegin, RunFinished

MAX_RUNS: Final = 10_000

Place = tuple[tuple[str, ...], str, int | None]


class OtelObserver:
    """Makes a span for every run and, below it, for every node; a subgraph's lie below the node it runs in.

    A run's span is `invoke_workflow GRAPH`, of the thread as `gen_ai.conversation.id`. What people wrote is
    in none of them: no state, no emitted values, and of an error no more than that there was one. `tracer` is
    one of OpenTelemetry's; without it the global provider is asked. Raises MissingExtraError when the package
    is not installed.
    """

    def __init__(self, tracer: Any = None) -> None:
        from importlib import import_module  # only a program with spans pays for it

        try:
            self._api: Any = import_module("opentelemetry.trace")
        except ImportError as error:
            raise MissingExtraError("opentelemetry-api", "otel") from error
        self._tracer = self._api.get_tracer("dialoom") if tracer is None else tracer
        self._lock = Lock()
        self._runs: dict[str, _OpenRun] = {}

    def on_event(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, RunBegin) and not event.ns:
                if len(self._runs) < MAX_RUNS:
                    self._runs[event.run_id] = _OpenRun(self._api, self._tracer, event)
            elif (run := self._runs.get(event.run_id)) is not None:
                run.hear(event)
                if isinstance(event, RunFinished) and not event.ns:
                    del self._runs[event.run_id]


class _OpenRun:
    """The spans of one run that have not ended."""

    def __init__(self, api: Any, tracer: Any, event: RunBegin) -> None:
        self._api = api
        self._tracer = tracer
        self._root = tracer.start_span(
            f"invoke_workflow {event.graph}",
            attributes={
                "gen_ai.operation.name": "invoke_workflow",
                "gen_ai.agent.name": event.graph,
                "gen_ai.conversation.id": event.thread_id,
                "dialoom.run.id": event.run_id,
            },
        )
        self._open: dict[Place, Any] = {}

    def hear(self, event: Event) -> None:
        match event:
            case NodeBegin():
                self._open[event.ns, event.node, event.item] = self._tracer.start_span(
                    f"node {event.node}",
                    context=self._api.set_span_in_context(self._around(event.ns)),
                    attributes={"dialoom.node": event.node, "dialoom.step": event.step},
                )
            case NodeEnd():
                span = self._open.pop((event.ns, event.node, event.item))
                span.set_attribute("dialoom.node.status", event.status)
                if event.status == "error":
                    self._fail(span)
                span.end()
            case Retry():
                self._around((*event.ns, event.node)).add_event("retry", {"dialoom.attempt": event.attempt})
            case ErrorEvent():
                self._fail(self._root)
            case RunFinished(ns=()):
                self._root.set_attribute("dialoom.stop_reason", event.stop_reason)
                self._root.set_attribute("dialoom.steps", event.steps)
                self._root.end()
            case _:
                pass

    def _around(self, ns: tuple[str, ...]) -> Any:
        """Return the newest open span of the node that `ns` leads to; the run's when there is none."""
        for (around, node, _), span in reversed(self._open.items()):
            if (*around, node) == ns:
                return span
        return self._root

    def _fail(self, span: Any) -> None:
        span.set_status(self._api.StatusCode.ERROR)
        span.set_attribute("error.type", "node_error")
