"""What one run may be told."""

from typing import Any, Literal, SupportsIndex, cast, get_args

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
        self._refuse_odd_thread()
        timeout, control = self.timeout, cast("object", self.control)
        if timeout is not None and not (_is_number(timeout) and timeout >= 0):
            raise UsageError(f"timeout is {timeout!r}; give seconds, 0 or more, or leave it out")
        if not _is_count(self.max_steps):
            raise UsageError(f"max_steps is {self.max_steps!r}; give a whole number, 1 or more")
        if not _is_count(self.max_concurrency):
            raise UsageError(f"max_concurrency is {self.max_concurrency!r}; give a whole number, 1 or more")
        if control is not None and not isinstance(control, CancelScope):
            raise UsageError(f"control is of type {type(control).__name__}; give a RunControl")
        if self.on_conflict not in get_args(OnConflict):
            ways = ", ".join(get_args(OnConflict))
            raise UsageError(f"on_conflict is {self.on_conflict!r}; it may be: {ways}")
        if self.schedule not in get_args(Schedule):
            ways = ", ".join(get_args(Schedule))
            raise UsageError(f"schedule is {self.schedule!r}; it may be: {ways}")

    def _refuse_odd_thread(self) -> None:
        thread_id = cast("object", self.thread_id)
        if thread_id is None:
            return
        if not isinstance(thread_id, str) or not 0 < len(thread_id) <= MAX_THREAD_ID:
            raise UsageError(
                f"a thread_id is text of 1 to {MAX_THREAD_ID} characters; leave it out for a new thread"
            )
        if any("\ud800" <= character <= "\udfff" for character in thread_id):
            raise UsageError("a thread_id holds half a character, which no store can keep; use whole text")


def _is_count(value: object) -> bool:
    return isinstance(value, SupportsIndex) and not isinstance(value, bool) and value.__index__() >= 1


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


DEFAULT_OPTIONS = RunOptions()
