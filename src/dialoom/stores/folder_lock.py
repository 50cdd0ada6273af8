"""A lock on a folder that all threads and processes of a machine see: one holder at a time."""

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dialoom.base.errors import ConflictError

if sys.platform == "win32":  # pragma: no cover - the suite runs on POSIX
    import msvcrt
else:
    import fcntl

NAME = ".dialoom.lock"
WAIT_SECONDS = 30.0
_PAUSE = 0.005


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Hold the folder while the block runs; the system lets go of it when the process dies.

    Raises `ConflictError` after 30 seconds of waiting and `OSError` when the folder cannot be written.
    """
    with (folder / NAME).open("ab") as file:
        deadline = time.monotonic() + WAIT_SECONDS
        while not _take(file):
            if time.monotonic() > deadline:
                raise ConflictError(f"{folder} is being written by another process; try again")
            time.sleep(_PAUSE)
        yield


if sys.platform == "win32":  # pragma: no cover - the suite runs on POSIX

    def _take(file: BinaryIO) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:

    def _take(file: BinaryIO) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
