"""Running the command as a person does: words in, both streams and the exit code out."""

import asyncio
from typing import NamedTuple

import pytest

from dialoom.cli import main


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
