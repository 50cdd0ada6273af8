"""What a run says while it goes on. Each event has its own class and, in JSON, a dotted `type`."""

from typing import Any, Literal

from dialoom.base.events import Event
from dialoom.graph.frontier import Interrupt
from dialoom.graph.result import StopReason

NodeStatus = Literal["ok", "error", "cancelled", "paused"]


class RunBegin(Event, frozen=True, kw_only=True, tag="run.begin", tag_field="type"):
    """A run starts. First event of every run."""

    thread_id: str
    ns: tuple[str, ...] = ()
    graph: str


class NodeBegin(Event, frozen=True, kw_only=True, tag="node.begin", tag_field="type"):
    """A node starts. `step` counts the supersteps of the run from 1; `item` is as in `ctx.item`."""

    thread_id: str
    ns: tuple[str, ...] = ()
    step: int
    node: str
    item: int | None = None


class Chunk(Event, frozen=True, tag="node.chunk", tag_field="type", gc=False):
    """A value a node emitted; `item` is as in `ctx.item`."""

    thread_id: str
    step: int
    node: str
    value: Any
    ns: tuple[str, ...] = ()
    item: int | None = None


class NodeEnd(Event, frozen=True, kw_only=True, tag="node.end", tag_field="type"):
    """A node ended, after `elapsed` seconds with all its attempts.

    `cancelled`: it was stopped and runs again on resume. `paused`: it does so once its question is answered.
    """

    thread_id: str
    ns: tuple[str, ...] = ()
    step: int
    node: str
    status: NodeStatus
    elapsed: float
    item: int | None = None


class Retry(Event, frozen=True, kw_only=True, tag="node.retry", tag_field="type"):
    """A node failed its `attempt` and is tried again after `delay` seconds."""

    thread_id: str
    ns: tuple[str, ...] = ()
    step: int
    node: str
    attempt: int
    delay: float
    message: str
    item: int | None = None


class InterruptEvent(Event, frozen=True, kw_only=True, tag="run.interrupt", tag_field="type"):
    """A node pauses for an answer; the run goes on without it and then ends."""

    thread_id: str
    ns: tuple[str, ...] = ()
    step: int
    interrupt: Interrupt


class StepCommitted(Event, frozen=True, kw_only=True, tag="step.committed", tag_field="type"):
    """A superstep is committed and, with a store, durable. `nodes` finished in it, `channels` changed."""

    thread_id: str
    ns: tuple[str, ...] = ()
    step: int
    nodes: tuple[str, ...]
    channels: tuple[str, ...]
    checkpoint_id: str | None


class ErrorEvent(Event, frozen=True, kw_only=True, tag="run.error", tag_field="type"):
    """Something failed; the run ends after this superstep. `node` is as in `NodeError`."""

    thread_id: str
    ns: tuple[str, ...] = ()
    step: int
    node: str
    message: str


class RunFinished(Event, frozen=True, kw_only=True, tag="run.finished", tag_field="type"):
    """The run is over, for whatever reason. Last event of every run."""

    thread_id: str
    ns: tuple[str, ...] = ()
    steps: int
    stop_reason: StopReason
    checkpoint_id: str | None


GraphEvent = (
    RunBegin | NodeBegin | Chunk | NodeEnd | Retry | InterruptEvent | StepCommitted | ErrorEvent | RunFinished
)
