"""Questions that end early, late or not at all: each ends once, says why, and leaves no socket open."""

import asyncio

import msgspec
import pytest

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.base.errors import UsageError
from dialoom.llm import (
    Capability,
    ChatOptions,
    Model,
    OpenAIProvider,
    ProviderError,
    ResponseStarted,
    TextDelta,
    Timeouts,
    chat,
)
from dialoom.llm.retry import ONCE
from dialoom.llm.wire.body import AnswerBody
from dialoom.net import HttpRequest, Httpx2Transport
from dialoom.testing import ManualClock
from dialoom.testing.clock import settle
from dialoom.testing.wire import Hold, WireReply, WireServer, split_bytes
from tests.llm.served import (
    ASK_ONCE,
    HELLO,
    KEY,
    SAID,
    SOON,
    ask,
    chunk,
    failure,
    read_all,
    served,
    sse,
    streamed,
)


async def test_a_refused_request_tells_its_kind_its_wait_and_its_id() -> None:
    headers = {"content-type": "application/json", "retry-after": "7", "x-request-id": "r-1"}
    body = msgspec.json.encode({"error": {"message": f"slow down, {KEY}", "type": "rate_limit_error"}})
    error = await failure(WireReply(status=429, headers=headers, body=(body,)), id="desk")
    assert (error.kind, error.status, error.retry_after, error.request_id) == ("rate_limit", 429, 7.0, "r-1")
    assert (error.provider, error.model, error.retryable) == ("desk", "", True)
    assert "answered 429: slow down, ***; wait a little and ask again" in str(error)


async def test_a_page_for_people_becomes_its_title() -> None:
    page = b"<html><head><title>502 Bad gateway</title></head>" + b"x" * 500_000
    error = await failure(WireReply(status=502, headers={"content-type": "text/html"}, body=(page,)))
    assert (error.kind, error.status) == ("server_error", 502)
    assert "answered 502: an HTML page (502 Bad gateway); ask again" in str(error)


async def test_what_was_said_before_an_error_is_seen_however_it_is_cut() -> None:
    whole = b"".join((*SAID[:2], sse({"error": "worn out"}), chunk({"content": "never seen"})))
    for size in (1, len(whole)):
        pieces = split_bytes(whole, range(size, len(whole), size))
        seen = []
        async with served(streamed(*pieces)) as (_, provider), provider.stream(HELLO) as stream:
            with pytest.raises(ProviderError, match="worn out"):
                async for event in stream:
                    seen.append(event)  # noqa: PERF401 - what came before the error counts
        assert seen == [ResponseStarted(model="demo", response_id="cc-1"), TextDelta("Hel"), TextDelta("lo")]


async def test_what_follows_the_end_of_an_answer_is_not_part_of_it() -> None:
    assert (await ask(streamed(b"".join((*SAID, chunk({"content": " again"})))))).text == "Hello"


async def test_an_event_without_choices_says_nothing_unless_it_is_an_error() -> None:
    odd = b'data: {"object":"note","n":1' + b"0" * 5_000 + b"}\n\n", sse({"message": "a note"})
    assert (await ask(streamed(*odd, *SAID))).text == "Hello"
    for error in ({"object": "error", "message": "worn out"}, {"message": "worn out", "code": None}):
        said = await failure(streamed(*SAID[:1], sse(error), *SAID[1:]))
        assert (said.kind, said.partial and said.partial.text) == ("server_error", "Hel")
        assert "worn out" in str(said)


async def test_a_missing_path_asks_about_the_model_and_the_base_url() -> None:
    error = await failure(WireReply(status=404, body=(b"not here",)))
    assert error.kind == "bad_request"
    assert str(error).endswith(
        ": not here; check the model's name, and whether the base url should end in /v1"
    )


async def test_a_redirect_names_where_to() -> None:
    error = await failure(WireReply(status=308, headers={"location": "https://else.example/v1?token=x"}))
    assert error.kind == "invalid_response"
    assert "answered 308 (it points to https://else.example/v1): without a word" in str(error)


async def test_an_error_body_that_never_ends_is_not_needed() -> None:
    error = await failure(WireReply(status=500, body=(b"half a rea",), end="cut"))
    assert (error.kind, error.status) == ("server_error", 500)


async def test_nobody_listening_names_the_address_and_what_to_do() -> None:
    async with WireServer([]) as server:
        pass
    async with OpenAIProvider(f"{server.url}/v1") as provider:
        for question in (chat(provider, HELLO, ASK_ONCE), provider.models()):
            with pytest.raises(ProviderError) as caught:
                await question
            assert (caught.value.kind, caught.value.retryable) == ("connection", True)
            assert f"cannot reach {server.url}/v1/" in str(caught.value)
            assert str(caught.value).endswith(
                "connection refused; start the server there, or check the base url"
            )


@pytest.mark.parametrize(
    ("pieces", "wait", "said", "kept"),
    [
        ((), 30, "did not begin to answer within 30 s", None),
        ((b": still reading\n\n",), 30, "did not begin to answer within 30 s", None),
        ((SAID[0],), 10, "sent nothing for 10 s", "Hel"),
    ],
)
async def test_a_server_that_is_late_is_left(
    pieces: tuple[bytes, ...], wait: int, said: str, kept: str | None
) -> None:
    clock, hold = ManualClock(), Hold()
    options = ChatOptions(timeouts=Timeouts(first_event=30, idle=10, total=100), retry=ONCE)
    late = streamed(*pieces, hold)
    async with asyncio.timeout(SOON), served(late, clock=clock) as (server, provider):
        async with provider.stream(HELLO, options) as stream:
            reading = asyncio.create_task(read_all(stream))
            await hold.reached.wait()
            while kept and not stream.partial.parts:
                await settle()
            await clock.advance(wait)
            with pytest.raises(ProviderError) as caught:
                await reading
        await server.client_left.wait()
    error = caught.value
    assert (error.kind, error.retryable) == ("timeout", True)
    assert (error.partial.text if error.partial else None) == kept
    assert str(error) == f"openai at {server.url}/v1 {said}; ask again, or allow more time"


@pytest.mark.promise("llm-034")
async def test_cancelling_closes_the_socket_and_ends_the_answer_once() -> None:
    hold, scope = Hold(), CancelScope()
    async with asyncio.timeout(SOON), served(streamed(SAID[0], hold)) as (server, provider):
        async with provider.stream(HELLO, ChatOptions(cancel=scope)) as stream:
            reading = asyncio.create_task(read_all(stream))
            await hold.reached.wait()
            while not stream.partial.parts:
                await settle()
            scope.cancel()
            with pytest.raises(Cancelled):
                await reading
            await server.client_left.wait()
            assert await read_all(stream) == []
        assert stream.partial.text == "Hel"


async def test_cancelling_before_the_head_of_the_answer_closes_the_socket_too() -> None:
    scope = CancelScope()
    arrived, left = asyncio.Event(), asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        while await reader.read(100):
            pass
        writer.close()
        await writer.wait_closed()
        left.set()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    async with server, asyncio.timeout(SOON):
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        async with OpenAIProvider(address) as provider:
            task = asyncio.create_task(chat(provider, HELLO, ChatOptions(cancel=scope)))
            await arrived.wait()
            scope.cancel()
            with pytest.raises(Cancelled):
                await task
            await left.wait()


async def test_a_cancelled_task_closes_the_socket() -> None:
    hold = Hold()
    async with asyncio.timeout(SOON), served(streamed(SAID[0], hold)) as (server, provider):
        task = asyncio.create_task(chat(provider, HELLO))
        await hold.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.client_left.wait()


async def test_a_scope_cancelled_beforehand_sends_nothing() -> None:
    scope = CancelScope()
    scope.cancel()
    async with WireServer([]) as server, OpenAIProvider(f"{server.url}/v1") as provider:
        with pytest.raises(Cancelled):
            await chat(provider, HELLO, ChatOptions(cancel=scope))
        assert server.requests == []


async def test_a_transport_that_was_lent_stays_open() -> None:
    async with WireServer([streamed(*SAID)]) as server, Httpx2Transport() as transport:
        async with OpenAIProvider(f"{server.url}/v1", transport=transport) as provider:
            await chat(provider, HELLO)
        async with transport.request(HttpRequest(method="GET", url=server.url)) as response:
            assert response.status == 500
        assert not server.client_left.is_set()


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        ("ftp://x", None, "is no http address"),
        ("http://ada:secret@host/v1", None, "http://host/v1 holds a user name or password"),
        ("http://host/v1", "sk-ключ", "the api key holds characters that no key has"),
        ("http://host/v1", "two words", "the api key holds characters that no key has"),
    ],
)
def test_an_address_or_key_that_cannot_be_sent_is_refused_at_once(
    url: str, key: str | None, said: str
) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        OpenAIProvider(url, key)
    assert "secret" not in str(caught.value)


def test_a_provider_shows_its_address_and_never_its_key() -> None:
    provider = OpenAIProvider("http://host/v1/", f" {KEY}\n", headers={"X-Api-Key": "other-secret"})
    assert repr(provider) == "OpenAIProvider(openai at http://host/v1)"


async def test_the_models_of_a_server_are_told_apart_by_what_they_can() -> None:
    listing = {
        "data": [
            {"id": "tiny", "max_model_len": 4096},
            {"id": "nomic-embed-text", "meta": {"n_ctx_train": 2048}},
            {"id": "", "x": 1},
            7,
        ]
    }
    reply = WireReply(body=(msgspec.json.encode(listing),))
    async with served(reply, id="desk") as (server, provider):
        models = await provider.models()
    able = Capability.TEXT | Capability.TOOLS | Capability.STREAMING
    assert models == (
        Model(id="tiny", provider="desk", capabilities=able, context_window=4096),
        Model(id="nomic-embed-text", provider="desk", capabilities=Capability.EMBEDDING, context_window=2048),
    )
    assert (server.requests[0].method, server.requests[0].path) == ("GET", "/v1/models")


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (WireReply(status=401, body=(b'{"error":"no"}',)), "auth"),
        (WireReply(body=(b"<html>",)), "invalid_response"),
        (WireReply(body=(b'{"hello":1}',)), "invalid_response"),
        (WireReply(body=(b"[" * 100_000,)), "invalid_response"),
        (WireReply(body=(b" " * 9_000_000,)), "invalid_response"),
        (WireReply(body=(b"{",), end="cut"), "connection"),
    ],
)
async def test_a_list_of_models_that_cannot_be_read_is_an_error(reply: WireReply, kind: str) -> None:
    async with WireServer([reply]) as server, OpenAIProvider(f"{server.url}/v1", KEY) as provider:
        with pytest.raises(ProviderError) as caught:
            await provider.models()
    assert caught.value.kind == kind


async def test_an_empty_list_of_models_is_a_list() -> None:
    async with (
        WireServer([WireReply(body=(b'{"data":[]}',))]) as server,
        OpenAIProvider(server.url) as provider,
    ):
        assert await provider.models() == ()


async def test_an_endless_whole_body_is_refused() -> None:
    reply = WireReply(body=(b"{", *([b" " * 4_000_000] * 9)))
    error = await failure(reply)
    assert error.kind == "invalid_response"
    assert "a body of more than" in str(error)


def test_megabytes_of_blanks_before_an_answer_cost_no_more_than_their_bytes() -> None:
    body = AnswerBody()
    for _ in range(20_000):
        assert body.feed(b" " * 1_000) == []
    assert body.feed(b'{"a":') == body.feed(b"1} ") == []
    assert [event.data for event in body.finish()] == ['{"a":1}']


def test_connections_may_be_used_from_one_event_loop_after_another() -> None:
    transport = Httpx2Transport()

    async def ask_once() -> str:
        async with WireServer([streamed(*SAID, framing="close")]) as server:
            return (await chat(OpenAIProvider(f"{server.url}/v1", transport=transport), HELLO)).text

    assert [asyncio.run(ask_once()) for _ in range(2)] == ["Hello", "Hello"]
