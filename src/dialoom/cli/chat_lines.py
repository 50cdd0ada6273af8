"""The lines a person types in the terminal: read one by one, and remembered for the arrow keys."""

import sys
from contextlib import suppress
from getpass import getpass
from pathlib import Path
from typing import Final

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line

PROMPT: Final = "> "
MAX_LINES_REMEMBERED: Final = 1000


class RememberedLines:
    """The lines a person typed, to be had again with the arrow keys, in this chat and in the next."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        if not sys.stdin.isatty():
            return
        with suppress(ImportError, OSError):
            import readline

            readline.set_history_length(MAX_LINES_REMEMBERED)
            readline.read_history_file(self._path)

    def __exit__(self, *_: object) -> None:
        if not sys.stdin.isatty() or not self._path.parent.is_dir():
            return
        with suppress(ImportError, OSError):
            import readline

            readline.write_history_file(self._path)
            self._path.chmod(0o600)


def read_line(question: str = "", *, is_secret: bool = False) -> str | None:
    """Return the next line, None when there will be none; a `question` is asked in any case.

    A secret is not shown while it is typed, and not remembered.
    """
    try:
        if sys.stdin.isatty():
            if is_secret:
                return getpass(question)
            return input(question or PROMPT)
        if question:
            print(question, end="", flush=True)
        return input()
    except EOFError:
        return None


def path_of(typed: str) -> Path:
    """Return the path a person means, `~` being their home as in a shell. Raises `UsageError` for no home."""
    try:
        return Path(typed).expanduser()
    except RuntimeError as error:  # of somebody who is not known here
        raise UsageError(
            f"there is no home {one_line(typed, 80)!r} begins with; write the path out"
        ) from error
