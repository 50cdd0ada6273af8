"""Deciding what a superstep did. Pure: the state before and what the nodes gave back in, the step out."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dialoom.graph.channels import WriteRefused, apply_writes
from dialoom.graph.names import START
from dialoom.graph.ops import Op, fold
from dialoom.graph.plan import Frontier, follow, goto_trouble, settle
from dialoom.graph.result import NodeError, NodeResult
from dialoom.graph.state import State
from dialoom.graph.table import Table
from dialoom.graph.trouble import refused

Outcome = NodeResult | NodeError | None
"""Of one node: it finished, it failed, or it was stopped before it did either."""


class Step(msgspec.Struct, frozen=True):
    """One superstep, decided. `finished` names the nodes whose writes are `ops`; without any it is void."""

    state: State
    frontier: Frontier
    ops: tuple[Op, ...] = ()
    finished: tuple[str, ...] = ()
    errors: tuple[NodeError, ...] = ()
    halt: bool = False


def conclude(table: Table, state: State, frontier: Frontier, outcomes: Sequence[Outcome]) -> Step:
    """Return what the superstep of `frontier.ready`, which gave `outcomes` in that order, comes to.

    Writes go in in the order in which the nodes were added, whichever finished first. A node that failed or
    was stopped stays ready; what its siblings did counts once, and what they lead to waits for it. When one
    write does not fit, nothing of the superstep counts.
    """
    only = outcomes[0] if len(outcomes) == 1 and not frontier.deferred else None
    if isinstance(only, NodeResult) and only.goto is None:
        return _conclude_lone(table, state, frontier, only)
    return conclude_any(table, state, frontier, outcomes)


def conclude_any(table: Table, state: State, frontier: Frontier, outcomes: Sequence[Outcome]) -> Step:
    """Return the same as `conclude`, by the long way."""
    values = dict(state)
    ops: list[Op] = []
    left: list[tuple[str, NodeResult]] = []
    held: list[str] = []
    errors: list[NodeError] = []
    try:
        for name, outcome in zip(frontier.ready, outcomes, strict=True):
            result = _checked(table, name, outcome)
            if isinstance(result, NodeResult):
                ops += apply_writes(table.channels, values, name, result.writes)
                left.append((name, result))
                continue
            held.append(name)
            if result is not None:
                errors.append(result)
    except WriteRefused as misfit:
        return Step(state, frontier, errors=(*errors, refused(misfit.source, str(misfit))))
    after = State(values) if ops else state
    reached, unrouted, route_errors = follow(table, after, [(name, result.goto) for name, result in left])
    if frontier.deferred:
        reached = table.in_order((*frontier.deferred, *reached))
    onward = Frontier(tuple(held), reached, unrouted) if held or unrouted else Frontier(reached)
    finished = tuple(name for name, _ in left)
    halt = any(result.halt for _, result in left)
    return Step(after, onward, tuple(ops), finished, (*errors, *route_errors), halt)


def _conclude_lone(table: Table, state: State, frontier: Frontier, result: NodeResult) -> Step:
    """Conclude for one node that finished: nearly every superstep there is, at two thirds of the cost."""
    (name,) = frontier.ready
    values = dict(state)
    try:
        ops = apply_writes(table.channels, values, name, result.writes)
    except WriteRefused as misfit:
        return Step(state, frontier, errors=(refused(misfit.source, str(misfit)),))
    after = State(values) if ops else state
    exits = table.exits[name]
    if not exits.routes:
        return Step(after, Frontier(exits.static), tuple(ops), frontier.ready, (), result.halt)
    reached, unrouted, errors = follow(table, after, ((name, None),))
    onward = Frontier((), reached, unrouted) if unrouted else Frontier(reached)
    return Step(after, onward, tuple(ops), frontier.ready, tuple(errors), result.halt)


def accept_input(table: Table, state: State, frontier: Frontier, writes: Mapping[str, Any]) -> Step:
    """Return the step that brings `writes` in from outside, after first values where a channel has none."""
    values = dict(state)
    ops = [op for name, op in table.initial.items() if name not in values]
    try:
        fold(values, ops)
        ops += apply_writes(table.channels, values, START, writes)
    except WriteRefused as misfit:
        return Step(state, frontier, errors=(refused(misfit.source, str(misfit)),))
    after = State(values)
    onward, errors = settle(table, after, frontier)
    return Step(after, onward, tuple(ops), (START,), tuple(errors))


def _checked(table: Table, name: str, outcome: Outcome) -> Outcome:
    if isinstance(outcome, NodeResult) and outcome.goto is not None:
        return goto_trouble(table, name, outcome.goto) or outcome
    return outcome
