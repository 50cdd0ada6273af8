"""Files that last: replaced in one step, there after a power cut, private from their first byte."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from dialoom.base.ids import new_id

PRIVATE: Final = 0o600
"""Only the owner reads and writes: what people say is theirs, and settings may hold keys."""
_NAME: Final = 64
"""So much of a file's name is in that of the one that is to take its place: names have at most 255 bytes."""


def replace_file(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Put `content` in a file's place: whoever reads it, even after a power cut, finds the old or the new.

    A new file is private and an older one keeps its mode, unless one is given; a link goes on leading to its
    file. Raises `OSError`, also where a device or a pipe is, and leaves what was there. A process that dies
    meanwhile leaves a `.{name}.{id}.tmp` behind.
    """
    path = path.resolve() if path.is_symlink() else path
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise FileExistsError(errno.EEXIST, "it is no regular file", str(path))
    temporary = path.with_name(f".{path.stem[:_NAME]}.{new_id()}.tmp")
    try:
        with open(temporary, "xb", opener=_open_private) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is None:
            take_mode(temporary, path)
        else:
            temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make new names in a folder durable."""
    if os.name == "nt":  # pragma: no cover - a folder cannot be opened there, and needs no sync
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private(path: Path) -> None:
    """Let only its owner read a file in which nothing stands yet."""
    with suppress(OSError):  # a file system without modes
        path.chmod(PRIVATE)


def take_mode(new: Path, old: Path) -> None:
    """Give `new` the mode of the file in whose place it is to come; it stays as it is when there is none."""
    with suppress(OSError):
        new.chmod(stat.S_IMODE(old.stat().st_mode))


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE)
