"""Making a table of a draft that passed the checks."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import cast

from dialoom.graph.channels import initial_operation
from dialoom.graph.draft import Draft, JoinDraft, NodeDraft, RouteDraft
from dialoom.graph.frontier import Frontier
from dialoom.graph.items import item_node
from dialoom.graph.joins import Join
from dialoom.graph.names import END, START
from dialoom.graph.table import MAX_SENDS, Exits, NodeSpec, Route, Table


def compile_draft(draft: Draft, *, strict: bool = False, max_sends: int = MAX_SENDS) -> Table:
    """Return the table of `draft`, which has no problems. Later changes of the draft do not reach it."""
    order = {node.name: at for at, node in enumerate(draft.nodes)}
    lone = (
        {} if draft.joins else {node.name: Frontier((node.name,)) for node in draft.nodes if _is_simple(node)}
    )
    nodes = {node.name: _spec(node, order[node.name], lone.get(node.name)) for node in draft.nodes}
    channels = {channel.name: channel.prepared(strict=strict) for channel in draft.channels}
    initial = {
        name: op for name, channel in channels.items() if (op := initial_operation(channel)) is not None
    }
    return Table(
        name=draft.name,
        channels=channels,
        initial=initial,
        nodes=nodes,
        exits={name: _exits(draft, name, order, lone=lone) for name in (START, *order)},
        has_async=any(node.is_async for node in nodes.values()),
        has_maps=any(node.each is not None for node in nodes.values()),
        joins={join.target: _join(draft, join) for join in draft.joins},
        migrations=tuple(draft.migrations),
        max_sends=max_sends,
    )


def onward_of(draft: Draft) -> dict[str, set[str]]:
    """Return for each node, and START, the nodes it may lead to. A goto may lead elsewhere."""
    everything = {node.name for node in draft.nodes}
    onward: dict[str, set[str]] = {name: set() for name in (START, *everything)}
    for source, target in draft.edges:
        onward[source].add(target)
    for route in draft.routes:
        # a route without targets may answer with any node
        onward[route.source] |= everything if route.targets is None else set(route.targets.values())
        onward[route.source] |= set() if route.default is None else {route.default}
    for join in draft.joins:
        for source in join.sources:
            onward[source].add(join.target)
    for node in draft.nodes:
        onward[node.name] |= set() if node.on_error is None else {node.on_error}
    return {name: targets - {END} for name, targets in onward.items()}


def reached_from(onward: Mapping[str, Iterable[str]], starts: Iterable[str]) -> set[str]:
    """Return `starts` and all that they lead to."""
    reached = set(starts)
    open_ends = list(reached)
    while open_ends:
        fresh = set(onward.get(open_ends.pop(), ())) - reached
        reached |= fresh
        open_ends += fresh
    return reached


def _join(draft: Draft, join: JoinDraft) -> Join:
    # what only the target itself leads to comes after it, not before
    onward = {name: targets for name, targets in onward_of(draft).items() if name != join.target}
    feeds = {name: frozenset(reached_from(onward, {name})) & frozenset(join.sources) for name in onward}
    return Join(join.target, join.sources, join.wait, feeds)


def is_async(fn: Callable[..., object]) -> bool:
    """Whether calling `fn` gives a coroutine: an async function, method or object, also within partials."""
    while isinstance(fn, partial):
        fn = cast("partial[object]", fn).func
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)


def _is_simple(node: NodeDraft) -> bool:
    return node.each is None and not _is_guarded(node)


def _is_guarded(node: NodeDraft) -> bool:
    return node.retry is not None or node.timeout is not None


def _spec(node: NodeDraft, order: int, alone: Frontier | None) -> NodeSpec:
    waits = is_async(node.fn)
    return NodeSpec(
        name=node.name,
        order=order,
        fn=node.fn if node.each is None else item_node(node.fn, waits=waits),
        is_async=waits,
        blocking=not waits and node.blocking is not False,
        retry=node.retry,
        timeout=node.timeout,
        on_error=node.on_error,
        each=node.each,
        resume_node=node.child.resume_node if node.child else None,
        child=node.child.table if node.child else None,
        guarded=_is_guarded(node),
        alone=alone,
    )


def _exits(draft: Draft, name: str, order: Mapping[str, int], *, lone: Mapping[str, Frontier]) -> Exits:
    static = {target for source, target in draft.edges if source == name and target != END}
    names = tuple(sorted(static, key=order.__getitem__))
    routes = [
        Route(route.decide, _ways(route, order), route.default)
        for route in draft.routes
        if route.source == name
    ]
    if not routes:
        return Exits(names, always=_frontier(names, lone))
    if len(routes) > 1 or names:
        return Exits(names, tuple(routes))
    ways = routes[0].ways.items()
    chosen = {label: _frontier(() if target == END else (target,), lone) for label, target in ways}
    return Exits(routes=tuple(routes), chosen=chosen)


def _frontier(names: tuple[str, ...], lone: Mapping[str, Frontier]) -> Frontier:
    if len(names) != 1:
        return Frontier(names)
    (name,) = names
    return lone.get(name, Frontier(names))


def _ways(route: RouteDraft, order: Iterable[str]) -> dict[str, str]:
    named = {name: name for name in order} if route.targets is None else route.targets
    return {**named, END: END}
