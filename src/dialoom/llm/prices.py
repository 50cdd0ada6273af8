"""What answers cost: a table of prices that anybody can replace, and the sum it makes of a usage."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Self

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.llm.given import expect_number
from dialoom.llm.response import ChatResponse
from dialoom.llm.usage import Usage

MILLION = Decimal(1_000_000)
_VERSION = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The price of a million tokens of each kind. Cached parts cost like any input where nothing is said.

    Raises `UsageError` for one below zero.
    """

    input: Decimal
    output: Decimal = Decimal(0)
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            expect_number(getattr(self, name), f"the price of {name}", least=0)


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A price list in one currency, as published on the day `as_of`.

    A name covers its dated versions as well: `gpt-4o` is `gpt-4o-2024-08-06` too, but not `gpt-4o-audio`.
    With `provider:` before it, it counts for that provider only; `provider:` alone is all of its models.
    """

    models: Mapping[str, Price]
    currency: str = "USD"
    as_of: str = ""

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a price list written like `{"models": {"gpt-4o": {"input": "2.50", "output": "10"}}}`.

        Raises `UsageError`.
        """
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise UsageError(
                f"this is no price list: {one_line(str(error))}; write amounts per million tokens"
            ) from error

    def price_of(self, model: str, *, provider: str = "") -> Price | None:
        """Return what `model` costs, None when the list does not say."""
        plain = _VERSION.sub("", model)
        keys = (f"{provider}:{model}", f"{provider}:{plain}", model, plain, f"{provider}:")
        return next((self.models[key] for key in keys if key in self.models), None)

    def cost_of(self, usage: Usage, model: str, *, provider: str = "") -> Decimal | None:
        """Return what `usage` costs with `model`, None when the price or the counts are not known."""
        price = self.price_of(model, provider=provider)
        return None if price is None else cost_of(usage, price)

    def cost_of_response(self, response: ChatResponse) -> Decimal | None:
        """Return what an answer cost. The model is the one that answered, by the server's word."""
        origin = response.message.origin
        return self.cost_of(response.usage, response.model, provider=origin.provider if origin else "")


def cost_of(usage: Usage, price: Price) -> Decimal | None:
    """Return what `usage` costs, None when the server counted nothing.

    Cached input is a share of the input and reasoning one of the output: neither is paid for twice.
    """
    if usage.input_tokens is None and usage.output_tokens is None:
        return None
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    fresh = max(0, (usage.input_tokens or 0) - read - written)
    total = (
        fresh * price.input
        + read * (price.input if price.cache_read is None else price.cache_read)
        + written * (price.input if price.cache_write is None else price.cache_write)
        + (usage.output_tokens or 0) * price.output
    )
    return total / MILLION


def _price(each_input: str, output: str, read: str | None = None, write: str | None = None) -> Price:
    return Price(
        input=Decimal(each_input),
        output=Decimal(output),
        cache_read=None if read is None else Decimal(read),
        cache_write=None if write is None else Decimal(write),
    )


LIST_PRICES = Prices(
    as_of="2025-12-01",
    models={
        "gpt-4o": _price("2.50", "10", "1.25"),
        "gpt-4o-mini": _price("0.15", "0.60", "0.075"),
        "gpt-4.1": _price("2", "8", "0.50"),
        "gpt-4.1-mini": _price("0.40", "1.60", "0.10"),
        "gpt-4.1-nano": _price("0.10", "0.40", "0.025"),
        "gpt-5": _price("1.25", "10", "0.125"),
        "gpt-5-mini": _price("0.25", "2", "0.025"),
        "gpt-5-nano": _price("0.05", "0.40", "0.005"),
        "claude-opus-4": _price("15", "75", "1.50", "18.75"),
        "claude-opus-4-5": _price("5", "25", "0.50", "6.25"),
        "claude-sonnet-4": _price("3", "15", "0.30", "3.75"),
        "claude-sonnet-4-5": _price("3", "15", "0.30", "3.75"),
        "claude-haiku-4-5": _price("1", "5", "0.10", "1.25"),
        "text-embedding-3-small": _price("0.02", "0"),
        "text-embedding-3-large": _price("0.13", "0"),
        "ollama:": _price("0", "0"),
        "lmstudio:": _price("0", "0"),
        "llamacpp:": _price("0", "0"),
        "offline:": _price("0", "0"),
    },
)
"""Published list prices of a day: a start, to be replaced by what is really paid."""
