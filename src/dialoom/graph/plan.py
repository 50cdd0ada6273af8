"""Deciding which nodes come next. Pure: a table and a state in, names out."""

from collections.abc import Hashable, Iterable, Sequence
from typing import cast

import msgspec

from dialoom.base.text import one_line
from dialoom.graph.frontier import AT_ENTRY, Frontier, JoinCount, Send
from dialoom.graph.joins import arrive
from dialoom.graph.names import END, START
from dialoom.graph.result import NodeError, NodeResult
from dialoom.graph.state import State
from dialoom.graph.table import Route, Table
from dialoom.graph.trouble import error_of, refused


class RouteRefused(Exception):  # noqa: N818 - says what happened; it never leaves the engine
    """A conditional edge answered with something that is not a way out of its node."""


class Onward(msgspec.Struct, frozen=True):
    """Where finished nodes lead: to nodes, to tasks of their own, and to joins, of which `joins` still wait.

    `unrouted` are those whose conditional edge was no help.
    """

    reached: tuple[str, ...]
    sends: tuple[Send, ...]
    unrouted: tuple[str, ...]
    joins: tuple[JoinCount, ...]
    errors: tuple[NodeError, ...]


def tasks_of(table: Table, frontier: Frontier) -> Sequence[Send]:
    """Return the tasks of a superstep in the order in which they commit: by node, then by item."""
    names = [Send(name) for name in frontier.ready]
    if not frontier.sends:
        return names
    return sorted([*names, *frontier.sends], key=lambda task: table.commit_order(task.node, task.item))


def routed(table: Table, state: State, name: str) -> tuple[list[str], list[Send], NodeError | None]:
    """Return where the edges of `name` lead, or why a conditional one of them is no help."""
    reached: list[str] = []
    sends: list[Send] = []
    exits = table.exits[name]
    try:
        for route in exits.routes:
            _take(table, route, route.decide(state), reached, sends=sends)
    except Exception as error:  # noqa: BLE001 - seam: routes are foreign code
        return [], [], _route_error(name, error)
    reached += exits.static
    return reached, sends, None


def after_lone(table: Table, state: State, name: str) -> tuple[Frontier, NodeError | None]:
    """Return what follows `name` when nothing else ran, and why a conditional edge of it is no help."""
    exits = table.exits[name]
    if exits.always is not None:
        return exits.always, None
    reached: list[str] = []
    sends: list[Send] = []
    error = None
    if not exits.chosen:
        reached, sends, error = routed(table, state, name)
    else:
        try:
            answer = exits.routes[0].decide(state)
            if type(answer) is str and (onward := exits.chosen.get(answer)) is not None:
                return onward, None
            _take(table, exits.routes[0], answer, reached, sends=sends)
        except Exception as failure:  # noqa: BLE001 - seam: routes are foreign code
            error = _route_error(name, failure)
    if len(sends) > table.max_sends:
        error = refused(name, _too_many(table, len(sends)))
    if error is not None:
        return Frontier(unrouted=(name,)), error
    return table.frontier(table.in_order(reached), sends=numbered(sends)), None


def follow(
    table: Table, state: State, frontier: Frontier, left: Sequence[tuple[str, NodeResult]], held: set[str]
) -> Onward:
    """Return where the nodes `left`, with what they gave back, lead, beside those `held` back.

    What `frontier` has deferred comes on top. A goto replaces the edges of its node, sends add to them.
    """
    reached = list(frontier.deferred)
    sends = list(frontier.deferred_sends)
    unrouted: list[str] = []
    arrivals: list[str] = []
    errors: list[NodeError] = []
    for name, result in left:
        if result.goto is not None:
            reached += result.goto
        else:
            targets, more, error = routed(table, state, name)
            if len(sends) + len(more) > table.max_sends:
                targets, more, error = [], [], refused(name, _too_many(table, len(more)))
            reached += targets
            sends += more
            if error is None:
                arrivals.append(name)
            else:
                unrouted.append(name)
                errors.append(error)
        sends += result.sends
    joins = frontier.joins
    if table.joins:
        active = {*reached, *held, *unrouted, *(send.node for send in sends)}
        joins, targets, stalled = arrive(table.joins, joins, arrivals, active)
        reached += targets
        errors += stalled
    return Onward(table.in_order(reached), numbered(sends), tuple(unrouted), joins, tuple(errors))


def settle(table: Table, state: State, frontier: Frontier) -> tuple[Frontier, tuple[NodeError, ...]]:
    """Return `frontier` with its unrouted asked again and, when nothing else is due, its deferred ready."""
    if frontier is AT_ENTRY and not table.joins:
        onward, error = after_lone(table, state, START)
        return onward, () if error is None else (error,)
    held = {*frontier.ready, *(send.node for send in frontier.sends)}
    on = follow(table, state, frontier, [(name, NodeResult()) for name in frontier.unrouted], held)
    if held or on.unrouted:
        waits = Frontier(
            frontier.ready,
            on.reached,
            on.unrouted,
            sends=frontier.sends,
            deferred_sends=on.sends,
            joins=on.joins,
            notes=frontier.notes,
        )
        return waits, on.errors
    return table.frontier(on.reached, sends=on.sends, joins=on.joins), on.errors


def way_trouble(table: Table, node: str, result: NodeResult, *, room: int) -> NodeError | None:
    """Return what is wrong with the goto and the sends of `node`, None when every target exists.

    There is `room` for so many sends.
    """
    if len(result.sends) > room:
        return refused(node, _too_many(table, len(result.sends)))
    for target in result.goto or ():
        if target != END and target not in table.nodes:
            known = ", ".join([*table.nodes, END])
            return refused(node, f"goto {target!r}: there is no such node; the graph has: {known}")
    for send in result.sends:
        if (reason := _send_trouble(table, send)) is not None:
            return refused(node, reason)
    return None


def numbered(sends: Sequence[Send]) -> tuple[Send, ...]:
    """Return `sends` with an item number for each that has none: the next of its node."""
    if not sends:
        return ()
    following: dict[str, int] = {}
    result: list[Send] = []
    for send in sends:
        item = following.get(send.node, 0) if send.item is None else send.item
        following[send.node] = item + 1
        result.append(Send(send.node, send.input, item))
    return tuple(result)


def _take(
    table: Table,
    route: Route,
    answer: str | Send | Sequence[str | Send],
    reached: list[str],
    *,
    sends: list[Send],
) -> None:
    """Add where `answer` leads. Raises RouteRefused when that is nowhere."""
    is_one = isinstance(answer, (str, Send)) or not isinstance(cast("object", answer), Iterable)
    for label in cast("Sequence[str | Send]", (answer,) if is_one else answer):
        if isinstance(label, Send):
            sends.append(_sent(table, label))
        else:
            reached.append(_labelled(route, label))


def _too_many(table: Table, sends: int) -> str:
    """Say why `sends` of one node are too many."""
    return (
        f"with the {sends} tasks it sends, its superstep sends more than {table.max_sends};"
        " send fewer at a time, or raise max_sends of build"
    )


def _labelled(route: Route, label: str) -> str:
    is_answer = isinstance(cast("object", label), Hashable)  # a router is foreign code
    target = route.ways.get(label, route.default) if is_answer else None
    if target is None:
        shown, ways = one_line(repr(label), 80), ", ".join(route.ways)
        raise RouteRefused(f"the conditional edge answered {shown}; it may answer: {ways}")
    return target


def _sent(table: Table, send: Send) -> Send:
    if (reason := _send_trouble(table, send)) is not None:
        raise RouteRefused(f"the conditional edge answered with a {reason}")
    return Send(send.node, send.input)


def _send_trouble(table: Table, send: Send) -> str | None:
    spec = table.nodes.get(send.node)
    if spec is None:
        return f"send to {send.node!r}: there is no such node; the graph has: {', '.join(table.nodes)}"
    if spec.each is not None:
        return f"send to {send.node!r}: a map takes its items from a channel; send to a node"
    return None


def _route_error(name: str, error: Exception) -> NodeError:
    if isinstance(error, RouteRefused):
        return refused(name, str(error))
    where = "the input" if name == START else f"node {name!r}"
    return error_of(name, error, prefix=f"conditional edge after {where}: ")
