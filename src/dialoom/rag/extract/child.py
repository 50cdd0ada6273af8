"""One reader process as its parent sees it: started, asked, and ended with all it may have started itself."""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from dialoom.rag.extract.job import LENGTH_BYTES, frame_head

_PIECE = 1 << 20
_FAREWELL = 2.0
# What finding libraries and reading text depends on. Nothing else: keys live in the environment too.
_INHERITED = (
    *("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "PYTHONHOME"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
)


class ChildEndedError(Exception):
    """The process is gone; `signal` is what ended it, 0 when it went by itself."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number

    @property
    def name(self) -> str:
        return signal.Signals(self.signal).name if self.signal else "no signal"


class ReplyTooLongError(Exception):
    """The process wants to send more than it may."""


class ReaderProcess:
    """A child in a process group of its own, with pipes that neither side can block the other on."""

    def __init__(self, memory_mb: int) -> None:
        self.memory_mb = memory_mb
        self.jobs = 0
        self._process = subprocess.Popen(  # noqa: S603 - our own module, and no shell
            [sys.executable, "-P", "-B", "-m", "dialoom.rag.extract.worker", str(memory_mb)],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            process_group=0,
        )
        self._input, self._output = _pipe(self._process.stdin), _pipe(self._process.stdout)
        self._received = bytearray()

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, parts: Sequence[bytes], *, seconds: float, most: int) -> memoryview:
        """Send frames and return the next reply, of at most `most` bytes.

        Raises `TimeoutError`, `ChildEndedError` or `ReplyTooLongError`; the process is of no use after that.
        """
        deadline = time.monotonic() + seconds
        unsent = deque(memoryview(piece) for part in parts for piece in (frame_head(len(part)), part))
        self._received = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            if unsent:
                selector.register(self._input, selectors.EVENT_WRITE)
            while True:
                ready = selector.select(max(deadline - time.monotonic(), 0.0))
                if not ready:
                    raise TimeoutError
                for key, _ in ready:
                    if key.fileobj is self._output:
                        if (reply := self._receive(most)) is not None:
                            return reply
                    elif not self._send(unsent):
                        selector.unregister(self._input)

    def end(self) -> int:
        """End the process and all of its group; the signal it ended by, 0 for none. May be called twice."""
        self.kill()
        code = self._process.wait()
        self._close()
        return max(-code, 0)

    def kill(self) -> None:
        """Stop the process and its group; whoever is waiting for its reply learns that it has ended."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):  # it has just gone by itself
                os.killpg(self.pid, signal.SIGKILL)

    def retire(self) -> None:
        """Let an idle process end by itself; one that does not is ended."""
        self._input.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_FAREWELL)
        self.end()

    def forget(self) -> None:
        """Let go of a process that belongs to the parent of this one."""
        self._process.returncode = 0
        self._close()

    def _close(self) -> None:
        self._input.close()
        self._output.close()

    def _send(self, unsent: deque[memoryview]) -> bool:
        """Write what the pipe takes; whether there is more to send."""
        try:
            sent = os.write(self._input.fileno(), unsent[0][:_PIECE])
        except BrokenPipeError:  # it has ended; the reading side will say how
            return False
        unsent[0] = unsent[0][sent:]
        while unsent and not unsent[0]:
            unsent.popleft()
        return bool(unsent)

    def _receive(self, most: int) -> memoryview | None:
        piece = os.read(self._output.fileno(), _PIECE)
        if not piece:
            raise ChildEndedError(self.end())
        self._received += piece
        size = int.from_bytes(self._received[:LENGTH_BYTES], "big")
        if len(self._received) < LENGTH_BYTES:
            return None
        if size > most:
            raise ReplyTooLongError
        whole = len(self._received) >= LENGTH_BYTES + size
        return memoryview(self._received)[LENGTH_BYTES : LENGTH_BYTES + size] if whole else None


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    os.set_blocking(stream.fileno(), False)
    return stream


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return kept | {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        # a thread for each core would take address space that belongs to the documents
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
    }
