"""A provider that is listened to is the provider it listens to."""

import pytest

from dialoom.dialog.heard import HeardProvider
from dialoom.llm import MockProvider, ProviderError, chat, user


async def test_a_provider_that_is_heard_answers_as_it_does_and_tells_why_it_did_not() -> None:
    refused = ProviderError("auth", "no such key")
    mock = MockProvider(id="mine").queue_error(refused).queue_text("Hello.")
    heard = HeardProvider(mock)
    assert (heard.id, await heard.models(), heard.failure) == ("mine", await mock.models(), None)
    with pytest.raises(ProviderError):
        await chat(heard, [user("Hi")])
    assert heard.failure is refused
    assert (await chat(heard, [user("Hi")])).text == "Hello."
    assert heard.failure is None
    await heard.aclose()
