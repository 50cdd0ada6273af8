"""A child process and its three pipes, read in linear time, with bounds on what waits to be read."""

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, cast

import msgspec

from dialoom.base.text import one_line
from dialoom.mcp.lines import LineBuffer
from dialoom.mcp.transport import Line, Oversize

KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)
STDERR_LINES: Final = 200
LONGEST_STDERR_LINE: Final = 2_000
MOST_UNREAD: Final = 8 * 1024 * 1024
"""Bytes of whole lines that may wait for the reader; then the pipe is left alone until it caught up."""
DRAIN_SECONDS: Final = 0.25
"""After a child ended: for what is still in its pipe, which a grandchild may hold open for ever."""


class ChildCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What to start: `argv` item by item and without a shell, the whole environment, the folder."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: str | None = None
    max_line_bytes: int

    def __repr__(self) -> str:
        return f"ChildCommand({self.argv[0]!r}, …)"  # arguments and environment may hold secrets


class Child(asyncio.SubprocessProtocol):
    """One running child. It leads a process group of its own, so that its children can be ended with it."""

    def __init__(self, max_line_bytes: int) -> None:
        self.stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._out = LineBuffer(max_line_bytes)
        self._err = LineBuffer(LONGEST_STDERR_LINE)
        self._lines: deque[Line] = deque()
        self._unread = 0
        self._paused = False
        self._discards = False
        self._at_end = False
        self._news = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._exited = asyncio.Event()
        self._silent = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None

    @property
    def pid(self) -> int:
        assert self._transport is not None
        return self._transport.get_pid()

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return None if self._transport is None else self._transport.get_returncode()

    async def read_line(self) -> Line | None:
        """Return the next line of its output, None when there will be no more. One task reads."""
        while not self._lines:
            if self._at_end:
                return None
            self._news.clear()
            await self._news.wait()
        line = self._lines.popleft()
        self._unread -= _length(line)
        if self._paused and self._unread < MOST_UNREAD // 2:
            self._paused = False
            self._pipe(1).resume_reading()
        return line

    async def write(self, text: bytes) -> None:
        """Write all of `text`, waiting while the child does not read. Raises `BrokenPipeError`."""
        if self._exited.is_set() or self._pipe(0).is_closing():
            raise BrokenPipeError("the program does not read its input any more")
        cast("asyncio.WriteTransport", self._pipe(0)).write(text)
        await self._writable.wait()

    def close_input(self) -> None:
        """Tell the child that nothing more will come, and stop keeping what it says."""
        self._discards = True
        self._lines.clear()
        self._pipe(0).close()
        if self._paused:
            self._paused = False
            self._pipe(1).resume_reading()

    async def wait_exit(self, seconds: float) -> bool:
        """Wait for its end; return whether it came."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        return self._exited.is_set()

    async def last_words(self) -> None:
        """Wait a moment for what is still in the pipe of its error output."""
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await self._silent.wait()

    def signal_group(self, number: int) -> bool:
        """Send a signal to the child and all its offspring; return whether anybody was there."""
        return signal_group(self.pid, number)

    def release(self) -> None:
        """Close what is left of the pipes; kills a child that still runs."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._keep_stderr(self._err.feed(data))
        elif not self._discards:
            self._keep_lines(self._out.feed(data))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - of asyncio's protocol
        match fd:
            case 0:
                self._writable.set()
            case 1:
                self._end_output()
            case _:
                self._keep_stderr(self._err.finish())
                self._silent.set()

    def process_exited(self) -> None:
        self._exited.set()
        self._writable.set()
        asyncio.get_running_loop().call_later(DRAIN_SECONDS, self._end_output)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _keep_lines(self, lines: Sequence[Line]) -> None:
        if not lines:
            return
        self._lines.extend(lines)
        self._unread += sum(map(_length, lines))
        if self._unread > MOST_UNREAD and not self._paused:
            self._paused = True
            self._pipe(1).pause_reading()
        self._news.set()

    def _keep_stderr(self, lines: Sequence[Line]) -> None:
        for line in lines:
            raw = line.head if isinstance(line, Oversize) else line
            self.stderr.append(one_line(raw.decode("utf-8", "replace"), LONGEST_STDERR_LINE))

    def _end_output(self) -> None:
        if not self._at_end and not self._discards:
            self._keep_lines(self._out.finish())
        self._at_end = True
        self._news.set()

    def _pipe(self, fd: int) -> asyncio.ReadTransport:
        assert self._transport is not None
        return cast("asyncio.ReadTransport", self._transport.get_pipe_transport(fd))


async def start_child(command: ChildCommand) -> Child:
    """Start it and return it. Raises `OSError` when the program is not there or must not be run."""
    loop = asyncio.get_running_loop()
    _, child = await loop.subprocess_exec(
        lambda: Child(command.max_line_bytes),
        *command.argv,
        env=dict(command.environment),
        cwd=command.cwd,
        start_new_session=True,
    )
    return child


def signal_group(pid: int, number: int) -> bool:
    """Send a signal to the process group led by `pid`; return whether anybody was there."""
    if sys.platform == "win32":
        return False
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _length(line: Line) -> int:
    return len(line.head) if isinstance(line, Oversize) else len(line)
