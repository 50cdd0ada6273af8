"""Carrying a run on the event loop that is running."""

from collections.abc import Callable, Coroutine
from typing import Any

from dialoom.graph.async_lane import AsyncLane
from dialoom.graph.eager_lane import EagerLane
from dialoom.graph.result import RunResult
from dialoom.graph.run import Run


def carry_on_loop(begin: Callable[[], Run]) -> Coroutine[Any, Any, RunResult]:
    """Execute the run that `begin` makes, in the task that awaits this.

    Cancelled meanwhile, it first brings the run to a safe end, then raises.
    """
    return Run.carry(begin, _lane_of)


def _lane_of(run: Run) -> AsyncLane:
    if run.options.schedule == "eager":
        return EagerLane(run, run.setup)
    limit = run.options.max_concurrency
    return AsyncLane(run.stop, run.publisher, limit, clock=run.clock, chance=run.chance)
