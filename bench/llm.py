"""What a streamed chunk costs, against bare loops over our own transport and httpx2, and the official SDKs.

The SDKs are read in the Python that `DIALOOM_RIVALS_PYTHON` names, for they are no dependency of ours;
without it their rows are left out, and standard error says so.
"""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec

from bench.child import Child, child, rivals_python
from bench.measure import Turns, medians, process_cpu
from bench.report import Row
from bench.stream_server import CHUNKS
from dialoom.llm import AnthropicProvider, ChatOptions, OpenAIProvider, Provider, TextDelta, user
from dialoom.net import DirectTransport, HttpRequest, HttpTimeouts

PACKAGES: tuple[str, ...] = ("httptools", "httpx2", "msgspec")
ROUNDS = 7
MINIMAL = "httpx2, msgspec, jsonschema_rs, jiter"
RIVAL_SCRIPT = str(Path(__file__).with_name("rival_stream.py"))
MUST = {
    "burst": {
        "bare DirectTransport + msgspec": 5.0,
        "bare httpx2 + msgspec": 1.0,
        "SDK, openai.create": 0.2,
        "SDK, openai.stream": 0.2,
        "SDK, anthropic.create": 0.5,
        "SDK, anthropic.stream": 0.5,
    },
    "paced": {
        "bare DirectTransport + msgspec": 2.0,
        "bare httpx2 + msgspec": 1.0,
        "SDK, openai.create": 0.35,
        "SDK, openai.stream": 0.25,
        "SDK, anthropic.create": 0.6,
        "SDK, anthropic.stream": 0.5,
    },
}
"""Of the CPU of each rival. An SDK's `create` gives bare events; its `stream`, like ours, also puts the
answer together. A fifth of openai's and half of anthropic's is the aim; decision 0209 says what is held.
"""
_WIRES = {"openai": "chat/completions", "anthropic": "messages"}

BODY = b'{"model":"m","max_tokens":2000,"stream":true,"messages":[{"role":"user","content":"hi"}]}'

_Ask = Callable[[], Awaitable[float]]
_Open = Callable[[], AbstractAsyncContextManager[AsyncIterator[bytes]]]


def rows() -> list[Row]:
    """Return CPU per chunk, ours and each rival's, taken in turn."""
    rivals = rivals_python("the rows of the official SDKs are left out")
    with child(sys.executable, "-m", "bench.stream_server") as server:
        return [_import_row(), *asyncio.run(_rows(server.line(), rivals))]


def _import_row() -> Row:
    """Return the CPU of importing the models, against that of the packages they stand on."""
    code = [f"import {name}" for name in ("dialoom.llm", MINIMAL)]
    taken = medians({each: partial(process_cpu, each) for each in code}, rounds=ROUNDS)
    ours, theirs = (1000 * seconds for seconds in taken.values())
    return Row("import dialoom.llm", "ms", ours, MINIMAL, theirs, must=1.5)


async def _rows(root: str, rivals: Sequence[str]) -> list[Row]:
    found: list[Row] = []
    for pace, must in MUST.items():
        for wire, path in _WIRES.items():
            base_url = f"{root}/{pace}/v1"
            async with AsyncExitStack() as stack:
                provider = _provider(wire, base_url)
                stack.push_async_callback(provider.aclose)
                contenders: dict[str, _Ask] = {"ours": _ours(provider)}
                for name, bare in BARE.items():
                    opened = await stack.enter_async_context(bare(f"{base_url}/{path}"))
                    contenders[name] = _bare(opened)
                for way in _ways(wire) if rivals else ():
                    rival = stack.enter_context(child(*rivals, "-P", RIVAL_SCRIPT, way, base_url))
                    assert rival.line() == "ready"
                    contenders[f"SDK, {way}"] = _asked(rival)
                costs = await _in_turn(contenders)
            ours = costs.pop("ours")
            name = f"{wire}, {pace}, per chunk"
            found += [Row(name, "us", ours, rival, cost, must=must[rival]) for rival, cost in costs.items()]
    return found


def _ways(wire: str) -> list[str]:
    return [f"{wire}.create", f"{wire}.stream"]


async def _in_turn(contenders: dict[str, _Ask]) -> dict[str, float]:
    """Return the median microseconds per chunk of each."""
    turns = Turns(contenders, ROUNDS)
    for name in turns:
        turns.note(name, await contenders[name]() / CHUNKS * 1e6)
    return turns.medians()


def _provider(wire: str, base_url: str) -> Provider:
    return AnthropicProvider(base_url, "k") if wire == "anthropic" else OpenAIProvider(base_url, "k")


def _ours(provider: Provider) -> _Ask:
    options = ChatOptions(model="m", max_tokens=2000)

    async def ask() -> float:
        began = time.process_time()
        async with provider.stream([user("hi")], options) as stream:
            said = [event.text async for event in stream if isinstance(event, TextDelta)]
        assert "".join(said) == stream.response.text
        return time.process_time() - began

    return ask


def _bare(opened: _Open) -> _Ask:
    """The least that reads the stream: lines cut at line feeds, each event decoded."""

    async def ask() -> float:
        began = time.process_time()
        events = 0
        async with opened() as pieces:
            rest = b""
            async for piece in pieces:
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.startswith(b"data: {"):
                        msgspec.json.decode(line[6:])
                        events += 1
        assert events > CHUNKS
        return time.process_time() - began

    return ask


@asynccontextmanager
async def _bare_direct(url: str) -> AsyncGenerator[_Open]:
    request = HttpRequest(method="POST", url=url, body=BODY, timeouts=HttpTimeouts(read=None))
    async with DirectTransport() as transport:

        @asynccontextmanager
        async def opened() -> AsyncGenerator[AsyncIterator[bytes]]:
            async with transport.request(request) as response:
                yield response.aiter_bytes()

        yield opened


@asynccontextmanager
async def _bare_httpx2(url: str) -> AsyncGenerator[_Open]:
    import httpx2

    async with httpx2.AsyncClient(trust_env=False) as client:

        @asynccontextmanager
        async def opened() -> AsyncGenerator[AsyncIterator[bytes]]:
            async with client.stream("POST", url, content=BODY) as response:
                yield response.aiter_raw()

        yield opened


BARE = {"bare DirectTransport + msgspec": _bare_direct, "bare httpx2 + msgspec": _bare_httpx2}


def _asked(rival: Child) -> _Ask:
    async def ask() -> float:
        return await asyncio.to_thread(rival.figure, "go")

    return ask
