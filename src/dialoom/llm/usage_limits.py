"""How much may be used, and how much was."""

from decimal import Decimal

import msgspec

from dialoom.base.errors import UsageError
from dialoom.llm.prices import LIST_PRICES, Prices
from dialoom.llm.usage import Usage


class UsageLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The most that may be used; None sets no limit. `cost` is in the currency of the prices.

    Limits are looked at before each request, so the answer that reaches one is still given whole.
    """

    requests: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cost: Decimal | None = None


class UsageLimitError(UsageError):
    """A limit of the caller's own is reached; raise it, or stop. Nothing was sent."""

    code = "usage_limit"


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What was used so far. `cost` is without the `unpriced` answers, whose price or counts are not known."""

    requests: int = 0
    usage: Usage = Usage()
    cost: Decimal = Decimal(0)
    unpriced: int = 0


class UsageMeter:
    """Adds up what answers use, and refuses the next request when a limit is reached.

    Not for several threads at once.
    """

    def __init__(self, limits: UsageLimits | None = None, *, prices: Prices = LIST_PRICES) -> None:
        """Raises `UsageError` on a limit below zero."""
        self.spent = Spent()
        self._limits = limits or UsageLimits()
        self._prices = prices
        for name, limit in msgspec.structs.asdict(self._limits).items():
            if limit is not None and limit < 0:
                raise UsageError(f"the limit of {name} is {limit}; use 0 or more, or None for no limit")

    def begin(self) -> None:
        """Count one more request. Raises `UsageLimitError` instead when a limit is reached."""
        usage = self.spent.usage
        read, written = usage.input_tokens or 0, usage.output_tokens or 0
        used: dict[str, int | Decimal] = {
            "requests": self.spent.requests,
            "input_tokens": read,
            "output_tokens": written,
            "total_tokens": read + written,
            "cost": self.spent.cost,
        }
        for name, limit in msgspec.structs.asdict(self._limits).items():
            if limit is not None and used[name] >= limit:
                what = name.replace("_", " ")
                raise UsageLimitError(
                    f"the limit of {limit} {what} is reached; raise the limit, or stop here"
                )
        self.spent = msgspec.structs.replace(self.spent, requests=self.spent.requests + 1)

    def add(self, usage: Usage, model: str, *, provider: str = "") -> None:
        """Add what one answer used."""
        cost = self._prices.cost_of(usage, model, provider=provider)
        self.spent = msgspec.structs.replace(
            self.spent,
            usage=self.spent.usage.plus(usage),
            cost=self.spent.cost + (cost or 0),
            unpriced=self.spent.unpriced + (cost is None),
        )
