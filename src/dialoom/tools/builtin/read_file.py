"""Text files below one folder, as a tool; nothing outside of it can be reached."""

import os
import stat
from pathlib import Path, PurePosixPath
from typing import Annotated, Final

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.tools.function import FunctionTool, tool

MAX_BYTES: Final = 1_000_000


def read_file_tool(root: str | Path, *, max_bytes: int = MAX_BYTES) -> FunctionTool[[str], str]:
    """Return a tool `read_file` for the UTF-8 text files below `root`, each of at most `max_bytes`.

    Links are not followed, not even inside of `root`; devices, pipes and binary files are refused. Raises
    `UsageError` when `root` is no folder, or on a system that cannot open a file relative to a folder.
    """
    folder = Path(root)
    if os.open not in os.supports_dir_fd or not folder.is_dir():
        raise UsageError(
            f"{one_line(str(root), 80)!r} cannot be read from: it is no folder, or this system has no way "
            "to open a file below a folder"
        )
    top = folder.resolve(strict=True)

    @tool(idempotent=True)
    def read_file(path: Annotated[str, "from the top folder, such as notes/today.txt"]) -> str:
        """Read a text file."""
        return _text_of(_read(top, _parts(path), max_bytes=max_bytes), path)

    return read_file


def _parts(path: str) -> tuple[str, ...]:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path or "\\" in path:
        raise UsageError(
            f"{one_line(path, 80)!r} is no path of a file here; give one from the top folder, without '..'"
        )
    return parts


def _read(root: Path, parts: tuple[str, ...], *, max_bytes: int) -> bytes:
    """Return the content of the file at `parts` below `root`."""
    name = one_line("/".join(parts), 80)
    try:
        opened = _open_below(root, parts)
        try:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise UsageError(f"{name!r} is not a file; name one inside of it")
            with open(opened, "rb", closefd=False) as file:
                content = file.read(max_bytes + 1)
        finally:
            os.close(opened)
    except (OSError, ValueError) as error:
        raise UsageError(f"there is no file {name!r} here that can be read") from error
    if len(content) > max_bytes:
        raise UsageError(f"{name!r} is larger than {max_bytes} bytes and was not read")
    return content


def _open_below(root: Path, parts: tuple[str, ...]) -> int:
    """Return a descriptor. Each step is opened from the one before, so that no link can be slipped in."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    current = os.open(root, flags | os.O_DIRECTORY)
    for place, part in enumerate(parts, 1):
        folder = current
        try:
            current = os.open(part, flags if place == len(parts) else flags | os.O_DIRECTORY, dir_fd=folder)
        finally:
            os.close(folder)
    return current


def _text_of(content: bytes, path: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{one_line(path, 80)!r} is not UTF-8 text") from error
    if "\0" in text:
        raise UsageError(f"{one_line(path, 80)!r} is not text")
    return text
