"""Files that only their owner can read: what people say is theirs. An older file's mode is left alone."""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

PRIVATE: Final = 0o600


def make_private(path: Path) -> None:
    """Let only its owner read a file in which nothing stands yet."""
    with suppress(OSError):  # a file system without modes
        path.chmod(PRIVATE)


def open_private(path: str, flags: int) -> int:
    """Open a file as `open(opener=...)` wants it; a new one is private."""
    return os.open(path, flags, PRIVATE)


def take_mode(new: Path, old: Path) -> None:
    """Give `new` the mode of the file in whose place it is to come; it stays as it is when there is none."""
    with suppress(OSError):
        new.chmod(stat.S_IMODE(old.stat().st_mode))
