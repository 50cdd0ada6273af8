"""The `dialoom` command. It wires stores, models and graphs together; no other package chooses for you."""

import os
import sys
from collections.abc import Sequence

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the `dialoom` command with `arguments` (default: those of the process); return its exit code."""
    try:
        _open_closed_streams()
        from dialoom.cli.app import run  # half a second of imports, in which Ctrl-C must be heard too

        return run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        print("dialoom: interrupted before anything was done", file=sys.stderr)
        return INTERRUPTED


def _open_closed_streams() -> None:
    """Take the number of a standard stream that was closed (`2>&-`), so that no other file gets it.

    What is printed on a closed stdout fails: an answer that nobody can read is not a success.
    """
    for number, access in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, access)  # takes the lowest free number, which is this one
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for good
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
