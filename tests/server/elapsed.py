"""How long something took, without the time in which other programs had all the cores of the machine."""

import os
import select
import subprocess
import time
from pathlib import Path


class Elapsed:
    """Counts from its making on; of this thread, or of the main thread of the process `pid`."""

    def __init__(self, pid: int | None = None) -> None:
        self._place = Path("/proc/thread-self" if pid is None else f"/proc/{pid}") / "schedstat"
        self._delayed = self._delay()
        self._began = time.perf_counter()

    def seconds(self) -> float:
        """Return the seconds so far; those in which it was ready to run and had no core do not count."""
        return time.perf_counter() - self._began - (self._delay() - self._delayed)

    def _delay(self) -> float:
        try:
            return int(self._place.read_text().split()[1]) / 1e9
        except OSError:  # not on every platform; then all of the time counts
            return 0.0


def wait_for_end(child: subprocess.Popen[str], seconds: float) -> None:
    """Wait until a child has ended, and leave it to be asked what it was. Raises `TimeoutError`."""
    watched = os.pidfd_open(child.pid)
    try:
        if not select.select([watched], [], [], seconds)[0]:
            raise TimeoutError(f"process {child.pid} goes on after {seconds:g} s")
    finally:
        os.close(watched)
