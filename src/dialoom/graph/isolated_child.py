"""The process of an isolated node: `isolate` starts it, tells it what to run, and hears what comes of it."""

import asyncio
import inspect
import os
import sys
import traceback
from functools import reduce
from importlib import import_module
from typing import Any, NoReturn

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.graph.codec_frames import Frames
from dialoom.graph.context import NodeContext
from dialoom.graph.isolate import ISOLATED
from dialoom.graph.publish import Emit
from dialoom.graph.result import NodeResult
from dialoom.graph.state import State


class ChildRun:
    """The run behind the context of an isolated node, as far as its process has one."""

    deps = None

    def __init__(self, frames: Frames, run_id: str, thread_id: str) -> None:
        self.run_id = run_id
        self.thread_id = thread_id
        self._frames = frames

    def stop_requested(self) -> bool:
        """Return False: what is stopped here is killed."""
        return False

    def raise_if_stopped(self) -> None:
        """Do nothing: what is stopped here is killed."""

    def emit(self, value: object) -> None:
        self._frames.write("emit", value)

    async def aemit(self, emit: Emit, value: object) -> None:
        emit(value)

    def heartbeat(self) -> None:
        self._frames.write("heartbeat")

    def orphaned(self) -> None:
        """Do nothing: nothing here has a timeout."""

    def memo(self, context: NodeContext) -> NoReturn:  # noqa: ARG002 - there is none, whoever asks
        raise UsageError("an isolated node cannot ask or use once; do that in a node before or behind it")

    nest = memo


def main() -> None:
    """Run one node for the process at the other end of stdin and stdout."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # what the node prints must not come between the frames
    os.dup2(2, 1)
    frames = Frames(source, sink)
    try:
        target, names = frames.read() or ("", [])
        fn = _found(target)
        frames = Frames(source, sink, [_found(name) for name in names])
        told = frames.read()
        if told is not None:
            _tell(frames, fn(_context(frames, *told)))
    except BaseException as error:  # noqa: BLE001 - seam: the node is foreign code, its end is for the other process
        told = one_line(f"{type(error).__name__}: {error}")
        frames.write("error", told, "".join(traceback.format_exception(error)))


def _context(frames: Frames, state: Any, *told: Any) -> NodeContext:
    node, step, given, item, attempt, run_id, thread_id = told
    run = ChildRun(frames, run_id, thread_id)
    return NodeContext(run, node, State(state), step, run.emit, given, item, attempt)


def _tell(frames: Frames, output: Any) -> None:
    if inspect.iscoroutine(output):
        output = asyncio.run(output)
    if not isinstance(output, NodeResult):
        frames.write("value", output)
        return
    sends = [[send.node, send.input, send.item] for send in output.sends]
    frames.write(
        "result",
        {
            "writes": dict(output.writes),
            "goto": output.goto,
            "halt": output.halt,
            "error": output.error,
            "sends": sends,
        },
    )


def _found(name: str) -> Any:
    module, _, path = name.partition(":")
    found: Any = reduce(getattr, path.split("."), import_module(module))
    return getattr(found, ISOLATED, found)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
