"""One provider after another is asked, until one answers."""

from contextlib import suppress

import pytest

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.base.errors import UsageError
from dialoom.llm import (
    Alternative,
    ChatOptions,
    FallbackProvider,
    FellBack,
    MockProvider,
    OpenAIProvider,
    ProviderError,
    ResponseCompleted,
    ResponseStarted,
    Retrying,
    TextDelta,
    Usage,
    UsageUpdate,
    chat,
    user,
)
from dialoom.llm.errors import ErrorKind
from dialoom.llm.profile import OPENAI_PROFILE, profile_of
from tests.llm.served import HELLO, read_all

BUSY = ProviderError("overloaded", "first is busy; ask again")


async def test_the_next_provider_answers_when_the_first_cannot() -> None:
    first, second = MockProvider(id="first").queue_error(BUSY), MockProvider(id="second").queue_text("Hi")
    async with FallbackProvider(first, second).stream(HELLO) as stream:
        events = await read_all(stream)
    assert events[:3] == [
        ResponseStarted(model="mock-model"),
        FellBack(provider="second", kind="overloaded", message="first is busy; ask again"),
        ResponseStarted(model="mock-model"),
    ]
    assert stream.response.text == "Hi"
    assert stream.response.message.origin is not None
    assert stream.response.message.origin.provider == "second"


async def test_each_provider_is_asked_for_its_own_model() -> None:
    first, second = MockProvider().queue_error(BUSY), MockProvider().queue_text("Hi")
    provider = FallbackProvider(Alternative(first, "big"), Alternative(second))
    await chat(provider, HELLO, ChatOptions(model="any", seed=1))
    assert first.requests[0].options == ChatOptions(model="big", seed=1)
    assert second.requests[0].options == ChatOptions(model="any", seed=1)


async def test_when_all_have_failed_the_last_error_is_raised() -> None:
    last = ProviderError("quota", "second is empty")
    provider = FallbackProvider(MockProvider().queue_error(BUSY), MockProvider().queue_error(last))
    with pytest.raises(ProviderError) as caught:
        await chat(provider, HELLO)
    assert caught.value is last


@pytest.mark.parametrize("kind", ["bad_request", "context_window", "content_filter"])
async def test_a_request_that_is_wrong_itself_is_not_passed_on(kind: ErrorKind) -> None:
    second = MockProvider()
    provider = FallbackProvider(MockProvider().queue_error(ProviderError(kind, "no")), second)
    with pytest.raises(ProviderError, match="no"):
        await chat(provider, HELLO)
    assert second.requests == []


async def test_the_kinds_that_fall_can_be_chosen() -> None:
    second = MockProvider().queue_text("long enough")
    too_long = ProviderError("context_window", "too long")
    provider = FallbackProvider(
        MockProvider().queue_error(too_long), second, on=frozenset(("context_window",))
    )
    assert (await chat(provider, HELLO)).text == "long enough"


async def test_after_the_first_words_nobody_else_is_asked() -> None:
    second = MockProvider()
    first = MockProvider().queue_events(UsageUpdate(Usage(input_tokens=3)), TextDelta("Half"), BUSY)
    async with FallbackProvider(first, second).stream(HELLO) as stream:
        with pytest.raises(ProviderError):
            await read_all(stream)
    assert (stream.partial.text, second.requests) == ("Half", [])


async def test_words_that_were_taken_back_do_not_count_as_spoken() -> None:
    again = Retrying(attempt=2, wait=0.0, kind="incomplete_stream", message="cut", restarts=True)
    first = MockProvider().queue_events(TextDelta("Half"), again, BUSY)
    provider = FallbackProvider(first, MockProvider().queue_text("Whole"))
    async with provider.stream(HELLO) as stream:
        events = await read_all(stream)
    assert (stream.partial.text, stream.response.text) == ("Whole", "Whole")
    assert [type(event) for event in events].count(FellBack) == 1
    assert isinstance(events[-1], ResponseCompleted)


async def test_cancelling_asks_nobody_else() -> None:
    scope, second = CancelScope(), MockProvider()
    scope.cancel()
    with pytest.raises(Cancelled):
        await chat(FallbackProvider(MockProvider().queue_text("x"), second), HELLO, ChatOptions(cancel=scope))
    assert second.requests == []


async def test_models_are_those_of_everyone_who_can_tell() -> None:
    gone = OpenAIProvider("http://127.0.0.1:9")
    async with FallbackProvider(gone, MockProvider(id="m", model="tiny")) as provider:
        assert [model.id for model in await provider.models()] == ["tiny"]
    with pytest.raises(ProviderError, match="cannot reach"):
        await FallbackProvider(gone).models()


class Stuck(MockProvider):
    """A provider that cannot be closed."""

    async def aclose(self) -> None:
        raise OSError("stuck")


async def test_closing_reaches_everyone_even_past_one_that_fails() -> None:
    closed: list[str] = []

    class Closing(MockProvider):
        async def aclose(self) -> None:
            closed.append(self.id)

    provider = FallbackProvider(Closing(id="a"), Stuck(), Closing(id="b"))
    with suppress(OSError):
        await provider.aclose()
    assert sorted(closed) == ["a", "b"]


def test_it_speaks_as_its_first_provider_does() -> None:
    first = OpenAIProvider("http://x", profile=OPENAI_PROFILE)
    assert profile_of(FallbackProvider(first, MockProvider())) == OPENAI_PROFILE
    assert profile_of(FallbackProvider(MockProvider(), first)) is None


def test_somebody_must_be_asked() -> None:
    with pytest.raises(UsageError, match="give at least one provider"):
        FallbackProvider()


async def test_a_question_left_early_closes_the_answer_under_way() -> None:
    first = MockProvider().queue_text("one two three", chunks=3)
    async with FallbackProvider(first).stream([user("Hi")]) as stream:
        await anext(stream)
        assert isinstance(await anext(stream), TextDelta)
    assert stream.partial.text == "one t"
