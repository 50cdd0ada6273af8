"""How tool calls are run."""

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

import msgspec

from dialoom.base.errors import UsageError
from dialoom.llm.messages import ToolCall

Spill: TypeAlias = Callable[[ToolCall, str], str]
"""Keeps the full text of a result somewhere, and returns what to call the place. Runs in a worker thread."""


class ToolExecutionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of every tool call, and of those of one round together."""

    parallel: bool = True
    """Whether the calls of one round run at the same time; results keep the order of the calls either way."""
    max_concurrency: int = 8
    """How many of them, at most."""
    timeout: float | None = 60.0
    """Seconds for one try, unless the tool has its own; None waits as long as it takes."""
    grace: float = 0.5
    """Seconds an async tool has to clean up after it was stopped, before it is left to itself."""
    on_unknown: Literal["observe", "raise"] = "observe"
    """Whether a call of an unknown tool is told to the model or raised as `UsageError`."""
    max_result_chars: int = 50_000
    """What of a longer answer a model gets to read, unless the tool has its own bound."""
    max_result_file_bytes: int = 3_750_000
    """What of the pictures and documents of an answer a model gets to see, together; as base64 it is the 5 MB
    that a wire takes in one."""
    spill: Spill | None = None
    """Keeps the whole of an answer that is too long, and as its data URL a file that is too large."""
    retry_idempotent: int = 0
    """How many more times an idempotent tool is tried after an exception."""
    retry_delay: float = 0.2
    """Seconds before the first retry; doubles with each."""

    def __post_init__(self) -> None:
        least = {
            "max_concurrency": 1,
            "grace": 0,
            "max_result_chars": 1,
            "max_result_file_bytes": 0,
            "retry_idempotent": 0,
            "retry_delay": 0,
        }
        for field, bound in least.items():
            if getattr(self, field) < bound:
                raise UsageError(f"a tool policy has {field} {getattr(self, field)}; give at least {bound}")
        if self.spill is not None and not callable(self.spill):
            raise UsageError("spill is no function; give one of the call and its text that returns a place")
        if self.timeout is not None and not self.timeout > 0:
            raise UsageError(
                f"a tool policy has timeout {self.timeout}; give seconds above 0, or None for no bound"
            )


DEFAULT_POLICY: Final = ToolExecutionPolicy()
