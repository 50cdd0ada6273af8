"""Whether a run should go on: a stop request or a deadline, whichever comes first."""

from dialoom.base.cancel import CancelReason, CancelScope
from dialoom.base.clock import Clock


class RunControl(CancelScope):
    """Stops runs from outside: give it to `RunOptions(control=...)`, call `cancel()` from any thread.

    One control may serve many runs. A run that starts under a cancelled control commits its input and stops.
    """

    def __init__(self) -> None:
        super().__init__()


class StopSignal(CancelScope):
    """The stop request of one run, under its `control`. `timeout` is in seconds from now."""

    __slots__ = ("_clock", "_deadline")

    def __init__(self, control: CancelScope | None, timeout: float | None, clock: Clock) -> None:
        super().__init__(control)
        self._clock = clock
        self._deadline = None if timeout is None else clock.monotonic() + timeout

    @property
    def reason(self) -> CancelReason | None:
        """Why to stop, None to go on."""
        if self._deadline is not None and self._clock.monotonic() >= self._deadline:
            self.cancel("timeout")
        return self._reason

    def remaining(self) -> float | None:
        """Seconds left, None without a deadline."""
        return None if self._deadline is None else max(0.0, self._deadline - self._clock.monotonic())
