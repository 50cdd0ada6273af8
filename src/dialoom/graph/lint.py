"""What is wrong with a graph before it ever runs. Pure: a draft in, problems out."""

from collections import Counter
from collections.abc import Iterator
from typing import get_args

import msgspec

from dialoom.base.text import one_line
from dialoom.graph.channels import Channel, initial_operation
from dialoom.graph.compile_draft import is_async, onward_of, reached_from
from dialoom.graph.draft import ChildDraft, Draft, JoinDraft, NodeDraft
from dialoom.graph.errors import GraphProblem
from dialoom.graph.migrate import migration_problems
from dialoom.graph.names import END, START
from dialoom.graph.reducers import Reducer
from dialoom.graph.table import MapSpec, OnItemError

MAX_NAME = 200


def problems_of(draft: Draft) -> tuple[GraphProblem, ...]:
    """Return every problem of `draft`; of its shape only once names, channels, nodes and edges are fine."""
    local = (
        *draft.problems,
        *migration_problems(draft.migrations),
        *_name_problems("channel", [channel.name for channel in draft.channels]),
        *_name_problems("node", [node.name for node in draft.nodes]),
        *_channel_problems(draft),
        *_node_problems(draft),
        *_edge_problems(draft),
        *_route_problems(draft),
        *_join_problems(draft),
    )
    return local or tuple(_shape_problems(draft))


def _name_problems(kind: str, names: list[str]) -> Iterator[GraphProblem]:
    for name, times in Counter(names).items():
        where = f"{kind} {name!r}"
        if times > 1:
            yield GraphProblem(f"duplicate-{kind}", where, f"added {times} times; keep one")
        if name in {START, END}:
            yield GraphProblem("reserved-name", where, "START and END are there already; choose another name")
        elif not name or one_line(name, MAX_NAME) != name:
            yield GraphProblem(
                "bad-name", where, f"a name is one printable line of 1 to {MAX_NAME} characters"
            )


def _channel_problems(draft: Draft) -> Iterator[GraphProblem]:
    for channel in draft.channels:
        where = f"channel {channel.name!r}"
        if not isinstance(channel.reducer, Reducer):  # pyright: ignore[reportUnnecessaryIsInstance] - nobody checked it
            yield GraphProblem(
                "bad-reducer", where, f"{channel.reducer!r} is none; see Reducers, or Reducers.custom(fn)"
            )
        elif (reason := _type_trouble(channel)) is not None:
            yield GraphProblem("bad-type", where, reason)
        elif (reason := _default_trouble(channel)) is not None:
            yield GraphProblem("bad-default", where, reason)


def _type_trouble(channel: Channel) -> str | None:
    if channel.type is not None:
        try:
            msgspec.convert(None, channel.type)
        except msgspec.ValidationError:
            # None does not fit, but the type itself was understood
            return None
        except Exception as error:  # noqa: BLE001 - seam: types are foreign code
            return one_line(f"msgspec cannot check {channel.type!r}: {error}")
    return None


def _default_trouble(channel: Channel) -> str | None:
    try:
        initial_operation(channel)
    except Exception as error:  # noqa: BLE001 - seam: types are foreign code
        return one_line(str(error))
    return None


def _node_problems(draft: Draft) -> Iterator[GraphProblem]:
    if not draft.nodes:
        yield GraphProblem("no-nodes", f"graph {draft.name!r}", "nothing would run; call add_node")
    names = {node.name for node in draft.nodes}
    for node in draft.nodes:
        where = f"node {node.name!r}"
        if not callable(node.fn):
            yield GraphProblem("bad-node", where, "its function cannot be called")
        elif (reason := _timeout_trouble(node)) is not None:
            yield GraphProblem("bad-timeout", where, reason)
        if node.each is not None:
            yield from _map_problems(draft, where, node.each)
        if node.child is not None:
            yield from _child_problems(draft, where, node.child)
        if node.on_error is not None and node.on_error not in names - {node.name}:
            yield GraphProblem("unknown-node", where, f"on_error={node.on_error!r} is no other node")


def _timeout_trouble(node: NodeDraft) -> str | None:
    if node.timeout is None:
        return None
    if (reason := node.timeout.trouble()) is not None:
        return reason
    if node.blocking is False and not is_async(node.fn):
        return (
            "it has a timeout, so it waits, and blocking=False says that it never does; leave one of them out"
        )
    return None


def _map_problems(draft: Draft, where: str, each: MapSpec) -> Iterator[GraphProblem]:
    for name in (each.over, each.into):
        if name not in {channel.name for channel in draft.channels}:
            yield GraphProblem("unknown-channel", where, f"there is no channel {name!r} for its items")
    if each.limit < 1:
        yield GraphProblem("bad-map", where, f"max_concurrency is {each.limit}; give 1 or more")
    if each.on_item_error not in get_args(OnItemError):
        ways = ", ".join(get_args(OnItemError))
        yield GraphProblem("bad-map", where, f"on_item_error is {each.on_item_error!r}; it may be: {ways}")


def _child_problems(draft: Draft, where: str, child: ChildDraft) -> Iterator[GraphProblem]:
    outer = {channel.name for channel in draft.channels}
    inner = child.table.channels
    for name in (*child.inputs.values(), *child.outputs):
        if name not in outer:
            yield GraphProblem("unknown-channel", where, f"there is no channel {name!r} around its subgraph")
    for name in (*child.inputs, *child.outputs):
        if name not in inner:
            yield GraphProblem("unknown-channel", where, f"there is no channel {name!r} in its subgraph")
    if child.resume_node is not None and child.resume_node not in child.table.nodes:
        yield GraphProblem("unknown-node", where, f"there is no node {child.resume_node!r} in its subgraph")


def _join_problems(draft: Draft) -> Iterator[GraphProblem]:
    names = {node.name for node in draft.nodes}
    yield from (
        GraphProblem(
            "duplicate-join", f"join before {name!r}", f"added {times} times; name all its sources in one"
        )
        for name, times in Counter(join.target for join in draft.joins).items()
        if times > 1
    )
    for join in draft.joins:
        where = f"join before {join.target!r}"
        for name in (*join.sources, join.target):
            if name in {START, END}:
                yield GraphProblem("bad-join", where, "a join is between nodes, and not from START or to END")
            elif name not in names:
                yield GraphProblem("unknown-node", where, f"there is no node {name!r}")
        if (reason := _join_trouble(draft, join)) is not None:
            yield GraphProblem("bad-join", where, reason)


def _join_trouble(draft: Draft, join: JoinDraft) -> str | None:
    if len(set(join.sources)) < len(join.sources) or not join.sources or join.target in join.sources:
        return "its sources are one or more different nodes, and not its target"
    if join.wait not in {"reachable", "all", "any", *range(1, len(join.sources) + 1)}:
        return f"wait is {join.wait!r}; it may be reachable, all, any, or 1 to {len(join.sources)}"
    for source in join.sources:
        if (source, join.target) in draft.edges:
            return f"an edge leads from {source!r} to it too, so it would run twice; keep one of the two"
    return None


def _edge_problems(draft: Draft) -> Iterator[GraphProblem]:
    names = {node.name for node in draft.nodes}
    for source, target in draft.edges:
        where = f"edge {source!r} -> {target!r}"
        yield from _source_problems(names, where, source)
        yield from _target_problems(names, where, target)


def _route_problems(draft: Draft) -> Iterator[GraphProblem]:
    names = {node.name for node in draft.nodes}
    for route in draft.routes:
        where = f"conditional edges of {route.source!r}"
        yield from _source_problems(names, where, route.source)
        if not callable(route.decide):
            yield GraphProblem("bad-route", where, "the route cannot be called")
        elif is_async(route.decide):
            yield GraphProblem(
                "bad-route", where, "the route is async; let a node wait and write what the route needs"
            )
        targets = () if route.targets is None else route.targets.values()
        for target in (*targets, *(() if route.default is None else (route.default,))):
            yield from _target_problems(names, where, target)


def _source_problems(names: set[str], where: str, source: str) -> Iterator[GraphProblem]:
    if source == END:
        yield GraphProblem("edge-from-end", where, "nothing follows END")
    elif source != START and source not in names:
        yield GraphProblem("unknown-node", where, f"there is no node {source!r}")


def _target_problems(names: set[str], where: str, target: str) -> Iterator[GraphProblem]:
    if target == START:
        yield GraphProblem("edge-to-start", where, "nothing leads back to START; name the node to repeat")
    elif target != END and target not in names:
        yield GraphProblem("unknown-node", where, f"there is no node {target!r}")


def _shape_problems(draft: Draft) -> Iterator[GraphProblem]:
    sources = {source for source, _ in draft.edges} | {route.source for route in draft.routes}
    if START not in sources:
        yield GraphProblem(
            "no-start", f"graph {draft.name!r}", "no edge leaves START; say where a run begins"
        )
        return
    reached = _reached(draft)
    for node in draft.nodes:
        if node.name not in reached:
            reason = "no path leads to it from START; add an edge, or dynamic=True when only a goto does"
            yield GraphProblem("unreachable", f"node {node.name!r}", reason)


def _reached(draft: Draft) -> set[str]:
    dynamic = {node.name for node in draft.nodes if node.dynamic}
    return reached_from(onward_of(draft), {START, *dynamic})
