"""Making a table of a draft that passed the checks."""

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

from dialoom.graph.channels import initial_operation
from dialoom.graph.draft import Draft, NodeDraft, RouteDraft
from dialoom.graph.names import END, START
from dialoom.graph.table import Exits, NodeSpec, Route, Table


def compile_draft(draft: Draft) -> Table:
    """Return the table of `draft`, which has no problems. Later changes of the draft do not reach it."""
    order = {node.name: at for at, node in enumerate(draft.nodes)}
    nodes = {node.name: _spec(node, order[node.name]) for node in draft.nodes}
    channels = {channel.name: channel for channel in draft.channels}
    initial = {
        name: op for name, channel in channels.items() if (op := initial_operation(channel)) is not None
    }
    return Table(
        name=draft.name,
        channels=channels,
        initial=initial,
        nodes=nodes,
        exits={name: _exits(draft, name, order) for name in (START, *order)},
        has_async=any(node.is_async for node in nodes.values()),
        migrations=tuple(draft.migrations),
    )


def is_async(fn: Callable[..., object]) -> bool:
    """Whether calling `fn` gives a coroutine: an async function, method or object, also within partials."""
    while isinstance(fn, partial):
        fn = cast("partial[object]", fn).func
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)


def _spec(node: NodeDraft, order: int) -> NodeSpec:
    waits = is_async(node.fn)
    return NodeSpec(
        name=node.name,
        order=order,
        fn=node.fn,
        is_async=waits,
        blocking=not waits and node.blocking is not False,
    )


def _exits(draft: Draft, name: str, order: dict[str, int]) -> Exits:
    static = {target for source, target in draft.edges if source == name and target != END}
    routes = [
        Route(route.decide, _ways(route, order), route.default)
        for route in draft.routes
        if route.source == name
    ]
    return Exits(tuple(sorted(static, key=order.__getitem__)), tuple(routes))


def _ways(route: RouteDraft, order: Iterable[str]) -> dict[str, str]:
    named = {name: name for name in order} if route.targets is None else route.targets
    return {**named, END: END}
