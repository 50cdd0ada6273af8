"""Trying a node until it succeeds: the loop over attempts that both lanes share."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from dialoom.graph.commit import Outcome
from dialoom.graph.context import Leash, NodeContext
from dialoom.graph.lane import Failure, Task, status_of
from dialoom.graph.publish import Publisher
from dialoom.graph.result import NodeError
from dialoom.graph.retry import ONCE, NodeTimeoutError
from dialoom.graph.table import NodeSpec
from dialoom.graph.trouble import error_of, refused

Chance = Callable[[], float]


class Trier(Protocol):
    """What a lane does for a guarded node. `pause` returns early when the run is asked to stop."""

    async def try_once(self, spec: NodeSpec, context: NodeContext) -> Outcome | Failure: ...
    async def pause(self, seconds: float) -> None: ...


async def persevere(
    task: Task, trier: Trier, publisher: Publisher | None, *, chance: Chance | None
) -> Outcome:
    """Try a node as often as its policy allows and return what it came to; None once the run is to stop."""
    spec, context = task
    outcome: Outcome = None
    if publisher is not None:
        publisher.node_begin(context.step, spec.name, context.item)
    try:
        attempt = 0
        while True:
            attempt += 1
            tried = await trier.try_once(spec, context.for_attempt(attempt))
            if not isinstance(tried, Failure):
                outcome = tried
                return outcome
            seconds, outcome = _verdict(spec, tried, attempt, chance)
            if seconds is None:
                return outcome
            if publisher is not None:
                publisher.retry(context.step, outcome, delay=seconds, item=context.item)
            # a stop that comes while it waits finds the node stopped, not failed
            outcome = None
            if not context.stop_requested:
                await trier.pause(seconds)
            if context.stop_requested:
                return None
    finally:
        if publisher is not None:
            publisher.node_end(context.step, spec.name, status_of(outcome), context.item)


def timed_out(spec: NodeSpec, leash: Leash) -> Failure:
    """Return the failure of an attempt that took longer than it may."""
    error = NodeTimeoutError(leash.overdue())
    return Failure(refused(spec.name, f"NodeTimeoutError: {error}"), error)


def _verdict(
    spec: NodeSpec, failure: Failure, attempt: int, chance: Chance | None
) -> tuple[float | None, NodeError]:
    """Return how long to wait before the next attempt, None for no more, and the error told until then."""
    told = msgspec.structs.replace(failure.error, attempts=attempt)
    try:
        return (spec.retry or ONCE).wait_after(attempt, failure.cause, chance or _chance()), told
    except Exception as error:  # noqa: BLE001 - seam: the predicate is foreign code
        return None, error_of(spec.name, error, prefix=f"retry_on, asked about {told.message!r}, raised ")


def _chance() -> Chance:
    from random import random  # only a node that is tried again pays for it

    return random
