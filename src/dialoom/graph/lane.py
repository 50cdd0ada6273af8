"""Doing: one attempt at a node, and what the engine asks of whatever carries a run."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeGuard, TypeVar, cast

import msgspec

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.graph.commit import PAUSED, Outcome, Paused
from dialoom.graph.context import NodeContext
from dialoom.graph.errors import Interrupted
from dialoom.graph.events import NodeStatus
from dialoom.graph.publish import Publisher
from dialoom.graph.result import NodeError, NodeResult
from dialoom.graph.retry import NodeFailedError
from dialoom.graph.table import NodeOutput, NodeSpec
from dialoom.graph.trouble import error_of

T = TypeVar("T")
Task = tuple[NodeSpec, NodeContext]


class Failure(msgspec.Struct, frozen=True):
    """A failed attempt that may be followed by another: what to tell, and what a policy asks about."""

    error: NodeError
    cause: Exception


class Lane(Protocol):
    """What carries one run: the caller's thread, or a task on an event loop.

    A stop request ends the wait for nodes, never the wait for a store. A lane raises no `CancelledError`
    into the engine: cancelled from outside, it asks its run to stop, and whoever made it raises at the end.
    """

    may_block: bool
    """Whether plain nodes and stores that block may be called right here."""
    cancelled: BaseException | None
    """What cancelled the lane from outside, to be raised once the run is safely over."""

    def end(self) -> Coroutine[Any, Any, None] | None:
        """Carry no more, and end what was begun for supersteps that do not come; returns what to wait for."""
        ...

    def begin_nodes(self) -> None:
        """Say that from here on the engine itself awaits nodes, one after the other."""
        ...

    def end_nodes(self) -> None:
        """Say that it does so no more."""
        ...

    def caught(self, node: str, error: BaseException) -> Outcome:
        """Return what it comes to that `node`, awaited by the engine, raised `error`; or raise it on."""
        ...

    async def run_nodes(self, tasks: Sequence[Task]) -> Sequence[Outcome]:
        """Run all `tasks` and return their outcomes in that order; None where a stop left one unfinished."""
        ...

    async def in_store(self, call: Callable[[], T], *, blocking: bool) -> T:
        """Return what `call` returns; with `blocking` it may wait, so it must not run on an event loop."""
        ...

    async def wait_for(self, signal: CancelScope) -> None:
        """Wait until `signal` is cancelled or the run is asked to stop."""
        ...

    async def drain(self, publisher: Publisher) -> None:
        """Wait until the reader of the run, if it has one, is no longer behind."""
        ...


async def attempt(spec: NodeSpec, context: NodeContext, publisher: Publisher | None) -> Outcome:
    """Run a node once and make a value of whatever comes of it. Waits only where the node does."""
    outcome: Outcome = None
    if publisher is not None:
        publisher.node_begin(context.step, spec.name, context.item)
    try:
        output = spec.fn(context)
        if spec.is_async:
            output = await cast("Awaitable[NodeOutput]", output)
        outcome = read(spec.name, output)
    except BaseException as error:  # noqa: BLE001 - seam: `caught` raises on what is not for the engine
        outcome = caught(spec.name, error)
    finally:
        if publisher is not None:
            publisher.node_end(context.step, spec.name, status_of(outcome), context.item)
    return outcome


async def try_guarded(spec: NodeSpec, context: NodeContext) -> Outcome | Failure:
    """Run a node once, for a caller who may try it again and who does the telling."""
    try:
        output = spec.fn(context)
        if spec.is_async:
            output = await cast("Awaitable[NodeOutput]", output)
        outcome = read(spec.name, output)
    except Exception as error:  # noqa: BLE001 - seam: nodes are foreign code
        return Failure(error_of(spec.name, error), error)
    except BaseException as error:  # noqa: BLE001 - seam: `caught` raises on what is not for the engine
        return caught(spec.name, error)
    if isinstance(outcome, NodeError):
        return Failure(outcome, NodeFailedError(outcome.message))
    return outcome


def caught(node: str, error: BaseException) -> Outcome:
    """Return what it comes to that `node` raised `error`. Raises it on when no node may be kept from that."""
    match error:
        case Cancelled():
            return None
        case Interrupted():
            return PAUSED
        case Exception():
            return error_of(node, error)
        case _:
            raise error


def status_of(outcome: Outcome) -> NodeStatus:
    if outcome is None:
        return "cancelled"
    if isinstance(outcome, Paused):
        return "paused"
    return "ok" if isinstance(outcome, NodeResult) else "error"


def read(node: str, output: object) -> NodeResult | NodeError:
    """Return what `node` gave back as a result, or what is wrong with it."""
    if is_dict(output):
        return NodeResult(writes=output)
    if output is None:
        return _NOTHING
    if isinstance(output, NodeResult):
        reason = output.trouble() or output.error
        return output if reason is None else NodeError(node=node, message=reason)
    if isinstance(output, Mapping):
        return NodeResult(writes=cast("Mapping[str, Any]", output))
    if isinstance(output, Awaitable):
        if isinstance(output, Coroutine):
            output.close()  # left alone it would warn that nobody awaited it
        return NodeError(
            node=node, message="it is plain but returned an awaitable; declare it with async def"
        )
    found = type(output).__name__
    return NodeError(
        node=node, message=f"it returned {found}; return a mapping of writes, a NodeResult or None"
    )


_NOTHING = NodeResult()


def is_dict(output: object) -> TypeGuard[dict[str, Any]]:
    """Tell the usual output at a tenth of what the general check for a mapping costs."""
    return type(output) is dict


def lines_of(tasks: Sequence[Task], waiting: Sequence[int], limit: int) -> list[tuple[int, Sequence[int]]]:
    """Return how many of which of the `waiting` may run at once: each map has a limit of its own."""
    if all(tasks[at][0].each is None for at in waiting):
        return [(limit, waiting)]
    lines: dict[str, tuple[int, list[int]]] = {}
    for at in waiting:
        spec = tasks[at][0]
        name, most = ("", limit) if spec.each is None else (spec.name, min(limit, spec.each.limit))
        lines.setdefault(name, (most, []))[1].append(at)
    return list(lines.values())
