"""How far an agent may go in one turn."""

import msgspec

from dialoom.base.errors import UsageError
from dialoom.llm.given import is_count
from dialoom.llm.usage_limits import UsageLimits

MAX_CALLS_PER_ROUND = 128
"""So many calls of one answer are run; a model that asks for more gets an error for the others."""


class AgentLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The most one turn may take, from the user's message to the final answer.

    - `iterations`: rounds, that is requests to the model. The calls of the last round are still run.
    - `tool_calls`: calls that are run. Then the model is told to answer without; further calls get an error.
    - `usage`: tokens and cost, looked at before each request; see `UsageLimits`.
    """

    iterations: int = 20
    tool_calls: int | None = None
    usage: UsageLimits = UsageLimits()

    def __post_init__(self) -> None:
        if not is_count(self.iterations, least=1):
            raise UsageError(f"an agent has {self.iterations!r:.40} iterations; give 1 or more")
        if self.tool_calls is not None and not is_count(self.tool_calls, least=0):
            raise UsageError(
                f"an agent has {self.tool_calls!r:.40} tool calls; give 0 or more, or None for no limit"
            )

    @property
    def supersteps(self) -> int:
        """Enough supersteps of the engine for so many rounds, so that its own limit is never the first."""
        return self.iterations * (MAX_CALLS_PER_ROUND + 2) + 10
