"""Questions wait their turn, so that a server is never asked for more than it allows."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.base.errors import UsageError
from dialoom.llm import (
    ChatOptions,
    Gate,
    LimitedProvider,
    Limits,
    MockProvider,
    OpenAIProvider,
    ProviderError,
    Retrying,
    SourcePart,
    TextDelta,
    Timeouts,
    Usage,
    chat,
    tool_result,
    user,
)
from dialoom.llm.limited import MINUTE, Window, expected_tokens
from dialoom.llm.profile import DEFAULT_PROFILE, profile_of
from dialoom.testing import ManualClock
from dialoom.testing.clock import settle
from tests.llm.served import HELLO, SOON


def answering(count: int, **told: Any) -> MockProvider:
    mock = MockProvider()
    for number in range(count):
        mock.queue_text(str(number), **told)
    return mock


async def test_requests_of_a_minute_are_counted_and_the_next_waits_for_the_minute_to_pass() -> None:
    clock, mock = ManualClock(), answering(3)
    provider = LimitedProvider(mock, Limits(requests_per_minute=2), clock=clock)
    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        await chat(provider, HELLO)
        await clock.advance(20)
        await chat(provider, HELLO)
        third = group.create_task(chat(provider, HELLO))
        await clock.advance(39)
        assert len(mock.requests) == 2
        await clock.advance(1)
        assert (await third).text == "2"


async def test_tokens_are_guessed_first_and_counted_as_reported_afterwards() -> None:
    clock = ManualClock()
    mock = answering(3, usage=Usage(input_tokens=5, output_tokens=5))
    provider = LimitedProvider(mock, Limits(tokens_per_minute=120), clock=clock)
    options = ChatOptions(max_tokens=100)
    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        await chat(provider, HELLO, options)
        await chat(provider, HELLO, options)  # 101 guessed, 10 counted: both fit
        third = group.create_task(chat(provider, HELLO, options))
        await settle()
        assert len(mock.requests) == 2
        await clock.advance(MINUTE)
        assert (await third).text == "2"


async def test_without_a_report_the_guess_counts() -> None:
    clock, mock = ManualClock(), answering(2)
    provider = LimitedProvider(mock, Limits(tokens_per_minute=150), clock=clock)
    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        await chat(provider, HELLO, ChatOptions(max_tokens=100))
        second = group.create_task(chat(provider, HELLO, ChatOptions(max_tokens=100)))
        await settle()
        assert len(mock.requests) == 1
        await clock.advance(MINUTE)
        await second


async def test_a_question_larger_than_a_minute_waits_for_an_empty_one_and_is_asked() -> None:
    clock, mock = ManualClock(), answering(2)
    provider = LimitedProvider(mock, Limits(tokens_per_minute=10), clock=clock)
    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        await chat(provider, HELLO, ChatOptions(max_tokens=1000))
        second = group.create_task(chat(provider, HELLO, ChatOptions(max_tokens=1000)))
        await settle()
        assert len(mock.requests) == 1
        await clock.advance(MINUTE)
        await second


async def test_no_more_answers_are_under_way_than_allowed_and_turns_are_fair() -> None:
    gates = [Gate() for _ in range(4)]
    mock = MockProvider()
    for number, gate in enumerate(gates):
        mock.queue_events(gate, TextDelta(str(number)))
    provider = LimitedProvider(mock, Limits(concurrency=2))
    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        asking = [group.create_task(chat(provider, [user(str(number))])) for number in range(4)]
        await gates[0].reached.wait()
        await gates[1].reached.wait()
        await settle()
        assert len(mock.requests) == 2
        gates[1].opened.set()
        await gates[2].reached.wait()
        assert not gates[3].reached.is_set()
        for gate in gates:
            gate.opened.set()
    assert [task.result().text for task in asking] == ["0", "1", "2", "3"]
    assert [asked.messages[0].text for asked in mock.requests] == ["0", "1", "2", "3"]


async def test_a_failed_or_abandoned_answer_gives_its_place_back() -> None:
    mock = MockProvider().queue_error(ProviderError("auth", "no")).queue_text("a b").queue_text("third")
    provider = LimitedProvider(mock, Limits(concurrency=1))
    async with asyncio.timeout(SOON):
        with pytest.raises(ProviderError):
            await chat(provider, HELLO)
        async with provider.stream(HELLO) as stream:
            await anext(stream)
        assert (await chat(provider, HELLO)).text == "third"


async def test_a_full_line_refuses_at_once() -> None:
    gate = Gate()
    mock = MockProvider().queue_events(gate, TextDelta("0")).queue_text("1")
    provider = LimitedProvider(mock, Limits(concurrency=1, waiting=1))
    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        group.create_task(chat(provider, HELLO))
        await gate.reached.wait()
        group.create_task(chat(provider, HELLO))
        await settle()
        with pytest.raises(ProviderError) as caught:
            await chat(provider, HELLO)
        assert (caught.value.kind, caught.value.retryable) == ("overloaded", True)
        assert str(caught.value) == "1 questions already wait for mock; ask again later"
        gate.opened.set()
    mock.assert_done()


async def test_waiting_ends_with_its_scope_and_leaves_the_line_in_order() -> None:
    clock, scope, mock = ManualClock(), CancelScope(), answering(2)
    provider = LimitedProvider(mock, Limits(requests_per_minute=1), clock=clock)
    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        await chat(provider, HELLO)
        waiting = asyncio.create_task(chat(provider, HELLO, ChatOptions(cancel=scope)))
        behind = group.create_task(chat(provider, HELLO))
        await settle()
        scope.cancel()
        with pytest.raises(Cancelled):
            await waiting
        await clock.advance(MINUTE)
        assert (await behind).text == "1"


async def test_waiting_ends_with_the_time_for_the_whole_answer() -> None:
    clock = ManualClock()
    provider = LimitedProvider(answering(1), Limits(requests_per_minute=1), clock=clock)
    async with asyncio.timeout(SOON):
        await chat(provider, HELLO)
        waiting = asyncio.create_task(chat(provider, HELLO, ChatOptions(timeouts=Timeouts(total=30))))
        await settle()
        await clock.advance(30)
        with pytest.raises(ProviderError) as caught:
            await waiting
    assert caught.value.kind == "timeout"
    assert str(caught.value) == "no turn at mock came within 30 s; ask again, or allow more time"


async def test_a_repeated_request_is_counted_too() -> None:
    clock = ManualClock()
    again = Retrying(attempt=2, wait=0.0, kind="overloaded", message="busy")
    mock = MockProvider().queue_events(again, TextDelta("0")).queue_text("1")
    provider = LimitedProvider(mock, Limits(requests_per_minute=2), clock=clock)
    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        await chat(provider, HELLO)
        second = group.create_task(chat(provider, HELLO))
        await settle()
        assert len(mock.requests) == 1
        await clock.advance(MINUTE)
        await second


async def test_it_stands_for_its_provider() -> None:
    async with LimitedProvider(OpenAIProvider("http://x", id="desk"), Limits()) as provider:
        assert (provider.id, profile_of(provider)) == ("desk", DEFAULT_PROFILE)
    models = await LimitedProvider(MockProvider(model="tiny"), Limits()).models()
    assert [model.id for model in models] == ["tiny"]


@pytest.mark.parametrize("limits", [Limits(concurrency=0), Limits(tokens_per_minute=-1), Limits(waiting=0)])
def test_a_limit_that_lets_nothing_through_is_refused(limits: Limits) -> None:
    with pytest.raises(UsageError, match="a limit is below one"):
        LimitedProvider(MockProvider(), limits)


def test_a_guess_counts_words_sources_and_results() -> None:
    source = SourcePart(index=1, id="a", title="A", text="s" * 40)
    asked = [user("w" * 40, sources=(source,)), tool_result("c1", "r" * 40)]
    assert expected_tokens(asked, ChatOptions(max_tokens=10)) == 30 + 10
    assert expected_tokens([], ChatOptions()) == 256


steps = st.lists(st.tuples(st.floats(0, 30), st.integers(1, 40)), max_size=40)


@given(st.integers(1, 50), steps)
def test_no_minute_ever_holds_more_than_its_share(most: int, asked: list[tuple[float, int]]) -> None:
    window, now, taken = Window(most), 0.0, list[tuple[float, int]]()
    for pause, amount in asked:
        now += pause
        while (wait := window.wait(amount, now)) > 0:
            now += max(wait, 0.001)
        window.spend(amount, now)
        taken.append((now, amount))
    for end, last in taken:
        within = sum(amount for at, amount in taken if at <= end < at + MINUTE)
        assert within <= most or within == last


@given(st.integers(1, 50), st.integers(1, 40), st.integers(0, 40))
def test_a_corrected_guess_leaves_exactly_what_was_used(most: int, guess: int, used: int) -> None:
    window = Window(most)
    window.correct(window.spend(guess, 0.0), used)
    assert (window.wait(max(most - used, 1), 1.0) == 0) == (used + max(most - used, 1) <= most)
    window.wait(1, MINUTE)
    window.correct(window.spend(1, MINUTE), 1)
    assert window.wait(most - 1, MINUTE) == 0
