"""Whether a run should go on: a stop request or a deadline, whichever comes first."""

from typing import Protocol

from dialoom.base.cancel import CancelReason, CancelScope
from dialoom.base.clock import Clock


class RunControl(CancelScope):
    """Stops runs from outside: give it to `RunOptions(control=...)`, call `cancel()` from any thread.

    One control may serve many runs. A run that starts under a cancelled control commits its input and stops.
    """

    def __init__(self) -> None:
        super().__init__()


class Stoppable(Protocol):
    """What carries a run and is to hear of a stop at once, from any thread and perhaps more than once."""

    def hear_stop(self) -> None: ...


class StopSignal(CancelScope):
    """The stop request of one run, under its `control`. `timeout` is in seconds from now.

    `carrier`, while there is one, hears of a request like a callback, for less than a callback costs.
    """

    __slots__ = ("_clock", "_deadline", "carrier")

    def __init__(self, control: CancelScope | None, timeout: float | None, clock: Clock) -> None:
        self.carrier: Stoppable | None = None
        self._clock = clock
        self._deadline = None if timeout is None else clock.monotonic() + timeout
        super().__init__(control)  # last, because it may cancel at once

    @property
    def reason(self) -> CancelReason | None:
        """Why to stop, None to go on."""
        if self._deadline is not None and self._clock.monotonic() >= self._deadline:
            self.cancel("timeout")
        return self._reason

    def cancel(self, reason: CancelReason = "cancelled") -> None:
        super().cancel(reason)
        if (carrier := self.carrier) is not None:
            carrier.hear_stop()

    def remaining(self) -> float | None:
        """Seconds left, None without a deadline."""
        return None if self._deadline is None else max(0.0, self._deadline - self._clock.monotonic())
