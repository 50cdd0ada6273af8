"""A lock beside a file that all threads and processes of a machine see: one holder at a time."""

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dialoom.base.errors import ConflictError

if sys.platform == "win32":  # pragma: no cover - the suite runs on POSIX
    import msvcrt
else:
    import fcntl

WAIT_SECONDS: Final = 20.0
_PAUSE: Final = 0.002


class FileLock:
    """Holds `<file>.lock`, which is made when needed and never removed: a removed lock protects nobody.

    The system lets go of it when the process dies. One object is for one thread at a time; the caller sees
    to that.
    """

    def __init__(self, path: Path, *, wait: float = WAIT_SECONDS) -> None:
        self.path = path.with_name(f"{path.name}.lock")
        self._wait = wait
        # kept open: to open it for each use would cost more than the lock
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def close(self) -> None:
        os.close(self._descriptor)

    @contextmanager
    def held(self) -> Generator[None]:
        """Hold the lock while the block runs. Raises ConflictError when another holds it for too long."""
        deadline = time.monotonic() + self._wait
        while not _take(self._descriptor):
            if time.monotonic() > deadline:
                raise ConflictError(f"{self.path} is held by another process; try again")
            time.sleep(_PAUSE)
        try:
            yield
        finally:
            _release(self._descriptor)


if sys.platform == "win32":  # pragma: no cover - the suite runs on POSIX

    def _take(descriptor: int) -> bool:
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _release(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:

    def _take(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _release(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
