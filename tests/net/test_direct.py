"""Connections of our own: kept, dropped, raced, bounded, and left to another transport where they end."""

import asyncio
import socket
import ssl
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dialoom.net import DirectTransport, HttpRequest, HttpTimeouts, TransportError
from dialoom.net.direct.body import DirectBody
from dialoom.net.direct.connection import MAX_UNREAD_BYTES, READ_BYTES, Connection
from dialoom.net.direct.dial import alternated, drop
from dialoom.net.direct.place import Place
from dialoom.net.direct.pool import MAX_IDLE, Pool
from dialoom.net.resolve import SystemResolver
from dialoom.testing.wire import Hold, WireReply, WireServer

SOON = 60.0
KEY = Path(__file__).parent / "pages.test.pem"
HERE = Place("127.0.0.1", 80, tls=False)
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


async def ask(transport: DirectTransport, url: str, **fields: Any) -> bytes:
    async with transport.request(HttpRequest(method="GET", url=url, **fields)) as response:
        return await response.aread(100_000)


async def trouble(transport: DirectTransport, url: str, **fields: Any) -> tuple[str, str]:
    with pytest.raises(TransportError) as caught:
        await ask(transport, url, **fields)
    return caught.value.kind, str(caught.value)


@asynccontextmanager
async def talking(talk: Talk, **options: Any) -> AsyncGenerator[int]:
    """A server that treats each connection by `talk`; gives its port."""

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(served, **{"host": "127.0.0.1", "port": 0, **options})
    async with server, asyncio.timeout(SOON):
        yield server.sockets[0].getsockname()[1]


async def test_a_connection_that_ended_while_nobody_looked_is_not_used_again() -> None:
    closed = threading.Event()

    def serve(listening: socket.socket) -> None:
        for _ in range(2):
            peer, _ = listening.accept()
            with peer:
                peer.recv(10_000)
                peer.sendall(OK)
            closed.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        async with DirectTransport() as transport:
            assert await ask(transport, url) == b"ok"
            assert closed.wait(SOON)  # the loop stands still meanwhile, so it cannot have seen the end
            assert await ask(transport, url) == b"ok"


@pytest.mark.parametrize("body", [b"", b'{"model": "m"}'])
async def test_a_kept_connection_that_its_server_leaves_is_replaced_by_a_fresh_one(body: bytes) -> None:
    """llama.cpp says `Keep-Alive` and closes right after each streamed answer."""
    asked: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        await reader.readexactly(len(body))
        writer.write(OK)
        await reader.readuntil(b"\r\n\r\n")  # the next request is on its way, and not a word more

    async with talking(talk) as port, DirectTransport() as transport:
        url = f"http://127.0.0.1:{port}/v1"
        for _ in range(3):
            request = HttpRequest(method="POST" if body else "GET", url=url, body=body)
            async with transport.request(request) as response:
                assert await response.aread(100) == b"ok"
    assert len(asked) == 3


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 2"])
async def test_a_request_that_somebody_may_have_worked_on_is_not_sent_again(
    says: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kept connection that ends later, or in the middle of an answer; and a fresh one that ends at once."""
    asked: list[bytes] = []
    if not says:
        monkeypatch.setattr("dialoom.net.direct.connection.LEFT_SECONDS", 0.0)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK)
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(says)

    async with talking(talk) as port, DirectTransport() as transport:
        url = f"http://127.0.0.1:{port}/v1"
        assert await ask(transport, url) == b"ok"
        kind, _ = await trouble(transport, url)
    assert (kind, len(asked)) == ("closed", 2)


async def test_a_fresh_connection_that_ends_at_once_is_not_asked_again() -> None:
    asked: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))

    async with talking(talk) as port, DirectTransport() as transport:
        url = f"http://127.0.0.1:{port}/v1"
        said = f"{url} closed the connection: Server disconnected without sending a response."
        assert await trouble(transport, url) == ("closed", said)
    assert len(asked) == 1


async def test_a_kept_connection_that_says_nothing_in_time_is_late_and_no_other_is_asked() -> None:
    asked: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK)
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        await reader.read()

    async with talking(talk) as port, DirectTransport() as transport:
        url = f"http://127.0.0.1:{port}/v1"
        assert await ask(transport, url) == b"ok"
        kind, _ = await trouble(transport, url, timeouts=HttpTimeouts(read=0.1))
    assert (kind, len(asked)) == ("timeout", 2)


async def test_words_between_two_exchanges_end_the_connection() -> None:
    connections: list[bool] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(True)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await told.wait()
        writer.write(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        await reader.read()
        left.set()

    told, left = asyncio.Event(), asyncio.Event()
    async with talking(talk) as port, DirectTransport() as transport:
        assert await ask(transport, f"http://127.0.0.1:{port}") == b"ok"
        told.set()
        await left.wait()
        assert await ask(transport, f"http://127.0.0.1:{port}") == b"ok"
    assert len(connections) == 2


async def test_no_more_than_twenty_connections_are_kept() -> None:
    together = asyncio.Barrier(MAX_IDLE + 1)

    async def ask_with_the_others(transport: DirectTransport, url: str) -> None:
        async with transport.request(HttpRequest(method="GET", url=url)) as response:
            await together.wait()
            assert await response.aread(10) == b"ok"

    async with WireServer(lambda _: WireReply(body=(b"ok",))) as server, DirectTransport() as transport:
        async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
            for _ in range(MAX_IDLE + 1):
                group.create_task(ask_with_the_others(transport, server.url))
        await asyncio.wait_for(server.client_left.wait(), SOON)


async def test_a_connection_that_nobody_needs_is_closed_before_its_server_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dialoom.net.direct.pool.IDLE_SECONDS", 0.0)
    async with WireServer([WireReply(body=(b"ok",))]) as server, DirectTransport() as transport:
        assert await ask(transport, server.url) == b"ok"
        await asyncio.wait_for(server.client_left.wait(), SOON)


async def test_closing_the_transport_ends_the_exchanges_that_are_under_way() -> None:
    hold = Hold()
    async with WireServer([WireReply(body=(hold, b"ok"))]) as server, DirectTransport() as transport:
        asked = asyncio.create_task(trouble(transport, server.url))
        await hold.reached.wait()
        await transport.aclose()
        assert (await asked)[0] == "closed"
        await asyncio.wait_for(server.client_left.wait(), SOON)


def full_backlog(port: int) -> list[socket.socket]:
    """Listen on 127.0.0.2 so that a connection there neither comes about nor is refused."""
    listening = socket.create_server(("127.0.0.2", port), backlog=0)
    waiting = [socket.socket() for _ in range(4)]
    for each in waiting:
        each.setblocking(False)
        each.connect_ex(("127.0.0.2", port))
    return [listening, *waiting]


def name_everything(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    async def resolve(self: SystemResolver, host: str) -> Sequence[str]:
        return addresses

    monkeypatch.setattr(SystemResolver, "resolve", resolve)


@pytest.fixture
def two_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    name_everything(monkeypatch, "127.0.0.2", "127.0.0.1")


@pytest.mark.usefixtures("two_addresses")
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere 127.0.0.2 is not this machine")
@pytest.mark.parametrize("first", ["refuses", "keeps silent"])
async def test_an_address_that_leads_nowhere_does_not_hold_up_the_next(first: str) -> None:
    async with WireServer([WireReply(body=(b"ok",))]) as server, DirectTransport() as transport:
        port = int(server.url.rpartition(":")[2])
        in_the_way = full_backlog(port) if first == "keeps silent" else []
        assert await ask(transport, f"http://two.example:{port}") == b"ok"
        for each in in_the_way:
            each.close()


@pytest.mark.usefixtures("two_addresses")
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere 127.0.0.2 is not this machine")
async def test_of_two_addresses_that_both_answer_one_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialoom.net.direct.dial.HEAD_START_SECONDS", 0.0)
    ended: list[bool] = []
    left = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(10_000):
            writer.write(OK)
            await reader.read()
        ended.append(True)
        if len(ended) == 2:
            left.set()

    async with talking(talk) as port, talking(talk, host="127.0.0.2", port=port):
        async with DirectTransport() as transport:
            assert await ask(transport, f"http://two.example:{port}") == b"ok"
        await left.wait()


@pytest.mark.usefixtures("two_addresses")
async def test_a_server_that_no_address_leads_to_is_not_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    async with DirectTransport() as transport:
        assert await trouble(transport, f"http://two.example:{port}/v1") == (
            "connect",
            f"cannot reach http://two.example:{port}/v1: connection refused",
        )


async def test_a_name_without_any_address_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    name_everything(monkeypatch)
    async with DirectTransport() as transport:
        said = "cannot reach http://none.example/: its host name is not known"
        assert await trouble(transport, "http://none.example/") == ("connect", said)


def test_the_second_address_to_be_tried_is_of_the_other_family() -> None:
    assert alternated(["::1", "::2", "1.1.1.1", "1.1.1.2"]) == ["::1", "1.1.1.1", "::2", "1.1.1.2"]
    assert alternated(["1.1.1.1", "1.1.1.2"]) == ["1.1.1.1", "1.1.1.2"]


async def test_a_try_that_has_won_too_late_is_closed() -> None:
    with socket.socket() as too_late:

        async def open_one() -> socket.socket:
            return too_late

        task = asyncio.create_task(open_one())
        await asyncio.wait([task])
        await drop([task])
        assert too_late.fileno() == -1


async def test_an_exchange_that_has_no_time_left_for_its_connection_is_late() -> None:
    async with DirectTransport() as transport:
        said = await trouble(transport, "http://127.0.0.1:9/", timeouts=HttpTimeouts(total=0.0))
    assert said == ("timeout", "http://127.0.0.1:9/ did not answer in time")


async def test_a_body_that_passes_its_bound_is_not_read_on() -> None:
    async with WireServer([WireReply(body=(b"12345", b"67890"))]) as server, DirectTransport() as transport:
        said = f"{server.url} sent more than 9 bytes; the rest was not read"
        assert await trouble(transport, server.url, max_bytes=9) == ("too_large", said)


async def test_a_wait_that_its_caller_bounds_ends_with_the_connection() -> None:
    hold = Hold()
    hold.opened.set()
    async with (
        WireServer([WireReply(body=(b"half", hold), end="cut")]) as server,
        DirectTransport() as transport,
    ):
        kind, said = await trouble(transport, server.url, timeouts=HttpTimeouts(read=None))
    assert (kind, said) == (
        "closed",
        f"{server.url} closed the connection: peer closed connection without sending complete message body",
    )


async def test_a_connection_that_is_lost_before_it_is_used_says_so() -> None:
    connection = Connection(HERE)
    connection.connection_lost(None)
    connection.ask(b"")
    assert str(connection.failure) == "Server disconnected without sending a response."


def test_connections_stay_with_the_event_loop_they_were_made_in() -> None:
    transport = DirectTransport()

    async def ask_once() -> bytes:
        async with WireServer([WireReply(body=(b"ok",), framing="close")]) as server:
            return await ask(transport, server.url)

    assert [asyncio.run(ask_once()) for _ in range(3)] == [b"ok"] * 3


def tls_server() -> ssl.SSLContext:
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(KEY)
    return served


async def test_an_answer_over_tls_comes_by_a_connection_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    name_everything(monkeypatch, "127.0.0.1")
    connections: list[bool] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(True)
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(OK)

    tls = ssl.create_default_context(cafile=KEY)
    async with talking(talk, ssl=tls_server()) as port, DirectTransport(tls=tls) as transport:
        url = f"https://pages.test:{port}"
        assert [await ask(transport, url) for _ in range(2)] == [b"ok", b"ok"]
    assert len(connections) == 1


async def test_a_certificate_of_nobody_is_told_by_its_name() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise AssertionError("nobody talks to a server that cannot prove itself")

    async with talking(talk, ssl=tls_server()) as port, DirectTransport() as transport:
        kind, said = await trouble(transport, f"https://localhost:{port}")
    assert kind == "connect"
    assert said.startswith(f"cannot reach https://localhost:{port}: TLS failed (")


async def test_what_needs_more_than_a_plain_request_is_left_to_the_other_transport() -> None:
    async with WireServer([WireReply(framing="length")] * 3) as server, DirectTransport() as transport:
        for url in (f"{server.url}/räume", f"{server.url}/a/../b"):
            assert await ask(transport, url) == b""
        assert await ask(transport, server.url, headers={"Connection": "close"}) == b""
    assert [seen.path for seen in server.requests] == ["/r%C3%A4ume", "/b", "/"]
    assert [seen.headers["user-agent"].partition("/")[0] for seen in server.requests] == ["python-httpx2"] * 3


async def test_a_plain_request_says_what_every_server_asks_for() -> None:
    async with WireServer([WireReply()] * 2) as server, DirectTransport() as transport:
        await ask(transport, f"{server.url}/v1?a=b", headers={"Accept": "text/plain", "x-number": 7})
        request = HttpRequest(method="POST", url=server.url)
        async with transport.request(request) as response:
            assert response.status == 200
    host = server.url.removeprefix("http://")
    common = {
        "host": host,
        "connection": "keep-alive",
        "user-agent": "dialoom",
        "accept-encoding": "identity",
    }
    assert [(seen.method, seen.path, seen.headers) for seen in server.requests] == [
        ("GET", "/v1?a=b", {**common, "accept": "text/plain", "x-number": "7"}),
        ("POST", "/", {**common, "accept": "*/*", "content-length": "0"}),
    ]


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        (Place("h", 80, tls=False), "h"),
        (Place("h", 80, tls=True), "h:80"),
        (Place("::1", 443, tls=True), "[::1]"),
        (Place("::1", 11434, tls=False), "[::1]:11434"),
    ],
)
def test_a_place_is_written_as_the_host_header_wants_it(place: Place, shown: str) -> None:
    assert str(place) == shown


class Socket(asyncio.Transport):
    """asyncio's side of a connection, as far as a test steers it."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = True
        self.closing = False
        self.unsent = [0]

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closing

    def abort(self) -> None:
        self.closing = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def get_write_buffer_size(self) -> int:
        return self.unsent.pop() if len(self.unsent) > 1 else self.unsent[0]


def arrive(connection: Connection, data: bytes) -> None:
    for at in range(0, len(data), READ_BYTES):
        piece = data[at : at + READ_BYTES]
        connection.get_buffer(-1)[: len(piece)] = piece
        connection.buffer_updated(len(piece))


async def test_a_server_that_sends_faster_than_it_is_read_is_held_back() -> None:
    connection, wire = Connection(HERE), Socket()
    connection.connection_made(wire)
    answer = connection.ask(b"")
    arrive(connection, b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * MAX_UNREAD_BYTES)
    assert not wire.reading
    answer.pieces.clear()
    connection.arrival()
    assert wire.reading


async def test_a_connection_that_was_held_back_is_read_again_before_it_is_kept() -> None:
    connection, wire = Connection(HERE), Socket()
    connection.connection_made(wire)
    answer = connection.ask(b"")
    size = MAX_UNREAD_BYTES + 1
    arrive(connection, b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size)
    assert not wire.reading
    answer.pieces.clear()
    assert connection.finish()
    assert wire.reading


async def test_a_connection_that_is_being_closed_is_not_used_again() -> None:
    pool, connection = Pool(), Connection(HERE)
    connection.connection_made(Socket())
    pool.add(connection)
    pool.give(connection)
    connection.abort()  # as the pool itself does with one too many; the loop has yet to say that it is closed
    assert pool.take(HERE) is None


async def test_a_connection_that_is_reset_says_so() -> None:
    connection, reset = Connection(HERE), ConnectionResetError(104, "Connection reset by peer")
    connection.connection_made(Socket())
    connection.ask(b"")
    connection.connection_lost(reset)
    assert connection.failure is reset


async def test_a_long_request_that_is_still_being_taken_is_no_silence() -> None:
    connection, wire = Connection(HERE), Socket()
    connection.connection_made(wire)
    wire.unsent = [1, 1, 1, 2, 2, 3]
    request = HttpRequest(method="POST", url="http://h", timeouts=HttpTimeouts(read=0.0))
    body = DirectBody(connection, connection.ask(b""), request, ends_at=None)
    with pytest.raises(TransportError, match="did not answer in time"):
        await body.head()
    assert wire.unsent == [1]
