"""A sign of life while somebody else is silent."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TextIO

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.text import one_line

PATIENCE = 2.0
_WIPE = "\r\x1b[K"


@asynccontextmanager
async def waiting_for(
    who: str, screen: TextIO | None = None, *, clock: Clock = SYSTEM_CLOCK
) -> AsyncGenerator[Callable[[], None]]:
    """Say on stderr who is waited for, from two seconds on until what this gives is called or the block ends.

    Quiet when stderr is no terminal: a log needs no sign of life.
    """
    stream: TextIO = sys.stderr if screen is None else screen
    line = _Line(stream, f"waiting for {one_line(who, 60)} ...")
    if not stream.isatty():
        yield line.wipe
        return

    async def show() -> None:
        await clock.sleep(PATIENCE)
        line.show()

    shown = asyncio.create_task(show())
    try:
        yield line.wipe
    finally:
        shown.cancel()
        with suppress(asyncio.CancelledError):
            await shown
        line.wipe()


class _Line:
    """A line that is shown at most once and wiped at most once, in this order or never."""

    def __init__(self, screen: TextIO, text: str) -> None:
        self._screen = screen
        self._text = text
        self._over = self._is_shown = False

    def show(self) -> None:
        if not self._over:
            self._is_shown = True
            print(self._text, end="", file=self._screen, flush=True)

    def wipe(self) -> None:
        if self._is_shown:
            print(_WIPE, end="", file=self._screen, flush=True)
        self._over, self._is_shown = True, False
