"""What one run may be told."""

from typing import Any, Literal, get_args

import msgspec

from dialoom.base.cancel import CancelScope
from dialoom.base.errors import UsageError
from dialoom.graph.turns import OnConflict

Schedule = Literal["superstep", "eager"]
MAX_THREAD_ID = 512


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Choices for one run.

    - `thread_id`: the thread to go on with or to begin; without it the run is a thread of its own.
    - `timeout`: seconds after which the run is asked to stop; it ends with stop_reason timeout.
    - `max_steps`: supersteps after which it ends with stop_reason max_steps, its state kept.
    - `control`: stops the run from outside; a `RunControl`, or any scope the run is part of.
    - `raise_on_error`: raise RunFailedError instead of returning a result with stop_reason error or conflict.
    - `max_concurrency`: nodes of one superstep that may wait at the same time.
    - `on_conflict`: what happens while another run of this graph, in this process, is on the thread: `reject`
      ends this one at once with stop_reason conflict, `queue` waits for the other, `cancel_previous` stops it
      and then goes on. A run in another process is met at the store, which lets one of them commit.
    - `schedule`: `eager` starts a node when the one it follows is through, though others of its superstep are
      not; see the page on the engine for what such a node sees. `superstep` waits for them.
    - `deps`: any object; nodes find it as `ctx.deps`. It is not stored.
    """

    thread_id: str | None = None
    timeout: float | None = None
    max_steps: int = 100
    control: CancelScope | None = None
    raise_on_error: bool = False
    max_concurrency: int = 256
    on_conflict: OnConflict = "reject"
    schedule: Schedule = "superstep"
    deps: Any = None

    def __post_init__(self) -> None:
        if self.thread_id is not None and not 0 < len(self.thread_id) <= MAX_THREAD_ID:
            raise UsageError(
                f"a thread_id has 1 to {MAX_THREAD_ID} characters; leave it out for a new thread"
            )
        if self.timeout is not None and not self.timeout >= 0:
            raise UsageError(f"timeout is {self.timeout}; give seconds, 0 or more, or leave it out")
        if self.max_steps < 1:
            raise UsageError(f"max_steps is {self.max_steps}; give 1 or more")
        if self.max_concurrency < 1:
            raise UsageError(f"max_concurrency is {self.max_concurrency}; give 1 or more")
        if self.on_conflict not in get_args(OnConflict):
            ways = ", ".join(get_args(OnConflict))
            raise UsageError(f"on_conflict is {self.on_conflict!r}; it may be: {ways}")
        if self.schedule not in get_args(Schedule):
            ways = ", ".join(get_args(Schedule))
            raise UsageError(f"schedule is {self.schedule!r}; it may be: {ways}")


DEFAULT_OPTIONS = RunOptions()
