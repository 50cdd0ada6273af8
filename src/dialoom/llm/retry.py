"""Whether and when a question is asked again: decided here and nowhere else, by the cause of its failure."""

import random
from collections.abc import Callable
from typing import Literal

import msgspec

from dialoom.llm.errors import ProviderError


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often a question is asked, and how long is waited in between. Times are in seconds."""

    attempts: int = 3
    """Requests at most, the first included."""
    first_wait: float = 0.5
    """Before the second request; each later wait is twice as long as the one before."""
    longest_wait: float = 8.0
    """What those waits grow to."""
    longest_retry_after: float = 60.0
    """A server that asks for more than this is not waited for: its error is raised at once."""
    on_interrupt: Literal["raise", "restart"] = "raise"
    """After the first words have been streamed: raise what happened, or take them back and ask again."""
    chance: Callable[[], float] = random.random
    """Gives numbers from 0 to 1, by which each wait is up to a quarter shorter."""


ONCE = RetryPolicy(attempts=1)
"""Ask once and raise what happens."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """How far a request got before it failed. `number` counts from 1, `left` is the time that remains."""

    number: int
    left: float
    began: bool = False
    """The server had begun to answer."""
    spoke: bool = False
    """Words or calls of the answer had been streamed."""


def wait_before_retry(policy: RetryPolicy, error: ProviderError, attempt: Attempt) -> float | None:
    """Return the seconds to wait before asking again, None when `error` is to be raised.

    Never earlier than the server asks for, and never past the time that is left.
    """
    # nonsense in the middle of an answer is a broken line; in place of an answer it is another kind of server
    worth_it = error.retryable or (attempt.began and error.kind == "invalid_response")
    if not worth_it or attempt.number >= policy.attempts:
        return None
    if attempt.spoke and policy.on_interrupt == "raise":
        return None
    told = error.retry_after or 0.0
    doubled = policy.first_wait * 2.0 ** min(attempt.number - 1, 30)
    wait = max(told, min(doubled, policy.longest_wait) * (1 - policy.chance() / 4))
    return None if told > policy.longest_retry_after or wait >= attempt.left else wait
