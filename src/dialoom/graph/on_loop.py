"""Carrying a run on the event loop that is running."""

import asyncio

from dialoom.graph.async_lane import AsyncLane
from dialoom.graph.eager_lane import EagerLane
from dialoom.graph.result import RunResult
from dialoom.graph.run import Run


async def carry_on_loop(run: Run) -> RunResult:
    """Execute `run` in this task. Cancelled meanwhile, it first brings the run to a safe end, then raises."""
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
