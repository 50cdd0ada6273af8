"""A graph as one node of another: what it is given, where it stands, what it gives back."""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

import msgspec

from dialoom.base.cancel import Cancelled
from dialoom.graph.channels import Channel, WriteRefused, apply_writes
from dialoom.graph.checkpoint import Checkpoint
from dialoom.graph.context import Nest, NodeContext
from dialoom.graph.frontier import AT_ENTRY, ChildNote
from dialoom.graph.options import RunOptions
from dialoom.graph.position import Start
from dialoom.graph.reducers import Reducer, Reducers
from dialoom.graph.result import NodeResult, RunResult
from dialoom.graph.run import Run
from dialoom.graph.setup import Setup
from dialoom.graph.state import State
from dialoom.graph.table import Node


class SubgraphConfig(msgspec.Struct, frozen=True):
    """What passes between a graph and its subgraph.

    - `inputs`: channel of the subgraph to the channel it is filled from; without any, all that have the same
      name.
    - `outputs`: channels of the subgraph whose changes are written to those of the same name; without any,
      all that both have.
    - `resume_node`: the node that answers to the subgraph as a whole are for; without it the one that waits.
    """

    inputs: Mapping[str, str] = {}
    outputs: Sequence[str] = ()
    resume_node: str | None = None


class ChildSaver:
    """Keeps the checkpoints of a subgraph as the note of its task, so in the checkpoints of the whole."""

    def __init__(self, nest: Nest, begun: ChildNote) -> None:
        self.blocking = nest.memo.blocking
        self.note = begun
        self._nest = nest

    def save(self, checkpoint: Checkpoint) -> None:
        written = (op.channel for op in checkpoint.ops) if checkpoint.step else ()
        self.note = ChildNote(
            state=checkpoint.state,
            frontier=checkpoint.frontier,
            touched=tuple(dict.fromkeys((*self.note.touched, *written))),
            given=self.note.given,
            version=checkpoint.version,
            ops=checkpoint.ops,
        )
        self._nest.heartbeat()
        self._nest.memo.stand(self.note)


class Subgraph:
    """The node function of a subgraph; `node` is what the graph around it calls."""

    def __init__(self, setup: Setup, config: SubgraphConfig) -> None:
        self.table = setup.table
        self.config = config
        self.node: Node = self.run_on_loop if setup.table.has_async else self.run_here
        self._setup = setup

    def run_here(self, ctx: NodeContext) -> NodeResult:
        """Run the subgraph, all of whose nodes are plain, on this thread."""
        from dialoom.graph.sync_lane import carry_here

        try:
            run, saver = self._begin(ctx)
        except WriteRefused as misfit:
            return NodeResult.fail(str(misfit))
        return self._outcome(ctx.nest(), carry_here(run), saver)

    async def run_on_loop(self, ctx: NodeContext) -> NodeResult:
        """Run the subgraph in this task."""
        from dialoom.graph.on_loop import carry_on_loop

        try:
            run, saver = self._begin(ctx)
        except WriteRefused as misfit:
            return NodeResult.fail(str(misfit))
        return self._outcome(ctx.nest(), await carry_on_loop(lambda: run), saver)

    def _begin(self, ctx: NodeContext) -> tuple[Run, ChildSaver]:
        nest = ctx.nest()
        note = nest.memo.child or self._first_note(ctx, nest.channels)
        checkpoint = Checkpoint(
            id="",
            thread_id=ctx.thread_id,
            version=note.version,
            parent_id=None,
            run_id=ctx.run_id,
            step=0,
            created=nest.clock.now(),
            fingerprint=self._setup.fingerprint,
            frontier=note.frontier,
            ops=(),
            state=State(note.state),
            state_version=self._setup.state_version,
        )
        own = self._setup
        setup = Setup(self.table, None, (), clock=nest.clock, chance=own.chance, draft=own.draft)
        saver = ChildSaver(nest, note)
        return Run(setup, Start(None, checkpoint), _options(nest), nest=nest, saver=saver), saver

    def _first_note(self, ctx: NodeContext, outer: Mapping[str, Channel]) -> ChildNote:
        """Return the beginning of a subgraph. Raises WriteRefused when an input does not fit its channel."""
        inner = self.table.channels
        sources = self.config.inputs or {name: name for name in inner if name in outer}
        writes = {name: ctx.state[source] for name, source in sources.items() if source in ctx.state}
        plain = {name: Channel(name, Reducers.overwrite, inner[name].type) for name in writes}
        values: dict[str, Any] = {}
        apply_writes(plain, values, ctx.node, writes)
        given = tuple(
            (name, value if outer[name].reducer.since else len(value))
            for name, value in values.items()
            if sources[name] == name and _adds(outer[name].reducer, inner[name].reducer)
        )
        return ChildNote(state=values, frontier=AT_ENTRY, given=given)

    def _outcome(self, nest: Nest, result: RunResult, saver: ChildSaver) -> NodeResult:
        match result.stop_reason:
            case "finished" | "halted":
                writes = self._writes(result.state, saver.note, nest.channels)
                return NodeResult.ok(writes, halt=result.stop_reason == "halted")
            case "interrupted":
                return nest.memo.pass_on(result.interrupts)
            case "max_steps":
                return NodeResult.fail(f"its subgraph was not through after {result.steps} supersteps")
            case "error" | "conflict":
                first = result.errors[0]
                return NodeResult.fail(f"its subgraph failed: node {first.node!r}: {first.message}")
            case "cancelled" | "timeout":
                raise Cancelled(result.stop_reason)
            case _:
                assert_never(result.stop_reason)

    def _writes(self, state: State, note: ChildNote, outer: Mapping[str, Channel]) -> dict[str, Any]:
        names = self.config.outputs or [name for name in self.table.channels if name in outer]
        given = dict(note.given)
        writes: dict[str, Any] = {}
        for name in names:
            if name not in note.touched:
                continue
            value, since = state[name], outer[name].reducer.since
            if name not in given:
                writes[name] = value
            else:
                writes[name] = value[given[name] :] if since is None else since(given[name], value)
        return writes


def _adds(outer: Reducer, inner: Reducer) -> bool:
    """Whether what a subgraph makes of a value is written as what it adds to it."""
    return outer.since is not None or outer.kind == inner.kind == "extend"


def _options(nest: Nest) -> RunOptions:
    return msgspec.structs.replace(
        nest.options,
        timeout=nest.remaining,
        control=nest.scope,
        raise_on_error=False,
    )
