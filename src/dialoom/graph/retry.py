"""How often a node is tried, and how long to wait in between."""

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from dialoom.base.errors import UsageError

MAX_ATTEMPTS: Final = 1_000
MAX_DELAY: Final = 86_400.0


class NodeTimeoutError(Exception):
    """A node was not through when the seconds of its timeout were over."""


class NodeFailedError(Exception):
    """A node gave `NodeResult.fail`; what `RetryPolicy.retry_on` sees of it."""


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How a node that failed is tried again.

    - `attempts`: tries in all, the first included.
    - `delay`: seconds before the second try; then its multiples (linear) or doubles (exponential).
    - `jitter`: the share of each wait, 0 to 1, that is left to chance, so that many do not come back at once.
    - `max_delay`: the longest wait in seconds. An error that asks for a longer one, by an attribute
      `retry_after` in seconds, is not tried again; a shorter one is obeyed.
    - `retry_on`: whether an error is worth another try; without it every error is.

    A stop request ends the wait. Being stopped or interrupted is no failure and never retried.
    """

    attempts: int = 3
    delay: float = 0.5
    backoff: Literal["linear", "exponential"] = "exponential"
    jitter: float = 0.0
    max_delay: float = 30.0
    retry_on: Callable[[Exception], bool] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.attempts <= MAX_ATTEMPTS:
            raise UsageError(f"attempts is {self.attempts}; give 1 to {MAX_ATTEMPTS}")
        if not 0 <= self.delay <= MAX_DELAY or not 0 <= self.max_delay <= MAX_DELAY:
            raise UsageError(f"a delay is {self.delay} and at most {self.max_delay}; give 0 to {MAX_DELAY}")
        if not 0 <= self.jitter <= 1:
            raise UsageError(f"jitter is {self.jitter}; give a share from 0 to 1")

    def wait_after(self, attempt: int, error: Exception, chance: Callable[[], float]) -> float | None:
        """Return the seconds to wait after the failure of `attempt`, counted from 1; None to give up.

        `chance` returns a number from 0 to 1. Raises what `retry_on` raises.
        """
        if attempt >= self.attempts or not (self.retry_on is None or self.retry_on(error)):
            return None
        wished = getattr(error, "retry_after", None)
        least = float(wished) if isinstance(wished, (int, float)) else 0.0
        if not least <= self.max_delay:
            return None
        # beyond 60 doublings any delay is at its maximum, and a float has not overflowed yet
        grown = self.delay * (attempt if self.backoff == "linear" else 2.0 ** min(attempt - 1, 60))
        varied = min(grown, self.max_delay) * (1 - self.jitter * chance())
        return max(varied, least)


ONCE: Final = RetryPolicy(attempts=1)
"""The policy of a node that has a timeout but no retries."""
