"""A provider reads its server over sockets of our own; the heavy client waits until something needs it."""

import asyncio
import subprocess
import sys

import pytest

from dialoom.testing.wire import WireReply, WireServer

ASK = """
import asyncio, sys
from dialoom.llm import {provider}, chat, user

async def ask():
    async with {provider}({url!r}) as llm:
        return (await chat(llm, [user("Hello")])).text

print(asyncio.run(ask()), [name for name in ("httpx2", "httpcore2", "anyio") if name in sys.modules])
"""
SAID = {
    "OpenAIProvider": b'{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}]}',
    "AnthropicProvider": b'{"type":"message","content":[{"type":"text","text":"Hi."}]}',
    "OllamaProvider": b'{"message":{"content":"Hi."},"done":true,"done_reason":"stop"}\n',
}


@pytest.mark.parametrize("provider", SAID)
async def test_no_client_library_is_loaded_for_a_local_model(provider: str) -> None:
    async with WireServer([WireReply(body=(SAID[provider],))]) as server:
        code = ASK.format(provider=provider, url=server.url)
        asked = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=subprocess.PIPE)
        said, _ = await asyncio.wait_for(asked.communicate(), 60)
    assert said.decode() == "Hi. []\n"
