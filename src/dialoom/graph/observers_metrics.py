"""How often and how long, over all runs: counts that only grow."""

from threading import Lock
from typing import Any, Final

import msgspec

from dialoom.base.events import Event
from dialoom.graph.events import Chunk, InterruptEvent, NodeEnd, Retry, RunBegin, RunFinished, StepCommitted
from dialoom.graph.result import StopReason

MAX_NODES: Final = 1_000


class NodeMetrics(msgspec.Struct, kw_only=True):
    """One node of one namespace: how often it ended, how often badly, and the seconds it took."""

    ns: tuple[str, ...]
    node: str
    ended: int = 0
    errors: int = 0
    retries: int = 0
    cancelled: int = 0
    paused: int = 0
    seconds: float = 0.0
    slowest: float = 0.0


class Metrics(msgspec.Struct, kw_only=True):
    """What a MetricsObserver has counted. `unlisted` nodes are in the totals but found no room in `nodes`."""

    runs: int = 0
    ended: dict[StopReason, int] = {}
    steps: int = 0
    node_errors: int = 0
    retries: int = 0
    interrupts: int = 0
    chunks: int = 0
    nodes: list[NodeMetrics] = []
    unlisted: int = 0


class MetricsObserver:
    """Counts runs, supersteps, interrupts, chunks, and for each node its ends, errors, retries and seconds.

    May listen to many graphs at once, from any thread; nodes of the same name and namespace are counted
    together, so give each graph its own where they must be told apart. At most `max_nodes` nodes are listed.
    """

    def __init__(self, *, max_nodes: int = MAX_NODES) -> None:
        self._max_nodes = max_nodes
        self._lock = Lock()
        self._metrics = Metrics()
        self._nodes: dict[tuple[tuple[str, ...], str], NodeMetrics] = {}

    def on_event(self, event: Event) -> None:
        with self._lock:
            metrics = self._metrics
            match event:
                case RunBegin(ns=()):
                    metrics.runs += 1
                case StepCommitted():
                    metrics.steps += 1
                case Chunk():
                    metrics.chunks += 1
                case NodeEnd():
                    self._node_end(event)
                case Retry():
                    self._retry(event)
                case InterruptEvent():
                    metrics.interrupts += 1
                case RunFinished(ns=()):
                    metrics.ended[event.stop_reason] = metrics.ended.get(event.stop_reason, 0) + 1
                case _:
                    pass

    def to_dict(self) -> dict[str, Any]:
        """Return the counts so far: JSON values only."""
        with self._lock:
            return msgspec.to_builtins(self._metrics)

    def to_json(self) -> str:
        """Return `to_dict` as indented text."""
        return msgspec.json.format(msgspec.json.encode(self.to_dict()), indent=2).decode()

    def _node_end(self, event: NodeEnd) -> None:
        failed = event.status == "error"
        self._metrics.node_errors += failed
        node = self._node((event.ns, event.node))
        if node is None:
            self._metrics.unlisted += 1
            return
        node.ended += 1
        node.errors += failed
        node.cancelled += event.status == "cancelled"
        node.paused += event.status == "paused"
        node.seconds += event.elapsed
        node.slowest = max(node.slowest, event.elapsed)

    def _retry(self, event: Retry) -> None:
        self._metrics.retries += 1
        if (node := self._node((event.ns, event.node))) is not None:
            node.retries += 1

    def _node(self, place: tuple[tuple[str, ...], str]) -> NodeMetrics | None:
        node = self._nodes.get(place)
        if node is None and len(self._nodes) < self._max_nodes:
            node = self._nodes[place] = NodeMetrics(ns=place[0], node=place[1])
            self._metrics.nodes.append(node)
        return node
