"""Reads the bench's stream with an official SDK, in the Python that has it: `rival_stream.py HOW BASE_URL`.

HOW is an SDK and one of its two ways: `create` gives bare events, `stream` also puts the answer together.
Prints `ready`, and after each line on its standard input the CPU seconds of one whole answer. It stands
alone: the rival's Python has nothing of dialoom.
"""

import asyncio
import importlib
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

ASKED = [{"role": "user", "content": "hi"}]


def openai_create(base_url: str) -> Callable[[], Awaitable[str]]:
    chat = _openai(base_url)

    async def ask() -> str:
        stream = await chat.create(model="m", messages=ASKED, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

    return ask


def openai_stream(base_url: str) -> Callable[[], Awaitable[str]]:
    chat = _openai(base_url)

    async def ask() -> str:
        async with chat.stream(model="m", messages=ASKED) as stream:
            return "".join([event.delta async for event in stream if event.type == "content.delta"])

    return ask


def anthropic_create(base_url: str) -> Callable[[], Awaitable[str]]:
    messages = _anthropic(base_url)

    async def ask() -> str:
        stream = await messages.create(model="m", max_tokens=2000, messages=ASKED, stream=True)
        deltas = [event.delta async for event in stream if event.type == "content_block_delta"]
        return "".join(delta.text for delta in deltas)

    return ask


def anthropic_stream(base_url: str) -> Callable[[], Awaitable[str]]:
    messages = _anthropic(base_url)

    async def ask() -> str:
        async with messages.stream(model="m", max_tokens=2000, messages=ASKED) as stream:
            return "".join([event.text async for event in stream if event.type == "text"])

    return ask


def _openai(base_url: str) -> Any:
    client = importlib.import_module("openai").AsyncOpenAI(base_url=base_url, api_key="k", max_retries=0)
    return client.chat.completions


def _anthropic(base_url: str) -> Any:
    root = base_url.removesuffix("/v1")
    client = importlib.import_module("anthropic").AsyncAnthropic(base_url=root, api_key="k", max_retries=0)
    return client.messages


WAYS = {
    "openai.create": openai_create,
    "openai.stream": openai_stream,
    "anthropic.create": anthropic_create,
    "anthropic.stream": anthropic_stream,
}


async def main(way: str, base_url: str) -> None:
    ask = WAYS[way](base_url)
    assert await ask()  # the first answer opens the connection and fills the caches
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.process_time()
        assert await ask()
        print(time.process_time() - began, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
