"""Running the command as a person does: words in, both streams and the exit code out."""

import asyncio
import json
import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from dialoom.cli import main

SOON = 60


class Shown(NamedTuple):
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str


class Terminal:
    """Runs `dialoom` in this process."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def run(self, *words: str) -> Shown:
        self._capture.readouterr()
        return self._shown(main(words))

    async def run_beside(self, *words: str) -> Shown:
        """Run on a thread of its own, while a test's server answers on the loop."""
        self._capture.readouterr()
        return self._shown(await asyncio.to_thread(main, words))

    def _shown(self, code: int) -> Shown:
        out, err = self._capture.readouterr()
        return Shown(code, out, err)


def piped(
    *words: str, lines: list[dict[str, object]], within: float = SOON, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `dialoom rag` with `lines` on its stdin."""
    return subprocess.run(
        [sys.executable, "-m", "dialoom", "rag", *words],
        input="".join(json.dumps(line) + "\n" for line in lines),
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )
