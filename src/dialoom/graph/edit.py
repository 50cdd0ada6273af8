"""Changing where a thread stands without running it, and beginning a new thread where another stood."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dialoom.base.errors import UsageError
from dialoom.base.ids import new_id
from dialoom.graph.channels import WriteRefused, apply_writes
from dialoom.graph.checkpoint import Checkpoint, CheckpointStore
from dialoom.graph.commit import Step
from dialoom.graph.frontier import Frontier
from dialoom.graph.log import AppendLog
from dialoom.graph.names import START
from dialoom.graph.note_changes import following
from dialoom.graph.ops import Op
from dialoom.graph.plan import follow
from dialoom.graph.position import AT_START, Position, Start, StoreAccess, find
from dialoom.graph.result import NodeResult
from dialoom.graph.setup import Setup
from dialoom.graph.state import State
from dialoom.graph.table import Table

T = TypeVar("T")


class Here:
    """Calls the store on this thread."""

    async def in_store(self, call: Callable[[], T], *, blocking: bool) -> T:  # noqa: ARG002 - may block here
        return call()


class OffLoop:
    """Calls a blocking store on a worker thread."""

    async def in_store(self, call: Callable[[], T], *, blocking: bool) -> T:
        import asyncio  # there already: this is code of an event loop

        return await asyncio.to_thread(call) if blocking else call()


async def update(
    setup: Setup, access: StoreAccess, thread_id: str, writes: Mapping[str, Any], *, as_node: str | None
) -> Checkpoint:
    """Save and return the checkpoint that `writes`, as if `as_node` had made them, lead to.

    Raises UsageError when there is no such thread, node or channel, or a write does not fit; ConflictError
    when a run was first.
    """
    store = store_of(setup)
    position = await find(setup, access, Start(None, thread_id), thread_id)
    step = edited(setup.table, position.state, position.frontier, writes, as_node=as_node)
    checkpoint = _saved(setup, thread_id, position, step)
    await access.in_store(lambda: store.save(checkpoint), blocking=store.blocking)
    return checkpoint


async def fork(
    setup: Setup, access: StoreAccess, checkpoint: Checkpoint, *, new_thread: str | None
) -> Checkpoint:
    """Save and return the first checkpoint of a new thread that stands where `checkpoint` stood.

    Raises UsageError when `checkpoint` does not fit the graph, ConflictError when `new_thread` exists.
    """
    store = store_of(setup)
    found = await find(setup, access, Start(None, checkpoint), None)
    ops = tuple(_whole(name, value) for name, value in found.state.items())
    step = Step(found.state, found.frontier, ops)
    first = _saved(setup, new_thread or new_id(), AT_START, step)
    await access.in_store(lambda: store.save(first), blocking=store.blocking)
    return first


def edited(
    table: Table, state: State, frontier: Frontier, writes: Mapping[str, Any], *, as_node: str | None
) -> Step:
    """Return the step that `writes` make. With `as_node` its edges say what is next, else nothing changes."""
    if as_node is not None and as_node not in table.nodes:
        raise UsageError(f"there is no node {as_node!r} to write as; the graph has: {', '.join(table.nodes)}")
    values = dict(state)
    try:
        ops = apply_writes(table.channels, values, as_node or START, writes)
    except WriteRefused as misfit:
        raise UsageError(str(misfit)) from misfit
    after = State(values)
    if as_node is None:
        return Step(after, frontier, tuple(ops))
    on = follow(table, after, Frontier(), [(as_node, NodeResult())], set())
    if on.errors:
        raise UsageError(f"writing as {as_node!r} leads nowhere: {on.errors[0].message}")
    return Step(after, Frontier(on.reached, sends=on.sends, joins=on.joins), tuple(ops))


def store_of(setup: Setup) -> CheckpointStore:
    """Return the store. Raises UsageError when the graph has none."""
    if setup.store is None:
        raise UsageError(f"graph {setup.table.name!r} keeps no checkpoints; build it with build(store=...)")
    return setup.store


def _saved(setup: Setup, thread_id: str, position: Position, step: Step) -> Checkpoint:
    run_id = new_id()
    return Checkpoint(
        id=f"{run_id}:0",
        thread_id=thread_id,
        version=position.version + 1,
        parent_id=position.checkpoint_id,
        run_id=run_id,
        step=0,
        created=setup.clock.now(),
        fingerprint=setup.fingerprint,
        frontier=following(position.frontier, step.frontier),
        ops=(*position.rewrites, *step.ops),
        state=step.state,
        interrupts=step.frontier.interrupts,
        state_version=setup.state_version,
    )


def _whole(name: str, value: Any) -> Op:
    if isinstance(value, AppendLog):
        return Op(name, "extend", value.frozen())
    return Op(name, "set", value)
