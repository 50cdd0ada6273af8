"""A marked key goes in at every door and comes out at none: error, trace, log, repr, event or cassette."""

import logging
import traceback
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dialoom.graph import END, START, GraphBuilder, JsonTraceObserver, LoggingObserver, NodeContext
from dialoom.llm import (
    AnthropicProvider,
    CassetteProvider,
    ChatOptions,
    EmbeddingOptions,
    FallbackProvider,
    LimitedProvider,
    Limits,
    ModelRequest,
    ModelSettings,
    OllamaProvider,
    OpenAIEmbeddings,
    OpenAIProvider,
    Provider,
    ProviderError,
    RetryPolicy,
    StreamEvent,
    WireProfile,
    chat,
    open_provider,
    resolve_model,
    user,
)
from dialoom.net import HttpRequest, Httpx2Transport
from dialoom.testing.wire import WireReply, WireRequest, WireServer
from tests.llm.served import HELLO

KEY = "sk-ant-marker-0123456789abcdef"
OTHER = "team-marker-abcdef0123456789"
OPTIONS = ChatOptions(
    model="m",
    retry=RetryPolicy(attempts=2, first_wait=0.0),
    extra_headers={"x-team-key": OTHER},
    extra_body={"auth_token": OTHER},
)

Make = Callable[[str], Provider]
MADE: dict[str, Make] = {
    "openai": lambda url: OpenAIProvider(f"{url}/v1", KEY),
    "anthropic": lambda url: AnthropicProvider(url, KEY),
    "token": lambda url: AnthropicProvider(url, headers={"Authorization": f"Bearer {KEY}"}),
    "responses": lambda url: OpenAIProvider(f"{url}/v1", KEY, profile=WireProfile(api="responses")),
    "ollama": lambda url: OllamaProvider(url, KEY),
}


def told(text: str) -> dict[str, WireReply]:
    """Ways in which a server may tell `text` to whoever asks it."""
    error = msgspec.json.encode({"error": {"type": text, "message": f"bad key {text}, again: {text}"}})
    stream = {"content-type": "text/event-stream"}
    return {
        "an error body": WireReply(status=401, body=(error,)),
        "a passing error": WireReply(status=503, body=(error,)),
        "plain words": WireReply(status=400, body=(text.encode(),)),
        "a page": WireReply(status=502, body=(f"<html><title>{text}</title>".encode(),)),
        "a redirect": WireReply(status=302, headers={"location": f"https://{text}@else.example/?key={text}"}),
        "an id": WireReply(status=500, headers={"request-id": text, "x-request-id": text}, body=(b"x",)),
        "an error event": WireReply(headers=stream, body=(b"event: error\ndata: " + error + b"\n\n",)),
        "a broken event": WireReply(headers=stream, body=(b'data: {"key":"' + text.encode() + b"\n\n",)),
    }


async def told_by(provider: Provider) -> AsyncGenerator[StreamEvent | ProviderError]:
    """Everything a program gets to see of one question."""
    try:
        async with provider.stream(HELLO, OPTIONS) as stream:
            async for event in stream:
                yield event
    except ProviderError as error:
        yield error


def shown(value: Any) -> str:
    """All of it as people, logs and tests would see it, an error with its whole traceback."""
    if isinstance(value, ProviderError):
        trace = "".join(traceback.format_exception(value))
        return "\n".join((str(value), repr(value), repr(value.reply), repr(value.origin), trace))
    return repr(value)


def everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Have every logger there is tell everything, those of the HTTP client and of asyncio too."""
    caplog.set_level(logging.DEBUG)
    for name in logging.root.manager.loggerDict:
        caplog.set_level(logging.DEBUG, name)


async def check_that_it_is_not_shown(
    way: str, make: Make, tape: Path, caplog: pytest.LogCaptureFixture
) -> None:
    everything_is_logged(caplog)

    def reply(request: WireRequest) -> WireReply:
        assert KEY in str(request.headers)
        return told(KEY)[way]

    async with WireServer(reply) as server:
        inner = LimitedProvider(FallbackProvider(make(server.url)), Limits(concurrency=1))
        async with CassetteProvider(tape, inner, secrets=(OTHER,)) as provider:
            seen = [each async for each in told_by(provider)]
            for value in (*seen, provider, inner):
                assert "marker" not in shown(value)
    assert isinstance(seen[-1], ProviderError)
    assert "marker" not in caplog.text
    assert "marker" not in tape.read_text(encoding="utf-8")


@pytest.mark.parametrize("way", told(""))
@pytest.mark.parametrize("made", MADE)
async def test_a_server_that_repeats_the_key_does_not_get_it_shown(
    made: str, way: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await check_that_it_is_not_shown(way, MADE[made], tmp_path / "tape", caplog)


@pytest.mark.parametrize("way", told(""))
async def test_nor_does_it_over_httpx(way: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    if way in {"a redirect", "an id"}:  # at DEBUG httpcore itself tells the headers that a server sent
        caplog.handler.addFilter(lambda record: not record.name.startswith("httpcore2"))
    async with Httpx2Transport() as transport:

        def make(url: str) -> Provider:
            return OpenAIProvider(f"{url}/v1", KEY, transport=transport)

        await check_that_it_is_not_shown(way, make, tmp_path / "tape", caplog)


@pytest.mark.parametrize("way", told(""))
async def test_a_server_of_vectors_that_repeats_the_key_does_not_get_it_shown(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    everything_is_logged(caplog)

    def reply(request: WireRequest) -> WireReply:
        assert KEY in str(request.headers)
        return told(KEY)[way]

    options = EmbeddingOptions(retry=RetryPolicy(attempts=2, first_wait=0.0))
    async with (
        WireServer(reply) as server,
        OpenAIEmbeddings(f"{server.url}/v1", KEY, model="m", options=options) as embeddings,
    ):
        with pytest.raises(ProviderError) as caught:
            await embeddings.embed(["a river"])
        assert "marker" not in shown(caught.value) + repr(embeddings)
    assert "marker" not in caplog.text


async def test_the_trace_and_the_log_of_a_run_do_not_show_the_key(caplog: pytest.LogCaptureFixture) -> None:
    everything_is_logged(caplog)
    trace = JsonTraceObserver()
    async with WireServer(lambda _: told(KEY)["an error body"]) as server, MADE["openai"](server.url) as llm:

        async def ask(_: NodeContext) -> None:
            await chat(llm, HELLO, OPTIONS)

        graph = GraphBuilder("keys")
        graph.add_node("ask", ask)
        graph.add_edge(START, "ask")
        graph.add_edge("ask", END)
        result = await graph.build(observers=[trace, LoggingObserver()]).run({})
    assert [error.node for error in result.errors] == ["ask"]
    for text in (trace.to_json(), repr(result), caplog.text):
        assert text
        assert "marker" not in text


def test_no_value_that_holds_a_key_shows_it() -> None:
    settings = ModelSettings(model="anthropic:claude", api_key=KEY)
    variables = {"ANTHROPIC_AUTH_TOKEN": KEY, "OPENAI_API_KEY": KEY}
    requests = [ModelRequest(flags=settings), ModelRequest(env=variables)]
    choices = [resolve_model(request) for request in requests]
    values = [
        settings,
        *requests,
        *choices,
        *(open_provider(choice) for choice in choices),
        *(make("http://h") for make in MADE.values()),
        OPTIONS,
        HttpRequest(method="POST", url="http://h", headers={"x-api-key": KEY}, body=KEY.encode()),
    ]
    for value in values:
        assert "marker" not in repr(value)
        assert "marker" not in str(getattr(value, "__rich_repr__", str)())


def test_options_show_what_was_chosen_and_only_the_names_of_what_was_added() -> None:
    options = ChatOptions(
        model="m", seed=3, extra_headers={"x-b": "1", "x-a": "2"}, extra_body={"k": user("x")}
    )
    assert repr(options) == "ChatOptions(model='m', seed=3, extra_headers=['x-a', 'x-b'], extra_body=['k'])"
    assert repr(ChatOptions()) == "ChatOptions()"
