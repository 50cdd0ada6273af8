"""The PyPI package llmock as a peer: a server that breaks its answers and judges how its client takes it."""

import importlib.util
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec

from dialoom.net import HttpRequest, HttpTransport

READY_SECONDS = 60.0
_MAX_BYTES = 16 * 1024 * 1024


def command() -> list[str] | None:
    """Return what starts llmock, None when it is not installed."""
    if importlib.util.find_spec("llmock") is not None:
        return [sys.executable, "-c", "from llmock.cli import app; app()"]
    found = shutil.which("llmock")
    return [found] if found else None


@contextmanager
def running(start: list[str], *options: str) -> Generator[str]:
    """Give the address of a fresh server, which ends with the context."""
    server = subprocess.Popen(
        [*start, "serve", "--host", "127.0.0.1", "-p", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    late = threading.Timer(READY_SECONDS, server.kill)
    late.start()
    try:
        root = _address(server)
        late.cancel()
        yield root
    finally:
        late.cancel()
        server.kill()
        server.communicate()


def _address(server: "subprocess.Popen[str]") -> str:
    assert server.stdout is not None
    said = []
    for line in server.stdout:
        if found := re.search(r"running on (http://\S+)", line):
            threading.Thread(target=server.stdout.read, daemon=True).start()  # a full pipe would stop it
            return found[1]
        said.append(line)
    raise RuntimeError(f"llmock did not start: {''.join(said)[-2000:]}")


class Judge:
    """Scripts the faults of a running llmock, and asks it what it thinks of its client."""

    def __init__(self, root: str, transport: HttpTransport) -> None:
        self.root = root
        self._transport = transport

    async def begin(self, *faults: dict[str, Any]) -> None:
        """Forget all that was, and break the next answers in these ways."""
        await self._send("POST", "/_llmock/reset")
        if faults:
            await self._send("POST", "/_llmock/scenario", {"behaviors": faults})

    async def verdict(self) -> dict[str, Any]:
        """Return what it found, its own `assert_resilient(strict=True)` in JSON."""
        return await self._send("GET", "/_llmock/verdict")

    async def _send(self, method: str, path: str, fields: dict[str, Any] | None = None) -> dict[str, Any]:
        body = msgspec.json.encode(fields) if fields else b""
        request = HttpRequest(method=method, url=self.root + path, body=body)
        async with self._transport.request(request) as response:
            text = await response.aread(_MAX_BYTES)
        assert response.status < 300, text
        return msgspec.json.decode(text)
