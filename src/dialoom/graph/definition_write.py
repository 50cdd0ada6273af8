"""From a draft to a definition."""

from collections import Counter
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, cast

import msgspec

from dialoom.base.errors import UsageError
from dialoom.graph.channels import Channel, Unset
from dialoom.graph.definition import (
    FORMAT,
    ChannelEntry,
    Definition,
    EdgeEntry,
    JoinEntry,
    MapEntry,
    NodeEntry,
    RetryEntry,
    RouteEntry,
)
from dialoom.graph.definition_read import BUILT_IN
from dialoom.graph.definition_types import TypeTextError, write_type
from dialoom.graph.draft import Draft, NodeDraft, RouteDraft
from dialoom.graph.retry import RetryPolicy
from dialoom.graph.table import MapSpec


def definition_of(draft: Draft, types: Mapping[str, object]) -> dict[str, Any]:
    """Return `draft`, which has no problems, as JSON values; `types` names those that have no text.

    Raises UsageError, naming the channel, for what JSON cannot hold.
    """
    _check_reducers(draft.channels)
    definition = Definition(
        format=FORMAT,
        graph=draft.name,
        channels=[_channel(channel, types) for channel in draft.channels],
        nodes=[_node(draft, node) for node in draft.nodes],
        edges=[EdgeEntry(source=source, target=target) for source, target in draft.edges],
        routes=list(_routes(draft.routes)),
        joins=[
            JoinEntry(sources=list(join.sources), target=join.target, wait=join.wait) for join in draft.joins
        ],
    )
    return msgspec.to_builtins(definition)


def _channel(channel: Channel, types: Mapping[str, object]) -> ChannelEntry:
    try:
        text = None if channel.type is None else write_type(channel.type, types)
        if not isinstance(channel.default, Unset):
            _check_plain(channel.default)
    except TypeTextError as error:
        raise UsageError(f"channel {channel.name!r} cannot be written: {error}") from error
    return ChannelEntry(name=channel.name, reducer=channel.reducer.name, type=text, default=channel.default)


def _node(draft: Draft, node: NodeDraft) -> NodeEntry:
    return NodeEntry(
        name=node.name,
        use=draft.uses.get(node.name),
        blocking=node.blocking,
        dynamic=node.dynamic,
        retry=None if node.retry is None else _policy(node.name, node.retry),
        timeout=_seconds(node.timeout and node.timeout.total),
        idle_timeout=_seconds(node.timeout and node.timeout.idle),
        on_error=node.on_error,
        map=None if node.each is None else _map(node.each),
    )


def _seconds(limit: float | None) -> float | None:
    return None if limit == inf else limit


def _policy(node: str, policy: RetryPolicy) -> RetryEntry:
    if policy.retry_on is not None:
        raise UsageError(
            f"node {node!r} cannot be written: retry_on of its retry policy is code; leave it out, or raise"
            " only what is worth another try"
        )
    usual = RetryEntry()
    chosen = {name: getattr(policy, name) for name in usual.__struct_fields__}
    return RetryEntry(**{name: value for name, value in chosen.items() if value != getattr(usual, name)})


def _map(each: MapSpec) -> MapEntry:
    return MapEntry(
        over=each.over, into=each.into, max_concurrency=each.limit, on_item_error=each.on_item_error
    )


def _check_reducers(channels: list[Channel]) -> None:
    """Raise UsageError when one name would stand for two reducers."""
    named = dict(BUILT_IN)
    for channel in channels:
        reducer = channel.reducer
        if named.setdefault(reducer.name, reducer) != reducer:
            raise UsageError(
                f"channel {channel.name!r} cannot be written: another reducer is called {reducer.name!r} too;"
                " give it a name with Reducers.custom(fn, name=...)"
            )


def _routes(routes: list[RouteDraft]) -> Iterator[RouteEntry]:
    """Yield the routes; a second one of a source has a number in its name, when it has no name of its own."""
    seen: Counter[str] = Counter()
    for route in routes:
        seen[route.source] += 1
        number = seen[route.source]
        use = f"{route.source} {number}" if route.use is None and number > 1 else route.use
        targets = None if route.targets is None else dict(route.targets)
        yield RouteEntry(source=route.source, use=use, targets=targets, default=route.default)


def _check_plain(value: object) -> None:
    """Raise TypeTextError unless `value`, which is not deep or it would be a problem, is JSON as it is."""
    if value is None or isinstance(value, str | bool | int):
        return
    if isinstance(value, float) and value - value == 0:
        return
    if isinstance(value, list):
        for item in cast("list[object]", value):
            _check_plain(item)
    elif isinstance(value, dict):
        for key, item in cast("dict[object, object]", value).items():
            if not isinstance(key, str):
                raise TypeTextError(f"its default has the key {key!r}, and keys in JSON are text")
            _check_plain(item)
    else:
        raise TypeTextError(f"its default holds {value!r}, which JSON cannot say")
