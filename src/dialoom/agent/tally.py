"""What a turn has used, added up in its state, whoever used it."""

from decimal import Decimal
from typing import Final

import msgspec

from dialoom.agent.spec import AgentSpec
from dialoom.graph.reducers import Reducers
from dialoom.llm.usage import Usage
from dialoom.llm.usage_limits import Spent, UsageMeter


class Anew(msgspec.Struct, frozen=True):
    """Written to a channel of `SPENDING`: a turn begins, and nothing is used of it."""


ANEW: Final = Anew()


def plus(one: Spent, other: Spent) -> Spent:
    """Return the sum of both."""
    return Spent(
        requests=one.requests + other.requests,
        usage=one.usage.plus(other.usage),
        cost=one.cost + other.cost,
        unpriced=one.unpriced + other.unpriced,
    )


def _spend(old: Spent, written: Spent | Anew) -> Spent:
    return Spent() if isinstance(written, Anew) else plus(old, written)


SPENDING: Final = Reducers.custom(_spend, name="spending")
"""A channel of `Spent`: what is written is added, from several tasks at once too."""


def spent_on(spec: AgentSpec, usage: Usage, model: str, *, requests: int = 1) -> Spent:
    """Return what an answer of the agent's provider adds; `model` is "" when the server did not say."""
    named = model or spec.settings.options.model or ""
    cost = spec.settings.prices.cost_of(usage, named, provider=spec.provider.id)
    return Spent(requests=requests, usage=usage, cost=cost or Decimal(0), unpriced=int(cost is None))


def refuse_beyond(spec: AgentSpec, spent: Spent) -> None:
    """Raise `UsageLimitError` when what was used reaches a limit of the agent's."""
    meter = UsageMeter(spec.settings.limits.usage, prices=spec.settings.prices)
    meter.spent = spent
    meter.begin()
