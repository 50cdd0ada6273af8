"""What ran when and for how long, as spans a program or a person can read."""

from collections import OrderedDict
from threading import Lock
from typing import Any, Final, Literal

import msgspec

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import UsageError
from dialoom.base.events import Event
from dialoom.graph.events import (
    ErrorEvent,
    NodeBegin,
    NodeEnd,
    NodeStatus,
    Retry,
    RunBegin,
    RunFinished,
    StepCommitted,
)
from dialoom.graph.result import StopReason

MAX_RUNS: Final = 100
MAX_SPANS: Final = 10_000

Place = tuple[tuple[str, ...], str, int | None]
"""A task: the namespace it runs in, its node, and its item."""


class Span(msgspec.Struct, kw_only=True):
    """One node at work. `start` is in seconds from the beginning of its run, `seconds` None while it works.

    `parent` is the span of the node whose subgraph this one is in, `item` as in `ctx.item`. `retries` counts
    the attempts after the first of all tasks of the node at that moment.
    """

    id: int
    parent: int | None
    ns: tuple[str, ...]
    node: str
    item: int | None
    step: int
    start: float
    seconds: float | None = None
    status: NodeStatus | Literal["running"] = "running"
    error: str | None = None
    retries: int = 0


class Trace(msgspec.Struct, kw_only=True):
    """One run. `stop_reason` and `seconds` are None while it goes on; `dropped` spans found no room."""

    run_id: str
    thread_id: str
    graph: str
    stop_reason: StopReason | None = None
    steps: int = 0
    seconds: float | None = None
    error: str | None = None
    dropped: int = 0
    spans: list[Span] = []


class JsonTraceObserver:
    """Keeps the traces of the newest `max_runs` runs, each with its first `max_spans` spans.

    May listen to many graphs at once, from any thread. Emitted values and state are not in a trace; the
    texts of errors are.
    """

    def __init__(
        self, *, max_runs: int = MAX_RUNS, max_spans: int = MAX_SPANS, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._max_runs = max_runs
        self._max_spans = max_spans
        self._clock = clock
        self._lock = Lock()
        self._runs: OrderedDict[str, _Recording] = OrderedDict()

    def on_event(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, RunBegin) and not event.ns:
                trace = Trace(run_id=event.run_id, thread_id=event.thread_id, graph=event.graph)
                self._runs[event.run_id] = _Recording(trace, self._clock.monotonic(), self._max_spans)
                if len(self._runs) > self._max_runs:
                    self._runs.popitem(last=False)
            elif (recording := self._runs.get(event.run_id)) is not None:
                recording.hear(event, self._clock.monotonic())

    def to_dict(self, run_id: str | None = None) -> dict[str, Any]:
        """Return the trace of one run, by default of the newest: JSON values only.

        Raises UsageError when it is not kept.
        """
        with self._lock:
            recording = self._runs.get(next(reversed(self._runs), "") if run_id is None else run_id)
            if recording is None:
                what = "any run yet" if run_id is None else f"a run {run_id!r}; it keeps {self._max_runs}"
                raise UsageError(f"this observer has not heard of {what}; give it to build(observers=[...])")
            return msgspec.to_builtins(recording.trace)

    def to_json(self, run_id: str | None = None) -> str:
        """Return `to_dict` as indented text."""
        return msgspec.json.format(msgspec.json.encode(self.to_dict(run_id)), indent=2).decode()


class _Recording:
    """A trace that grows."""

    def __init__(self, trace: Trace, began: float, max_spans: int) -> None:
        self.trace = trace
        self._began = began
        self._max_spans = max_spans
        self._open: dict[Place, Span | None] = {}
        self._failed: dict[tuple[tuple[str, ...], str], Span] = {}

    def hear(self, event: Event, now: float) -> None:
        match event:
            case NodeBegin():
                self._node_begin(event, now)
            case NodeEnd():
                self._node_end(event)
            case Retry():
                self._retry(event)
            case ErrorEvent():
                self._error(event)
            case StepCommitted(ns=()):
                self.trace.steps = event.step
                self._failed.clear()
            case RunFinished(ns=()):
                self.trace.steps = event.steps
                self.trace.stop_reason = event.stop_reason
                self.trace.seconds = now - self._began
                self._failed.clear()
            case _:
                pass

    def _node_begin(self, event: NodeBegin, now: float) -> None:
        span: Span | None = None
        if len(self.trace.spans) < self._max_spans:
            span = Span(
                id=len(self.trace.spans) + 1,
                parent=self._parent(event.ns),
                ns=event.ns,
                node=event.node,
                item=event.item,
                step=event.step,
                start=now - self._began,
            )
            self.trace.spans.append(span)
        else:
            self.trace.dropped += 1
        self._open[event.ns, event.node, event.item] = span

    def _node_end(self, event: NodeEnd) -> None:
        span = self._open.pop((event.ns, event.node, event.item))
        if span is not None:
            span.seconds = event.elapsed
            span.status = event.status
            if event.status == "error":
                self._failed[event.ns, event.node] = span

    def _retry(self, event: Retry) -> None:
        for (ns, node, _), span in self._open.items():
            if span is not None and (ns, node) == (event.ns, event.node):
                span.retries += 1

    def _error(self, event: ErrorEvent) -> None:
        span = self._failed.get((event.ns, event.node))
        if span is None:
            self.trace.error = event.message
        else:
            span.error = event.message

    def _parent(self, ns: tuple[str, ...]) -> int | None:
        for (around, node, _), span in reversed(self._open.items()):
            if span is not None and (*around, node) == ns:
                return span.id
        return None
