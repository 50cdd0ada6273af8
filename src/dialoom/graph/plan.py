"""Deciding which nodes come next. Pure: a table and a state in, names out."""

from collections.abc import Sequence

from dialoom.graph.frontier import Frontier
from dialoom.graph.names import END, START
from dialoom.graph.result import NodeError
from dialoom.graph.state import State
from dialoom.graph.table import Route, Table
from dialoom.graph.trouble import error_of, refused


class RouteRefused(Exception):  # noqa: N818 - says what happened; it never leaves the engine
    """A conditional edge answered with something that is not a way out of its node."""


def follow(
    table: Table, state: State, left: Sequence[tuple[str, tuple[str, ...] | None]]
) -> tuple[tuple[str, ...], tuple[str, ...], list[NodeError]]:
    """Return the nodes reached from those `left`, those of them whose conditional edge is no help, and why.

    Each comes with its goto, which, if there is one, replaces its edges.
    """
    reached: list[str] = []
    unrouted: list[str] = []
    errors: list[NodeError] = []
    for name, goto in left:
        if goto is not None:
            reached += goto
            continue
        exits = table.exits[name]
        try:
            reached += _routed(exits.routes, state)
        except Exception as error:  # noqa: BLE001 - seam: routes are foreign code
            unrouted.append(name)
            errors.append(_route_error(name, error))
        else:
            reached += exits.static
    return table.in_order(reached), tuple(unrouted), errors


def settle(table: Table, state: State, frontier: Frontier) -> tuple[Frontier, list[NodeError]]:
    """Return `frontier` with its unrouted asked again and, when nothing else is due, its deferred ready."""
    reached, unrouted, errors = follow(table, state, [(name, None) for name in frontier.unrouted])
    deferred = table.in_order((*frontier.deferred, *reached))
    if frontier.ready or unrouted:
        return Frontier(frontier.ready, deferred, unrouted), errors
    return Frontier(deferred), errors


def goto_trouble(table: Table, node: str, goto: Sequence[str]) -> NodeError | None:
    """Return what is wrong with the goto of `node`, None when every target exists."""
    for target in goto:
        if target != END and target not in table.nodes:
            known = ", ".join([*table.nodes, END])
            return refused(node, f"goto {target!r}: there is no such node; the graph has: {known}")
    return None


def _routed(routes: Sequence[Route], state: State) -> list[str]:
    targets: list[str] = []
    for route in routes:
        answer = route.decide(state)
        for label in (answer,) if isinstance(answer, str) else answer:
            target = route.ways.get(label, route.default)
            if target is None:
                raise RouteRefused(
                    f"the conditional edge answered {label!r}; it may answer: {', '.join(route.ways)}"
                )
            targets.append(target)
    return targets


def _route_error(name: str, error: Exception) -> NodeError:
    if isinstance(error, RouteRefused):
        return refused(name, str(error))
    where = "the input" if name == START else f"node {name!r}"
    return error_of(name, error, prefix=f"conditional edge after {where}: ")
