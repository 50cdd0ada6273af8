"""What a node is given: the state before its superstep, and the few things it may do meanwhile."""

from typing import Any, Protocol

import msgspec

from dialoom.graph.state import State


class RunHandle(Protocol):
    """The run behind a context."""

    run_id: str
    thread_id: str
    deps: Any

    def stop_requested(self) -> bool: ...
    def raise_if_stopped(self) -> None: ...
    def emit(self, node: str, step: int, value: object) -> None: ...
    async def aemit(self, node: str, step: int, value: object) -> None: ...


class NodeContext(msgspec.Struct, frozen=True, eq=False):  # a Struct because every attempt makes one
    """One attempt of one node.

    `state` is the state before this superstep and stays that for as long as the context lives. `step`
    counts the supersteps of this run from 1. `deps` is the object given as `RunOptions.deps`, None without.
    """

    _run: RunHandle
    node: str
    state: State
    step: int

    def __repr__(self) -> str:
        return f"<NodeContext {self.node!r} step {self.step}>"

    @property
    def run_id(self) -> str:
        return self._run.run_id

    @property
    def thread_id(self) -> str:
        return self._run.thread_id

    @property
    def deps(self) -> Any:
        return self._run.deps

    @property
    def stop_requested(self) -> bool:
        """Whether the run was asked to stop or its time is over; a long node looks at it now and then."""
        return self._run.stop_requested()

    def raise_if_stopped(self) -> None:
        """Leave the node when a stop was requested; the node then runs again when the thread is resumed."""
        self._run.raise_if_stopped()

    def emit(self, value: object) -> None:
        """Show `value` to whoever listens to the run, at once; without a listener this costs next to nothing.

        From a worker thread it waits while the reader of a stream is behind. On an event loop it cannot wait:
        use `aemit` in an async node. Raises UsageError there when the reader falls too far behind.
        """
        self._run.emit(self.node, self.step, value)

    async def aemit(self, value: object) -> None:
        """Show `value` to whoever listens to the run, waiting while the reader of a stream is behind."""
        await self._run.aemit(self.node, self.step, value)
