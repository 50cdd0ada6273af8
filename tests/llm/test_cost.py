"""What answers use, what that costs, and where it stops."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.llm import ChatOptions, MockProvider, OpenAIProvider, ProviderError, TextDelta, Usage, chat, user
from dialoom.llm.events import UsageUpdate
from dialoom.llm.metered import MeteredProvider
from dialoom.llm.prices import LIST_PRICES, Price, Prices, cost_of
from dialoom.llm.profile import DEFAULT_PROFILE
from dialoom.llm.usage_limits import Spent, UsageLimitError, UsageLimits, UsageMeter

ASKED = [user("Hi")]
CENT = Price(input=Decimal(1), output=Decimal(4), cache_read=Decimal("0.1"), cache_write=Decimal("1.25"))
PRICES = Prices(models={"m": CENT})
COUNTS = st.none() | st.integers(0, 10**9)
USAGES = st.builds(
    Usage,
    input_tokens=COUNTS,
    output_tokens=COUNTS,
    cache_read_tokens=COUNTS,
    cache_write_tokens=COUNTS,
    reasoning_tokens=COUNTS,
)


def test_cached_and_reasoning_tokens_are_shares_and_paid_for_once() -> None:
    usage = Usage(
        input_tokens=1000,
        output_tokens=100,
        cache_read_tokens=600,
        cache_write_tokens=200,
        reasoning_tokens=90,
    )
    assert cost_of(usage, CENT) == Decimal("0.00091")
    assert cost_of(usage, Price(input=Decimal(1))) == Decimal("0.001")


def test_what_was_not_counted_has_no_cost() -> None:
    assert cost_of(Usage(), CENT) is None
    assert cost_of(Usage(output_tokens=0), CENT) == 0
    assert PRICES.cost_of(Usage(input_tokens=1), "unknown") is None


@pytest.mark.parametrize(
    ("model", "provider", "expected"),
    [
        ("gpt-4o", "openai", "2.50"),
        ("gpt-4o-2024-08-06", "openai", "2.50"),
        ("gpt-4o-mini-2024-07-18", "", "0.15"),
        ("claude-sonnet-4-5-20250929", "anthropic", "3"),
        ("claude-sonnet-4@latest", "", "3"),
        ("llama3.2:3b", "ollama", "0"),
        ("gpt-4o-audio-preview", "openai", None),
        ("", "openai", None),
    ],
)
def test_a_price_is_found_by_name_version_or_provider(
    model: str, provider: str, expected: str | None
) -> None:
    price = LIST_PRICES.price_of(model, provider=provider)
    assert (price and price.input) == (None if expected is None else Decimal(expected))


def test_a_price_list_of_ones_own_is_read_from_json() -> None:
    text = (
        '{"models": {"openai:m": {"input": "2.5", "output": "10"}}, "currency": "EUR", "as_of": "2026-11-01"}'
    )
    prices = Prices.from_json(text)
    assert prices.cost_of(Usage(input_tokens=10, output_tokens=1), "m", provider="openai") == Decimal(
        "0.000035"
    )
    for broken in ("{", '{"models": {"m": {}}}', '{"models": {"m": {"input": "much"}}}', '{"model": {}}'):
        with pytest.raises(UsageError, match="this is no price list"):
            Prices.from_json(broken)


async def test_an_answer_has_a_cost() -> None:
    llm = MockProvider(model="m").queue_text("ok", usage=Usage(input_tokens=10, output_tokens=5))
    assert PRICES.cost_of_response(await chat(llm, ASKED)) == Decimal("0.00003")


@given(USAGES, USAGES, USAGES)
def test_usages_add_up_in_any_order(one: Usage, two: Usage, three: Usage) -> None:
    assert one.plus(two) == two.plus(one)
    assert one.plus(two).plus(three) == one.plus(two.plus(three))
    assert one.plus(Usage()) == one


@given(USAGES)
def test_no_usage_costs_less_than_nothing(usage: Usage) -> None:
    assert (cost_of(usage, CENT) or 0) >= 0


def meter(**limits: Any) -> UsageMeter:
    return UsageMeter(UsageLimits(**limits), prices=PRICES)


async def test_everything_asked_through_one_meter_is_added_up() -> None:
    shared = meter()
    for number in range(2):
        llm = MockProvider(id=f"p{number}").queue_text("ok", usage=Usage(input_tokens=100, output_tokens=10))
        await chat(MeteredProvider(llm, shared), ASKED, ChatOptions(model="m"))
    unknown = MockProvider().queue_text("ok")
    await chat(MeteredProvider(unknown, shared), ASKED)
    assert shared.spent == Spent(
        requests=3, usage=Usage(input_tokens=200, output_tokens=20), cost=Decimal("0.00028"), unpriced=1
    )


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"requests": 1}, "the limit of 1 requests is reached"),
        ({"input_tokens": 100}, "the limit of 100 input tokens is reached"),
        ({"output_tokens": 9}, "the limit of 9 output tokens is reached"),
        ({"total_tokens": 110}, "the limit of 110 total tokens is reached"),
        ({"cost": Decimal("0.0001")}, "the limit of 0.0001 cost is reached"),
    ],
)
async def test_the_answer_that_reaches_a_limit_is_the_last(limits: dict[str, Any], said: str) -> None:
    llm = MockProvider().queue_text("whole answer", usage=Usage(input_tokens=100, output_tokens=10))
    metered = MeteredProvider(llm, meter(**limits))
    assert (await chat(metered, ASKED, ChatOptions(model="m"))).text == "whole answer"
    with pytest.raises(UsageLimitError, match=said) as caught:
        await chat(metered, ASKED, ChatOptions(model="m"))
    assert caught.value.code == "usage_limit"
    assert len(llm.requests) == 1


async def test_an_answer_that_broke_off_counts_with_what_was_reported() -> None:
    llm = MockProvider().queue_events(
        UsageUpdate(Usage(input_tokens=7)), TextDelta("Ha"), ProviderError("connection", "lost")
    )
    metered = MeteredProvider(llm, meter())
    with pytest.raises(ProviderError):
        await chat(metered, ASKED, ChatOptions(model="m"))
    assert metered.meter.spent == Spent(requests=1, usage=Usage(input_tokens=7), cost=Decimal("0.000007"))


async def test_everything_else_is_the_providers_own() -> None:
    plain = MeteredProvider(MockProvider(), meter())
    assert (plain.id, plain.profile) == ("mock", None)
    assert [model.id for model in await plain.models()] == ["mock-model"]
    known = MeteredProvider(OpenAIProvider("http://127.0.0.1:9/v1"), meter())
    assert known.profile == DEFAULT_PROFILE
    await known.aclose()


def test_a_limit_below_zero_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="the limit of requests is -1; use 0 or more"):
        meter(requests=-1)
