"""Ctrl-C as a request: the first asks the work to stop at a safe place, the second ends the program."""

import signal
from collections.abc import Generator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

from dialoom.base.cancel import CancelScope


@contextmanager
def stop_on_interrupt(scope: CancelScope) -> Generator[None]:
    """Let Ctrl-C cancel `scope` while inside. Only the main thread hears it; elsewhere nothing changes."""
    if current_thread() is not main_thread():
        yield
        return

    def ask(_number: int, _frame: FrameType | None) -> None:
        if scope.cancelled:
            raise KeyboardInterrupt
        scope.cancel()

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
