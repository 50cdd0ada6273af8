"""Work that goes on when the call that began it is answered."""

import asyncio
import logging
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

from dialoom.server.problems import ProblemError

_log = logging.getLogger("dialoom.server")

MAX_JOBS = 200


class Background:
    """Owns jobs: `async with` it; leaving cancels what still runs and waits for it to end.

    A job that fails is logged and ends alone. One more than 200 is refused with `ProblemError`.
    """

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None
        self._jobs: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._group is not None
        group, self._group = self._group, None
        for job in self._jobs:
            job.cancel()
        await group.__aexit__(kind, error, trace)

    def __len__(self) -> int:
        return len(self._jobs)

    def is_going(self, name: str) -> bool:
        """Tell whether a job of this name is under way."""
        return any(job.get_name() == name for job in self._jobs)

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Begin `work`, which reports its own failures; `name` is for the log. Cancelling ends it alone."""
        if self._group is None or len(self._jobs) >= MAX_JOBS:
            work.close()
            raise ProblemError(503, "too_many_jobs", "too much is under way here; try again later")
        job = self._group.create_task(_guarded(work, name), name=name)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        job.add_done_callback(lambda _: work.close())  # it may have been cancelled before it began
        return job


async def _guarded(work: Coroutine[Any, Any, None], name: str) -> None:
    try:
        await work
    except Exception:  # noqa: BLE001 - seam: one job's failure must not end the others
        _log.exception("a job failed", extra={"job": name})
