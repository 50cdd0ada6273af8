"""Carrying a run on the event loop that is running."""

import asyncio
from collections.abc import Callable

from dialoom.graph.async_lane import AsyncLane
from dialoom.graph.eager_lane import EagerLane
from dialoom.graph.result import RunResult
from dialoom.graph.run import Run


async def carry_on_loop(begin: Callable[[], Run]) -> RunResult:
    """Execute the run that `begin` makes, in this task.

    Cancelled meanwhile, it first brings the run to a safe end, then raises.
    """
    run = begin()
    del begin  # a run may take long, and thousands of them may wait
    limit = run.options.max_concurrency
    if run.options.schedule == "eager":
        lane: AsyncLane = EagerLane(run, run.setup)
    else:
        lane = AsyncLane(run.stop, run.publisher, limit, clock=run.clock, chance=run.chance)
    try:
        result = await run.execute(lane)
    finally:
        if run.options.schedule == "eager":
            await lane.leave()
        if (timer := lane.end()) is not None:
            await asyncio.wait({timer})
    if lane.cancelled is not None:
        raise lane.cancelled
    return result
