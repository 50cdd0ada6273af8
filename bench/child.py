"""A process beside the bench that is asked line by line, and ends with its input."""

import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager

RIVALS_PYTHON = "DIALOOM_RIVALS_PYTHON"


class Child:
    """One process, spoken to in lines."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def line(self) -> str:
        """Return the next line it says."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ask(self, line: str) -> str:
        """Return what it says to `line`."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self.line()

    def figure(self, line: str) -> float:
        """Return the number it says to `line`."""
        return float(self.ask(line))


@contextmanager
def child(*command: str) -> Generator[Child]:
    """Give a process that runs `command`, for as long as it is needed."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Child(process)
        assert process.stdin is not None
        process.stdin.close()


def rivals_python(missing: str) -> Sequence[str]:
    """Return the command of the rivals' Python; without one nothing, and stderr says what is `missing`.

    Run their scripts with `-P`: our benches next to them are named like packages they import.
    """
    command = os.environ.get(RIVALS_PYTHON, "").split()
    if not command:
        print(f"{RIVALS_PYTHON} is not set: {missing}", file=sys.stderr)
    return command
