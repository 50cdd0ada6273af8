"""Deciding what a superstep did. Pure: the state before and what the nodes gave back in, the step out."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dialoom.graph.channels import WriteRefused, apply_writes
from dialoom.graph.frontier import Frontier, Send, TaskNote
from dialoom.graph.frozen import FrozenDict
from dialoom.graph.names import START
from dialoom.graph.ops import Op, fold
from dialoom.graph.plan import after_lone, follow, settle, tasks_of, way_trouble
from dialoom.graph.result import NodeError, NodeResult
from dialoom.graph.state import State
from dialoom.graph.table import Table
from dialoom.graph.trouble import refused


class Paused(msgspec.Struct, frozen=True):
    """The outcome of a node that waits for an answer; its note says for which."""


PAUSED = Paused()
Outcome = NodeResult | NodeError | Paused | None
"""Of one task: it finished, it failed, it waits for an answer, or it was stopped before any of that."""


class Step(msgspec.Struct, frozen=True):
    """One superstep, decided. `finished` names the nodes whose writes are `ops`; without any it is void."""

    state: State
    frontier: Frontier
    ops: tuple[Op, ...] = ()
    finished: tuple[str, ...] = ()
    errors: tuple[NodeError, ...] = ()
    halt: bool = False


def conclude(
    table: Table,
    state: State,
    frontier: Frontier,
    outcomes: Sequence[Outcome],
    notes: Sequence[TaskNote] = (),
) -> Step:
    """Return what the superstep of the tasks of `frontier`, which gave `outcomes` in that order, comes to.

    Writes go in in the order in which the nodes were added, whichever finished first. A task that failed,
    pauses or was stopped stays ready and keeps its `notes`; what its siblings did counts once, and what they
    lead to waits for it. When one write does not fit, nothing of the superstep counts.
    """
    if len(outcomes) == 1 and isinstance(only := outcomes[0], NodeResult):
        spec = table.nodes[frontier.ready[0]] if len(frontier.ready) == 1 else None
        if spec is not None and spec.alone is frontier and only.goto is None and not only.sends:
            step = conclude_lone(table, state, spec.name, only.writes)
            return msgspec.structs.replace(step, halt=True) if only.halt and step.finished else step
    return conclude_any(table, state, frontier, outcomes, notes)


def conclude_any(
    table: Table,
    state: State,
    frontier: Frontier,
    outcomes: Sequence[Outcome],
    notes: Sequence[TaskNote] = (),
) -> Step:
    """Return the same as `conclude`, by the long way."""
    values = dict(state)
    ops: list[Op] = []
    left: list[tuple[str, NodeResult]] = []
    room = table.max_sends
    held: list[Send] = []
    errors: list[NodeError] = []
    try:
        for task, outcome in zip(tasks_of(table, frontier), outcomes, strict=True):
            result = _checked(table, task, outcome, room=room)
            if isinstance(result, NodeResult):
                room -= len(result.sends)
                ops += apply_writes(table.channels, values, task.node, result.writes)
                left.append((task.node, result))
                continue
            held.append(task)
            if isinstance(result, NodeError):
                errors.append(result)
    except WriteRefused as misfit:
        return Step(state, frontier, errors=(*errors, refused(misfit.source, str(misfit))))
    after = State(values) if ops else state
    onward, more = _onward(table, after, frontier, left, held, notes)
    finished = tuple([name for name, _ in left])
    halt = any(result.halt for _, result in left)
    return Step(after, onward, tuple(ops), finished, (*errors, *more), halt)


def _onward(
    table: Table,
    state: State,
    frontier: Frontier,
    left: Sequence[tuple[str, NodeResult]],
    held: Sequence[Send],
    notes: Sequence[TaskNote],
) -> tuple[Frontier, tuple[NodeError, ...]]:
    on = follow(table, state, frontier, left, {task.node for task in held})
    if not held and not on.unrouted:
        return table.frontier(on.reached, sends=on.sends, joins=on.joins), on.errors
    waits = Frontier(
        tuple(task.node for task in held if task.item is None),
        on.reached,
        on.unrouted,
        sends=tuple(task for task in held if task.item is not None),
        deferred_sends=on.sends,
        joins=on.joins,
        notes=_kept(table, notes, held),
    )
    return waits, on.errors


def _kept(table: Table, notes: Sequence[TaskNote], held: Sequence[Send]) -> tuple[TaskNote, ...]:
    """Return the notes of `held` tasks, and of the items of held maps, that say anything; in commit order."""
    keys = {(task.node, task.item) for task in held}
    nodes = table.nodes
    kept = [
        note
        for note in notes
        if note.says_anything
        and (
            (note.node, note.item) in keys
            or (nodes[note.node].each is not None and (note.node, None) in keys)
        )
    ]
    return tuple(sorted(kept, key=lambda note: table.commit_order(note.node, note.item)))


def conclude_lone(table: Table, state: State, name: str, writes: Mapping[str, Any]) -> Step:
    """Conclude for one node that was alone and finished with `writes`: nearly every superstep there is."""
    values = state.copy()
    try:
        ops = apply_writes(table.channels, values, name, writes)
    except WriteRefused as misfit:
        frontier = table.frontier((name,))
        return Step(state, frontier, errors=(refused(misfit.source, str(misfit)),))
    after = State(values) if ops else state
    onward, error = after_lone(table, after, name)
    return Step(after, onward, tuple(ops), (name,), () if error is None else (error,))


def accept_input(table: Table, state: State, frontier: Frontier, writes: Mapping[str, Any]) -> Step:
    """Return the step that brings `writes` in from outside, after first values where a channel has none."""
    values = dict(state)
    ops = [op for name, op in table.initial.items() if name not in values]
    try:
        fold(values, ops)
        if writes:
            ops += apply_writes(table.channels, values, START, writes)
    except WriteRefused as misfit:
        return Step(state, frontier, errors=(refused(misfit.source, str(misfit)),))
    after = State(values)
    onward, errors = settle(table, after, frontier)
    return Step(after, onward, tuple(ops), (START,), errors)


def _checked(table: Table, task: Send, outcome: Outcome, *, room: int) -> Outcome:
    if isinstance(outcome, NodeResult) and (outcome.goto is not None or outcome.sends):
        outcome = way_trouble(table, task.node, outcome, room=room) or outcome
    fallback = table.nodes[task.node].on_error
    if fallback is None or not isinstance(outcome, NodeError):
        return outcome
    failure = FrozenDict(node=outcome.node, message=outcome.message, attempts=outcome.attempts)
    return NodeResult(goto=(), sends=(Send(fallback, failure),))
