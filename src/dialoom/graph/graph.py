"""A graph that can run: immutable, and safe to use from many threads and loops at once."""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from dialoom.graph.checkpoint import Checkpoint
from dialoom.graph.draw import to_mermaid
from dialoom.graph.drive import drive
from dialoom.graph.edit import Here, OffLoop, fork, store_of, update
from dialoom.graph.errors import GraphProblem
from dialoom.graph.options import DEFAULT_OPTIONS, RunOptions
from dialoom.graph.position import Start
from dialoom.graph.result import RunResult
from dialoom.graph.resume import ResumeCommand
from dialoom.graph.run import Run
from dialoom.graph.setup import Setup
from dialoom.graph.subgraph import Subgraph, SubgraphConfig

if TYPE_CHECKING:
    from dialoom.graph.stream import RunStream, SyncRunStream

DEFAULT_BUFFER = 256
NO_TYPES: Mapping[str, object] = {}


class Graph:
    """Made by `GraphBuilder.build`. Every way to run it ends in a `RunResult`, also when the run fails.

    `inputs` are writes to channels from outside. With a store and `RunOptions.thread_id` a run goes on with
    the state its thread has.
    """

    def __init__(self, setup: Setup, warnings: tuple[GraphProblem, ...] = ()) -> None:
        self._setup = setup
        self.warnings = warnings
        """What may not be meant, though it can run; logged at build too."""

    @property
    def name(self) -> str:
        return self._setup.table.name

    @property
    def fingerprint(self) -> str:
        """The same for graphs with the same nodes, edges, channels and reducers; checkpoints carry it."""
        return self._setup.fingerprint

    def run(
        self, inputs: Mapping[str, Any] | None = None, options: RunOptions = DEFAULT_OPTIONS
    ) -> Coroutine[Any, Any, RunResult]:
        """Run from START. Cancelling the task ends the run safely before `CancelledError` is raised."""
        return _on_loop()(partial(Run, self._setup, Start(inputs), options))

    def run_sync(
        self, inputs: Mapping[str, Any] | None = None, options: RunOptions = DEFAULT_OPTIONS
    ) -> RunResult:
        """`run`, for code without an event loop: on this thread, or with async nodes on a background loop."""
        return self._carry(Run(self._setup, Start(inputs), options))

    def resume(
        self,
        where: str | Checkpoint,
        command: ResumeCommand | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        options: RunOptions = DEFAULT_OPTIONS,
    ) -> Coroutine[Any, Any, RunResult]:
        """Go on where a thread, given by its id, stands, or where one of its checkpoints stood.

        `command` answers what paused nodes asked. `inputs` are committed first; a thread that had finished
        then enters at START. Raises UsageError when there is no such thread or question and GraphChangedError
        when it waits for a node this graph does not have.
        """
        return _on_loop()(partial(Run, self._setup, Start(inputs, where, command), options))

    def resume_sync(
        self,
        where: str | Checkpoint,
        command: ResumeCommand | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        options: RunOptions = DEFAULT_OPTIONS,
    ) -> RunResult:
        """`resume`, for code without an event loop."""
        return self._carry(Run(self._setup, Start(inputs, where, command), options))

    def stream(
        self,
        inputs: Mapping[str, Any] | None = None,
        options: RunOptions = DEFAULT_OPTIONS,
        *,
        buffer: int = DEFAULT_BUFFER,
    ) -> "RunStream":
        """`run`, as an async iterator over its events; at most `buffer` of them wait for the reader."""
        return self._stream(Start(inputs), options, buffer)

    def stream_sync(
        self,
        inputs: Mapping[str, Any] | None = None,
        options: RunOptions = DEFAULT_OPTIONS,
        *,
        buffer: int = DEFAULT_BUFFER,
    ) -> "SyncRunStream":
        """`stream`, as a plain iterator."""
        return self._stream_sync(Start(inputs), options, buffer)

    def resume_stream(
        self,
        where: str | Checkpoint,
        command: ResumeCommand | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        options: RunOptions = DEFAULT_OPTIONS,
        buffer: int = DEFAULT_BUFFER,
    ) -> "RunStream":
        """`resume`, as an async iterator over the events of the run."""
        return self._stream(Start(inputs, where, command), options, buffer)

    def resume_stream_sync(
        self,
        where: str | Checkpoint,
        command: ResumeCommand | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        options: RunOptions = DEFAULT_OPTIONS,
        buffer: int = DEFAULT_BUFFER,
    ) -> "SyncRunStream":
        """`resume_stream`, as a plain iterator."""
        return self._stream_sync(Start(inputs, where, command), options, buffer)

    async def update_state(
        self, thread_id: str, writes: Mapping[str, Any], *, as_node: str | None = None
    ) -> Checkpoint:
        """Write to channels of a thread that does not run; `resume` goes on from there.

        With `as_node` it then stands behind that node, as if the writes were its own. Raises UsageError when
        something does not fit, ConflictError when a run committed meanwhile.
        """
        return await update(self._setup, OffLoop(), thread_id, writes, as_node=as_node)

    def update_state_sync(
        self, thread_id: str, writes: Mapping[str, Any], *, as_node: str | None = None
    ) -> Checkpoint:
        """`update_state`, for code without an event loop."""
        return drive(update(self._setup, Here(), thread_id, writes, as_node=as_node))

    async def fork(self, checkpoint: Checkpoint, new_thread: str | None = None) -> Checkpoint:
        """Begin a thread that stands where `checkpoint` stood; the old one is left alone.

        Returns its first checkpoint, whose `thread_id` it is. Raises ConflictError when `new_thread` exists.
        """
        return await fork(self._setup, OffLoop(), checkpoint, new_thread=new_thread)

    def fork_sync(self, checkpoint: Checkpoint, new_thread: str | None = None) -> Checkpoint:
        """`fork`, for code without an event loop."""
        return drive(fork(self._setup, Here(), checkpoint, new_thread=new_thread))

    def history(self, thread_id: str) -> Iterator[Checkpoint]:
        """Return the checkpoints of a thread, newest first; any of them can be resumed.

        Reads the store on this thread. Raises UsageError when the graph has none.
        """
        return store_of(self._setup).history(thread_id)

    def to_dict(self, *, types: Mapping[str, object] = NO_TYPES) -> dict[str, Any]:
        """Return the graph as JSON values, for `GraphBuilder.from_dict`. Functions go by the names of nodes.

        `types` names the types of channels that are classes. Raises UsageError for one without a name, and
        for a default that is not JSON.
        """
        from dialoom.graph.definition_write import definition_of

        return definition_of(self._setup.draft, types)

    def as_node(self, config: SubgraphConfig) -> Subgraph:
        """Return this graph as a node of another; see `GraphBuilder.add_subgraph`."""
        return Subgraph(self._setup, config)

    def to_mermaid(self) -> str:
        """Draw the graph as a Mermaid flowchart."""
        return to_mermaid(self._setup.table)

    def __repr__(self) -> str:
        return f"<Graph {self.name!r} {len(self._setup.table.nodes)} nodes>"

    def _carry(self, run: Run) -> RunResult:
        if not self._setup.table.has_async and run.options.schedule == "superstep":
            from dialoom.graph.sync_lane import carry_here

            return carry_here(run)
        from dialoom.graph.portal import the_portal

        return the_portal().run(_on_loop()(lambda: run), run.stop.cancel)

    def _stream(self, start: Start, options: RunOptions, buffer: int) -> "RunStream":
        from dialoom.graph.stream import RunStream

        return RunStream(lambda mailbox: Run(self._setup, start, options, mailbox), buffer)

    def _stream_sync(self, start: Start, options: RunOptions, buffer: int) -> "SyncRunStream":
        from dialoom.graph.stream import SyncRunStream

        return SyncRunStream(lambda mailbox: Run(self._setup, start, options, mailbox), buffer)


@cache
def _on_loop() -> Callable[[Callable[[], Run]], Coroutine[Any, Any, RunResult]]:
    """Return what carries a run on an event loop; it is not loaded before there is one."""
    from dialoom.graph.on_loop import carry_on_loop

    return carry_on_loop
