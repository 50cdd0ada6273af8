"""Running an isolated node: its process is begun, told what to run, heard to the end, and killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Any, Final

from dialoom.base.cancel import CancelScope
from dialoom.graph.codec_frames import Frames
from dialoom.graph.context import NodeContext
from dialoom.graph.errors import IsolatedNodeError
from dialoom.graph.frontier import Send
from dialoom.graph.result import NodeResult
from dialoom.graph.table import NodeOutput

CHILD: Final = "dialoom.graph.isolated_child"
_TOLD: Final = ("node", "step", "input", "item", "attempt", "run_id", "thread_id")


def run_isolated(ctx: NodeContext, target: str, types: Mapping[str, type]) -> NodeOutput:
    """Return what the function `target` makes of `ctx` in a process of its own; `types` are classes by name.

    Raises IsolatedNodeError for what it raised and Cancelled when it was stopped.
    """
    nest = ctx.nest()
    with _child(nest.scope, nest.remaining) as child:
        frames = Frames(child.stdout, child.stdin, types.values())  # pyright: ignore[reportArgumentType] - PIPE gives both
        with suppress(BrokenPipeError):  # then what it says, or how it ended, tells more
            frames.write(target, list(types))
            frames.write(dict(ctx.state), *(getattr(ctx, name) for name in _TOLD))
        output = _heard(ctx, frames)
        if output is not None:
            return _output(*output)
        nest.scope.raise_if_cancelled()
        raise IsolatedNodeError(f"its process ended with exit code {child.wait()} before it was through")


@contextmanager
def _child(scope: CancelScope, remaining: float | None) -> Generator["subprocess.Popen[bytes]"]:
    """Begin a process that is killed when `scope` is cancelled, after `remaining` seconds, or on leaving."""
    path = os.pathsep.join(sys.path)
    child = subprocess.Popen(  # noqa: S603 - this interpreter and a module of ours
        [sys.executable, "-m", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )
    forget = scope.add_callback(lambda: _kill(child))
    timer = None if remaining is None else Timer(remaining, scope.cancel, ("timeout",))
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield child
    finally:
        forget()
        if timer is not None:
            timer.cancel()
        _kill(child)
        child.wait()
        for stream in filter(None, (child.stdin, child.stdout)):
            with suppress(BrokenPipeError):
                stream.close()


def _kill(child: "subprocess.Popen[bytes]") -> None:
    """End `child` and whatever it began."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()


def _heard(ctx: NodeContext, frames: Frames) -> tuple[str, Any] | None:
    """Pass on what the child says and return its output; None when it ended without one.

    Raises IsolatedNodeError for what the node raised.
    """
    while (said := frames.read()) is not None:
        match said:
            case ("emit", value):
                ctx.emit(value)
            case ("heartbeat",):
                ctx.heartbeat()
            case ("error", message, traceback):
                error = IsolatedNodeError(message)
                error.add_note(traceback)
                raise error
            case (kind, value):
                return kind, value
            case _:
                raise IsolatedNodeError("its process said what no node says")
    return None


def _output(kind: str, value: Any) -> NodeOutput:
    if kind != "result":
        return value
    sends = tuple(Send(*each) for each in value["sends"])
    return NodeResult(
        writes=value["writes"], goto=value["goto"], halt=value["halt"], error=value["error"], sends=sends
    )
