"""A cancelled answer, as the server of the model sees it: its socket is closed, and soon."""

import asyncio
import socket
import time
from collections.abc import Callable

import pytest

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.llm import ChatOptions, OpenAIProvider, chat
from dialoom.net import DirectTransport, Httpx2Transport
from tests.llm.served import HELLO, SOON, chunk

SEEN_SECONDS = 0.2
TRIES = 5
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
WORDS = chunk({"content": "word and more "})
EVENT = b"%x\r\n%b\r\n" % (len(WORDS), WORDS)

Serve = Callable[[socket.socket, CancelScope], float]


def left(peer: socket.socket, cancel: CancelScope) -> float:
    """Cancel, and return the seconds until the client has left."""
    began = time.monotonic()
    cancel.cancel()
    try:
        while peer.recv(1_000):
            pass
    except ConnectionError:
        pass
    return time.monotonic() - began


def before_the_head(peer: socket.socket, cancel: CancelScope) -> float:
    return left(peer, cancel)


def in_a_silence(peer: socket.socket, cancel: CancelScope) -> float:
    peer.sendall(HEAD + EVENT)
    return left(peer, cancel)


def in_a_burst(peer: socket.socket, cancel: CancelScope) -> float:
    peer.sendall(HEAD + EVENT * 500)
    began = time.monotonic()
    cancel.cancel()
    try:
        while time.monotonic() < began + SOON:
            peer.sendall(EVENT * 50)
    except ConnectionError:
        pass
    return time.monotonic() - began


def serve_one(listening: socket.socket, cancel: CancelScope, serve: Serve) -> float:
    peer, _ = listening.accept()
    with peer:
        peer.settimeout(SOON)
        peer.recv(100_000)
        return serve(peer, cancel)


@pytest.mark.parametrize("serve", [before_the_head, in_a_silence, in_a_burst])
@pytest.mark.parametrize("new_transport", [DirectTransport, Httpx2Transport])
async def test_the_server_sees_a_cancel_within_a_fifth_of_a_second(
    serve: Serve, new_transport: type[DirectTransport] | type[Httpx2Transport]
) -> None:
    seen: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(SOON)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        async with new_transport() as transport:
            while len(seen) < TRIES and min(seen, default=SOON) > SEEN_SECONDS:  # a busy machine only adds
                scope = CancelScope()
                served = asyncio.create_task(asyncio.to_thread(serve_one, listening, scope, serve))
                with pytest.raises(Cancelled):
                    await chat(OpenAIProvider(url, transport=transport), HELLO, ChatOptions(cancel=scope))
                seen.append(await served)
    assert min(seen) <= SEEN_SECONDS
