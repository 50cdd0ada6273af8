"""HTTP over a real socket, by either of our transports: what comes back, and what each trouble is called."""

import asyncio
import gzip
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import pytest

from dialoom.base.errors import UsageError
from dialoom.net import (
    DirectTransport,
    HttpRequest,
    HttpTimeouts,
    Httpx2Transport,
    TransportError,
    read_head,
)
from dialoom.testing.wire import Hold, WireReply, WireServer

SOON = 60.0

NewTransport = type[Httpx2Transport] | type[DirectTransport]


@pytest.fixture(params=[Httpx2Transport, DirectTransport])
def new_transport(request: pytest.FixtureRequest) -> NewTransport:
    return request.param


def get(url: str, **changes: object) -> HttpRequest:
    return HttpRequest(method="GET", url=url, **changes)  # type: ignore[arg-type]  # changes are fields by name


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


async def trouble(request: HttpRequest, new_transport: NewTransport) -> TransportError:
    async with new_transport() as transport:
        with pytest.raises(TransportError) as caught:
            async with transport.request(request) as response:
                await response.aread(10_000)
    return caught.value


@pytest.mark.promise("llm-031")
async def test_a_request_arrives_whole_and_its_answer_comes_back(new_transport: NewTransport) -> None:
    reply = WireReply(status=201, headers={"X-Kind": "test"}, body=(b"ab", b"cd"))
    async with WireServer([reply]) as server, new_transport() as transport:
        request = HttpRequest(method="POST", url=f"{server.url}/v1/x?y=1", headers={"X-Key": "k"}, body=b"{}")
        async with transport.request(request) as response:
            assert (response.status, response.headers["x-kind"]) == (201, "test")
            assert [piece async for piece in response.aiter_bytes()] == [b"ab", b"cd"]
    (seen,) = server.requests
    assert (seen.method, seen.path, seen.headers["x-key"], seen.body) == ("POST", "/v1/x?y=1", "k", b"{}")
    assert seen.headers["accept-encoding"] == "identity"


async def test_a_finished_exchange_leaves_its_connection_to_the_next(new_transport: NewTransport) -> None:
    async with WireServer([WireReply(body=(b"a",)), WireReply(body=(b"b",))]) as server:
        async with new_transport() as transport:
            bodies = []
            for _ in range(2):
                async with transport.request(get(server.url)) as response:
                    bodies.append(await response.aread(10))
            assert bodies == [b"a", b"b"]
            assert not server.client_left.is_set()
        await asyncio.wait_for(server.client_left.wait(), SOON)


async def test_leaving_early_closes_the_connection(new_transport: NewTransport) -> None:
    hold = Hold()
    async with WireServer([WireReply(body=(b"first", hold))]) as server, new_transport() as transport:
        async with transport.request(get(server.url)) as response:
            async for piece in response.aiter_bytes():
                assert piece == b"first"
                break
        await asyncio.wait_for(server.client_left.wait(), SOON)


async def test_a_compressed_body_is_unpacked_and_bounded_as_unpacked(new_transport: NewTransport) -> None:
    packed = gzip.compress(b"x" * 1000)
    reply = WireReply(headers={"content-encoding": "gzip"}, body=(packed,))
    async with WireServer([reply, reply]) as server, new_transport() as transport:
        async with transport.request(get(server.url)) as response:
            assert await response.aread(1000) == b"x" * 1000
        async with transport.request(get(server.url, max_bytes=999)) as response:
            with pytest.raises(TransportError, match="sent more than 999 bytes") as caught:
                await response.aread(10_000)
    assert caught.value.kind == "too_large"


async def test_a_body_larger_than_its_reader_wants_is_refused_or_read_in_part(
    new_transport: NewTransport,
) -> None:
    reply = WireReply(body=(b"12345", b"67890"))
    async with WireServer([reply] * 3) as server, new_transport() as transport:
        async with transport.request(get(server.url)) as response:
            with pytest.raises(TransportError, match="sent more than 9 bytes; the rest was not read"):
                await response.aread(9)
        async with transport.request(get(server.url)) as response:
            assert await read_head(response, 7) == b"1234567"
        async with transport.request(get(server.url)) as response:
            assert await read_head(response, 99) == b"1234567890"


async def test_a_redirect_is_not_followed_and_a_cookie_not_kept(new_transport: NewTransport) -> None:
    moved = WireReply(status=302, headers={"location": "/other", "set-cookie": "a=b"})
    async with WireServer([moved, WireReply()]) as server, new_transport() as transport:
        for status in (302, 200):
            async with transport.request(get(server.url)) as response:
                assert response.status == status
                assert await response.aread(10) == b""
    assert [("cookie" in seen.headers, seen.path) for seen in server.requests] == [(False, "/"), (False, "/")]


async def test_a_proxy_of_the_environment_never_stands_before_this_machine(
    monkeypatch: pytest.MonkeyPatch, new_transport: NewTransport
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    async with (
        WireServer([WireReply(body=(b"direct",))]) as server,
        new_transport() as transport,
        transport.request(get(server.url)) as response,
    ):
        assert await response.aread(10) == b"direct"


async def test_another_machine_is_asked_through_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, new_transport: NewTransport
) -> None:
    async with WireServer([WireReply(body=(b"proxied",))]) as proxy, new_transport() as transport:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        async with transport.request(get("http://models.example/v1")) as response:
            assert await response.aread(10) == b"proxied"
    assert proxy.requests[0].path == "http://models.example/v1"


async def test_a_proxy_that_is_not_there_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch, new_transport: NewTransport
) -> None:
    port = free_port()
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, f"http://ann:secret@127.0.0.1:{port}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    error = await trouble(get("http://models.example/v1"), new_transport)
    way = f"through the proxy http://127.0.0.1:{port} that the environment names"
    said = f"cannot reach http://models.example/v1: connection refused ({way})"
    assert (error.kind, str(error)) == ("connect", said)


@pytest.mark.parametrize("proxy", ["garbage://ann:secret@proxy.example", "socks5://127.0.0.1:1080"])
async def test_a_proxy_that_cannot_be_used_is_told_with_the_variables_to_correct(
    proxy: str, monkeypatch: pytest.MonkeyPatch, new_transport: NewTransport
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, proxy)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with new_transport() as transport:
        with pytest.raises(
            UsageError, match=r"a proxy that cannot be used .*; correct HTTPS_PROXY"
        ) as caught:
            async with transport.request(get("https://models.example/v1")):
                pass
    assert "secret" not in str(caught.value)


async def test_nobody_listening_is_a_refused_connection(new_transport: NewTransport) -> None:
    port = free_port()
    for host in ("127.0.0.1", "localhost"):
        error = await trouble(get(f"http://{host}:{port}/v1"), new_transport)
        assert (error.kind, str(error)) == (
            "connect",
            f"cannot reach http://{host}:{port}/v1: connection refused",
        )


async def test_a_name_that_nobody_has_is_said_so(
    monkeypatch: pytest.MonkeyPatch, new_transport: NewTransport
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    error = await trouble(get("http://nobody.invalid/v1"), new_transport)
    assert (error.kind, str(error)) == (
        "connect",
        "cannot reach http://nobody.invalid/v1: its host name is not known",
    )


@asynccontextmanager
async def blunt_server(words: bytes) -> AsyncGenerator[str]:
    """A server that says its words to whoever comes; gives its address without a scheme."""
    left = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(words)
        with suppress(ConnectionError):
            await reader.read(1 if words else -1)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        left.set()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await asyncio.wait_for(left.wait(), SOON)


async def test_tls_to_a_plain_server_fails_as_tls(new_transport: NewTransport) -> None:
    async with blunt_server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
        error = await trouble(get(f"https://{address}"), new_transport)
    assert error.kind == "connect"
    assert "it seems to speak plain http; try http://" in str(error)


@pytest.mark.promise("llm-032")
async def test_a_server_that_never_greets_is_not_reached_in_time(new_transport: NewTransport) -> None:
    async with blunt_server(b"") as address:
        error = await trouble(get(f"https://{address}", timeouts=HttpTimeouts(connect=0.05)), new_transport)
    assert (error.kind, str(error)) == (
        "connect",
        f"cannot reach https://{address}: it did not answer in time",
    )


async def test_a_body_that_is_not_packed_as_it_says_cannot_be_read(new_transport: NewTransport) -> None:
    reply = WireReply(headers={"content-encoding": "gzip"}, body=(b"plain text",))
    async with WireServer([reply]) as server:
        error = await trouble(get(server.url), new_transport)
    assert error.kind == "protocol"
    assert f"{server.url} sent what cannot be read" in str(error)


@pytest.mark.parametrize("end", ["cut", "reset"])
async def test_a_body_that_breaks_off_is_a_closed_connection(end: str, new_transport: NewTransport) -> None:
    hold = Hold()
    hold.opened.set()
    async with WireServer([WireReply(body=(b"half", hold), end=end)]) as server:  # type: ignore[arg-type]  # a Literal
        error = await trouble(get(server.url), new_transport)
    assert error.kind == "closed"
    assert f"{server.url} closed the connection" in str(error)


async def test_words_that_are_no_http_close_the_exchange(new_transport: NewTransport) -> None:
    async with blunt_server(b"220 mail.example ESMTP\r\n") as address:
        error = await trouble(get(f"http://{address}"), new_transport)
    assert error.kind == "closed"


@pytest.mark.parametrize(
    "timeouts", [HttpTimeouts(read=0.05), HttpTimeouts(read=None, total=0.5)], ids=["read", "total"]
)
@pytest.mark.parametrize("first", [(), (b"some",)], ids=["before the body", "within the body"])
@pytest.mark.promise("llm-033")
async def test_silence_ends_in_a_timeout(
    timeouts: HttpTimeouts, first: tuple[bytes, ...], new_transport: NewTransport
) -> None:
    async with WireServer([WireReply(body=(*first, Hold()))]) as server:
        error = await trouble(get(server.url, timeouts=timeouts), new_transport)
        assert (error.kind, str(error)) == ("timeout", f"{server.url} did not answer in time")


async def test_no_head_in_time_is_a_timeout_and_no_connection_a_connect_error(
    new_transport: NewTransport,
) -> None:
    quiet = socket.create_server(("127.0.0.1", 0), backlog=1)
    with quiet:
        url = f"http://127.0.0.1:{quiet.getsockname()[1]}"
        error = await trouble(get(url, timeouts=HttpTimeouts(read=0.05)), new_transport)
    assert error.kind == "timeout"


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (
            get("http://h", headers={"authorization": "Bearer sk-ключ"}),
            "header 'authorization' holds characters",
        ),
        (
            get("http://h", headers={"authorization": "Bearer sk-a\nb"}),
            "header 'authorization' holds characters",
        ),
        (get("http://h", headers={"a b": "c"}), "header 'a b' holds characters"),
        (get("http://h/" + "x" * 70_000), "check its length"),
        (get("localhost:11434"), "is no http address"),
    ],
    ids=["letters", "line end", "name", "length", "scheme"],
)
async def test_a_request_that_cannot_be_sent_is_the_callers_mistake(
    request_: HttpRequest, said: str, new_transport: NewTransport
) -> None:
    async with new_transport() as transport:
        with pytest.raises(UsageError) as caught:
            async with transport.request(request_):
                pytest.fail("nothing can be sent")
    assert said in str(caught.value)
    assert "sk-" not in str(caught.value)


def test_a_request_shows_neither_its_headers_nor_its_body() -> None:
    request = HttpRequest(method="POST", url="http://h/v1", headers={"authorization": "sk-1"}, body=b"secret")
    assert repr(request) == "HttpRequest(POST http://h/v1, 6 bytes)"
    assert request.__rich_repr__() == [("method", "POST"), ("url", "http://h/v1"), ("bytes", 6)]
