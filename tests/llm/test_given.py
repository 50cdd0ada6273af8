"""A slip of whoever asks is named in one line, before anything is sent."""

from typing import Any

import pytest

from dialoom.base.errors import UsageError
from dialoom.llm import (
    AnthropicProvider,
    ChatOptions,
    MockProvider,
    OfflineProvider,
    OllamaProvider,
    OpenAIEmbeddings,
    OpenAIProvider,
    Prices,
    Provider,
    ToolModeProvider,
    WireProfile,
    chat,
    system,
    user,
)

PROVIDERS: dict[str, Provider] = {
    "chat completions": OpenAIProvider("http://127.0.0.1:9/v1"),
    "responses": OpenAIProvider("http://127.0.0.1:9/v1", profile=WireProfile(api="responses")),
    "messages": AnthropicProvider("http://127.0.0.1:9"),
    "ollama": OllamaProvider("http://127.0.0.1:9"),
    "mock": MockProvider().queue_text("never"),
    "offline": OfflineProvider(),
}


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize(
    ("messages", "options", "told"),
    [
        ("hi", ChatOptions(), r"the messages are a value of type str; give a list of messages, like \[user"),
        (user("hi"), ChatOptions(), "the messages are a value of type Message; give a list"),
        (None, ChatOptions(), "the messages are None; give a list of messages"),
        ([user("hi"), {"role": "user"}], ChatOptions(), "a value of type dict stands among the messages"),
        ([user("hi")], "gpt-4o", r"the options are a value of type str; give ChatOptions\(model="),
    ],
)
async def test_what_is_no_question_is_refused_by_every_provider(
    name: str, messages: Any, options: Any, told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        await chat(PROVIDERS[name], messages, options)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"stop": "END"}, r"stop is one text; give several, like stop=\('END',\)"),
        ({"max_tokens": 0}, "max_tokens is 0; use a number from 1 on, or None"),
        ({"temperature": float("nan")}, "temperature is nan; use a number from 0 on"),
        ({"temperature": "hot"}, "temperature is a value of type str; use a number"),
        ({"top_p": -0.5}, "top_p is -0.5; use a number from 0 on"),
        ({"tools": ({"name": "x"},)}, r"a value of type dict stands among the tools; give ToolSpec\(name="),
    ],
)
def test_options_that_no_server_could_obey_are_refused(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        ChatOptions(**fields)


def test_an_address_or_a_key_that_is_none_is_named_and_not_shown() -> None:
    address: Any = None
    makers = (OpenAIProvider, AnthropicProvider, OllamaProvider, lambda url: OpenAIEmbeddings(url, model="m"))
    for made in makers:
        with pytest.raises(UsageError, match="the base url is None and no text; write it like http://"):
            made(address)
    secret: Any = b"sk-secret"
    for with_key in (OpenAIProvider, AnthropicProvider, OllamaProvider):
        with pytest.raises(UsageError, match="the api key is a value of type bytes and no text"):
            with_key("http://h", secret)


async def test_one_text_is_not_taken_for_its_letters() -> None:
    letters: Any = "hello"
    numbers: Any = [3]
    async with OpenAIEmbeddings("http://127.0.0.1:9/v1", model="m") as embeddings:
        with pytest.raises(UsageError, match=r"texts is one text; give several, like texts=\('hello',\)"):
            await embeddings.embed(letters)
        with pytest.raises(UsageError, match="a text to embed is a value of type int and no text"):
            await embeddings.embed(numbers)


def test_a_message_of_no_words_a_price_below_zero_and_an_unknown_mode_are_refused() -> None:
    nothing: Any = None
    unknown: Any = "sometimes"
    with pytest.raises(UsageError, match=r"a message is None and no text; write it like user\('...'\)"):
        user(nothing)
    with pytest.raises(UsageError, match=r"a message is None and no text; write it like system\('...'\)"):
        system(nothing)
    with pytest.raises(UsageError, match="the price of input is -1; use a number from 0 on"):
        Prices.from_json('{"models": {"m": {"input": -1}}}')
    with pytest.raises(UsageError, match="there is no tool mode 'sometimes'; use auto, native, schema, off"):
        ToolModeProvider(MockProvider(), mode=unknown)
