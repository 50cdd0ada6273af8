"""How long an attempt at a node may take."""

from math import inf

import msgspec


class Timeout(msgspec.Struct, frozen=True, kw_only=True):
    """In seconds: `total` for the whole attempt, `idle` since its last sign of life.

    Signs of life are `ctx.emit`, `ctx.aemit`, `ctx.heartbeat`, and the supersteps of a subgraph.
    """

    total: float = inf
    idle: float = inf

    def trouble(self) -> str | None:
        """Return why it cannot be kept, None when it can."""
        for seconds in (self.total, self.idle):
            if not seconds > 0:
                return f"its timeout is {seconds}; give seconds, more than 0, or leave it out"
        if self.total == self.idle == inf:
            return "its timeout has no end; give seconds, or leave it out"
        return None


def timeout_of(given: float | Timeout | None) -> Timeout | None:
    """Return what a node was given as a Timeout; a number is the total."""
    return given if given is None or isinstance(given, Timeout) else Timeout(total=given)
