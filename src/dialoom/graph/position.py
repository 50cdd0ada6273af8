"""Where a run starts: at the entry of the graph or where a checkpoint left off."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from dialoom.base.errors import UsageError
from dialoom.graph.checkpoint import Checkpoint
from dialoom.graph.errors import GraphChangedError
from dialoom.graph.frontier import AT_ENTRY, Frontier
from dialoom.graph.frozen import FrozenList
from dialoom.graph.log import AppendLog
from dialoom.graph.migrate import Moved, migrated
from dialoom.graph.names import START
from dialoom.graph.ops import Op
from dialoom.graph.options import RunOptions
from dialoom.graph.resume import ResumeCommand, answered
from dialoom.graph.setup import Setup
from dialoom.graph.state import EMPTY, State, settled_value
from dialoom.graph.table import Table

T = TypeVar("T")


class Start(msgspec.Struct, frozen=True):
    """What a run is asked to do: bring `inputs` in, at the entry or `where` a thread or checkpoint stands.

    `command` answers what is asked there.
    """

    inputs: Mapping[str, Any] | None
    where: str | Checkpoint | None = None
    command: ResumeCommand | None = None

    @property
    def is_silent(self) -> bool:
        """Whether it only asks to go on."""
        return self.where is not None and self.inputs is None and self.command is None


class Position(msgspec.Struct, frozen=True):
    """Where a thread stands, its newest version (0 when it is new), and the checkpoint to follow.

    `rewrites` is what migrations made of the state, not committed yet.
    """

    state: State = EMPTY
    frontier: Frontier = AT_ENTRY
    version: int = 0
    checkpoint_id: str | None = None
    rewrites: tuple[Op, ...] = ()


AT_START = Position()
"""Where every new thread stands."""


class StoreAccess(Protocol):
    """Who calls the store: a lane, or code beside any run."""

    async def in_store(self, call: Callable[[], T], *, blocking: bool) -> T: ...


async def find(setup: Setup, access: StoreAccess, start: Start, thread_id: str | None) -> Position:
    """Return where the run begins.

    Raises UsageError when there is nothing to resume or no migration leads here, GraphChangedError when it
    does not fit this graph.
    """
    table = setup.table
    head = await _head(setup, access, start, thread_id)
    if start.where is None:
        if head is None:
            return AT_START
        moved = _brought_up(table, head)
        return Position(_adopted(table, moved.state), AT_ENTRY, head.version, head.id, moved.ops)
    checkpoint = start.where if isinstance(start.where, Checkpoint) else head
    if checkpoint is None:
        raise UsageError(f"there is no thread {start.where!r} to resume; begin it with run")
    moved = _brought_up(table, checkpoint)
    frontier = moved.frontier
    _check_nodes(setup, frontier, made_by=checkpoint.fingerprint)
    if start.command is not None:
        nodes = setup.table.nodes.values()
        resume_nodes = {node.name: node.resume_node for node in nodes if node.resume_node is not None}
        frontier = answered(frontier, start.command, resume_nodes)
    if start.inputs is not None and frontier.is_over:
        frontier = AT_ENTRY
    version = checkpoint.version if head is None else head.version
    return Position(_adopted(table, moved.state), frontier, version, checkpoint.id, moved.ops)


def refuse_odd(inputs: object, options: object) -> None:
    """Raise UsageError for what a run cannot be asked with."""
    if inputs is not None and not isinstance(inputs, Mapping):
        raise UsageError(f"inputs are of type {type(inputs).__name__}; give a mapping of channels to values")
    if not isinstance(options, RunOptions):
        raise UsageError(f"options are of type {type(options).__name__}; give RunOptions(...)")


def thread_of(start: Start, thread_id: str | None) -> str | None:
    """Return the thread a run belongs to, None for a new one. Raises UsageError when two are named."""
    named = start.where.thread_id if isinstance(start.where, Checkpoint) else start.where
    if named is not None and thread_id is not None and named != thread_id:
        raise UsageError(f"asked to resume thread {named!r} as thread {thread_id!r}; name one of them")
    return thread_id if named is None else named


async def _head(setup: Setup, access: StoreAccess, start: Start, thread_id: str | None) -> Checkpoint | None:
    store = setup.store
    if store is None:
        if isinstance(start.where, str):
            raise UsageError(
                f"graph {setup.table.name!r} keeps no checkpoints; build it with build(store=...)"
            )
        return None
    if thread_id is None:
        return None
    return await access.in_store(lambda: store.load(thread_id), blocking=store.blocking)


def _brought_up(table: Table, checkpoint: Checkpoint) -> Moved:
    moved = migrated(
        table.name,
        table.migrations,
        checkpoint.state_version,
        state=checkpoint.state,
        frontier=checkpoint.frontier,
    )
    # what the graph has no channel for is forgotten here, as it is without a migration
    kept = tuple(op for op in moved.ops if op.channel in table.channels)
    return msgspec.structs.replace(moved, ops=kept)


def _check_nodes(setup: Setup, frontier: Frontier, *, made_by: str) -> None:
    for name in frontier.nodes:
        if name != START and name not in setup.table.nodes:
            raise GraphChangedError(name, made_by=made_by, resumed_by=setup.fingerprint)


def _adopted(table: Table, state: State) -> State:
    """Return `state` as this graph has it: without channels it no longer has, with logs of this run's own."""
    values: dict[str, Any] = {}
    for name, channel in table.channels.items():
        if name in state:
            value = settled_value(state[name])
            is_log = channel.reducer.kind == "extend" and isinstance(value, FrozenList)
            values[name] = AppendLog.of(value) if is_log else value
    return State(values)
