"""A server as a child process: one JSON-RPC message per line on its standard streams."""

import asyncio
import os
import shutil
import signal
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dialoom.base.errors import UsageError
from dialoom.mcp.child import KILL, Child, ChildCommand, signal_group, start_child
from dialoom.mcp.config_fields import InheritEnv
from dialoom.mcp.transport import MAX_MESSAGE_BYTES, Line

GRACE_SECONDS: Final = 1.5
_SAFE: Final = (
    *("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"),
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
    *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
)
"""What every program needs to find its way, here or on Windows."""
_OURS: Final = "DIALOOM_"
_KILL_WAIT: Final = 1.0
_HURRIED_WAIT: Final = 0.3
_OFFSPRING_WAIT: Final = 0.3
_LOOK_AGAIN: Final = 0.02


class StdioTransport:
    """`LineTransport` to a child process that this starts and ends.

    Closing closes its input, waits `grace` seconds, tells its whole process group to terminate, waits as
    long again, and kills the group. After a clean exit what is left of the group is ended too, at once: a
    server's own children do not outlive it, nor this process when it ends without closing.
    """

    def __init__(
        self,
        command: str,
        arguments: Sequence[str] = (),
        *,
        environment: Mapping[str, str] | None = None,
        cwd: str | None = None,
        grace: float = GRACE_SECONDS,
        max_line_bytes: int = MAX_MESSAGE_BYTES,
    ) -> None:
        """`environment` is all that the child gets; None gives it what this process has."""
        given = dict(os.environ if environment is None else environment)
        self._command = ChildCommand(
            argv=resolve_argv(command, arguments, environment=given),
            environment=given,
            cwd=cwd,
            max_line_bytes=max_line_bytes,
        )
        self._grace = grace
        self._child: Child | None = None
        self._last_resort: weakref.finalize[[int, int], StdioTransport] | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id and its group's, None before it was started."""
        return None if self._child is None else self._child.pid

    @property
    def exit_code(self) -> int | None:
        return None if self._child is None else self._child.exit_code

    @property
    def stderr_tail(self) -> tuple[str, ...]:
        """The last lines of its error output; they may hold secrets."""
        return () if self._child is None else tuple(self._child.stderr)

    async def open(self) -> None:
        """Start the child. Raises `OSError` when the program is not there or must not be run."""
        self._child = await start_child(self._command)
        # a program that ends without closing us leaves no process behind
        self._last_resort = weakref.finalize(self, signal_group, self._child.pid, KILL)

    async def send(self, line: bytes) -> None:
        await self._running().write(line + b"\n")

    async def receive(self) -> Line | None:
        return await self._running().read_line()

    async def aclose(self, *, hurry: bool = False) -> None:
        if self._child is None or self._last_resort is None:
            return
        child, last_resort = self._child, self._last_resort
        self._last_resort = None
        try:
            child.close_input()
            patience = _HURRIED_WAIT if hurry else self._grace
            if hurry or not await child.wait_exit(self._grace):
                child.signal_group(signal.SIGTERM)
                await child.wait_exit(patience)
            if child.exit_code is not None:
                await _end_offspring(child)
            last_resort()
            await child.last_words()
        finally:
            last_resort()
            child.release()
        await child.wait_exit(_KILL_WAIT)

    def _running(self) -> Child:
        if self._child is None:
            raise UsageError("this stdio transport was not opened; call open() first")
        return self._child


async def _end_offspring(child: Child) -> None:
    """Ask what the child left behind to end, and wait for it: nothing tells us when it did."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + _OFFSPRING_WAIT
    there = child.signal_group(signal.SIGTERM)
    while there and loop.time() < ends_at:
        await asyncio.sleep(_LOOK_AGAIN)
        there = child.signal_group(0)


def child_environment(
    own: Mapping[str, str], added: Mapping[str, str], *, inherit: InheritEnv = "all"
) -> dict[str, str]:
    """Return the environment of a child: what it inherits of `own`, and `added` over that.

    `all` inherits everything but dialoom's own settings, which hold keys of models; `safe` only what every
    program needs; a tuple these names as well.
    """
    match inherit:
        case "all":
            kept = {key: value for key, value in own.items() if not key.startswith(_OURS)}
        case "safe":
            kept = {key: own[key] for key in _SAFE if key in own}
        case names:
            kept = {key: own[key] for key in (*_SAFE, *names) if key in own}
    return {**kept, **added}


def resolve_argv(
    command: str,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    windows: bool = sys.platform == "win32",
    which: Callable[..., str | None] = shutil.which,
) -> tuple[str, ...]:
    """Return what to start, item by item. No shell reads it, so blanks and quotes need no care.

    Windows finds programs by their extension and hands `.cmd` and `.bat` files to a shell after all, so
    there an argument that such a shell would read as more than text is refused with `UsageError`.
    """
    if not windows:
        return (command, *arguments)
    found = which(command, path=environment.get("PATH")) or command
    if found.lower().endswith((".cmd", ".bat")):
        for position, argument in enumerate(arguments, 1):
            if set(argument) & set('"%&|<>^!\r\n'):
                raise UsageError(
                    f"argument {position} of {command!r} holds a character that its .cmd file would"
                    " obey; start the program behind that file instead"
                )
    return (found, *arguments)
