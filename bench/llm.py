"""What a streamed chunk costs, against a bare loop over the same client and against the official SDKs.

The SDKs are read in the Python that `DIALOOM_RIVALS_PYTHON` names, for they are no dependency of ours;
without it their rows are left out, and standard error says so.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import msgspec

from bench.child import Child, child, rivals_python
from bench.measure import Turns, medians, process_cpu
from bench.report import Row
from bench.stream_server import CHUNKS
from dialoom.llm import AnthropicProvider, ChatOptions, OpenAIProvider, Provider, TextDelta, user

PACKAGES: tuple[str, ...] = ("httpx2", "msgspec")
ROUNDS = 7
MINIMAL = "httpx2, msgspec, jsonschema_rs, jiter"
RIVAL_SCRIPT = str(Path(__file__).with_name("rival_stream.py"))
MUST = {"openai.create": 0.2, "openai.stream": 0.2, "anthropic.create": 0.9, "anthropic.stream": 0.5}
"""Of the CPU of an SDK's `create`, which gives bare events, and of its `stream`, which like ours also puts
the answer together: five and two times cheaper than that is the aim, and never as dear as bare events. That
is for bursts; when each event comes alone, waking up costs both the same.
"""
_WIRES = {"openai": "chat/completions", "anthropic": "messages"}

_Ask = Callable[[], Awaitable[float]]


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
    for pace in ("burst", "paced"):
        for wire, path in _WIRES.items():
            base_url = f"{root}/{pace}/v1"
            async with AsyncExitStack() as stack:
                provider = _provider(wire, base_url)
                stack.push_async_callback(provider.aclose)
                bare, close = _bare(f"{base_url}/{path}")
                stack.push_async_callback(close)
                contenders: dict[str, _Ask] = {"ours": _ours(provider), "bare": bare}
                for way in _ways(wire) if rivals else ():
                    rival = stack.enter_context(child(*rivals, "-P", RIVAL_SCRIPT, way, base_url))
                    assert rival.line() == "ready"
                    contenders[way] = _asked(rival)
                costs = await _in_turn(contenders)
            name = f"{wire}, {pace}, per chunk"
            found.append(Row(name, "us", costs["ours"], "bare httpx2 + msgspec", costs["bare"], must=2.0))
            for way in _ways(wire) if rivals else ():
                must = MUST[way] if pace == "burst" else 1.0
                found.append(Row(name, "us", costs["ours"], f"SDK, {way}", costs[way], must=must))
    return found


def _ways(wire: str) -> list[str]:
    return [way for way in MUST if way.startswith(wire)]


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


def _bare(url: str) -> tuple[_Ask, Callable[[], Awaitable[None]]]:
    """The least that reads the stream: the same client, lines cut at line feeds, each event decoded."""
    import httpx2

    client = httpx2.AsyncClient(trust_env=False)
    body = {"model": "m", "max_tokens": 2000, "stream": True, "messages": [{"role": "user", "content": "hi"}]}

    async def ask() -> float:
        began = time.process_time()
        events = 0
        async with client.stream("POST", url, json=body) as response:
            rest = b""
            async for piece in response.aiter_raw():
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.startswith(b"data: {"):
                        msgspec.json.decode(line[6:])
                        events += 1
        assert events > CHUNKS
        return time.process_time() - began

    return ask, client.aclose


def _asked(rival: Child) -> _Ask:
    async def ask() -> float:
        return await asyncio.to_thread(rival.figure, "go")

    return ask
