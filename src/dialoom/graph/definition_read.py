"""From a definition to a draft: names become the functions and types they stand for."""

from collections.abc import Mapping
from math import inf
from typing import Any, NoReturn

import msgspec

from dialoom.base.errors import UsageError
from dialoom.graph.channels import Channel
from dialoom.graph.definition import ChannelEntry, MapEntry, NodeEntry, RouteEntry, parsed
from dialoom.graph.definition_types import TypeTextError, read_type
from dialoom.graph.draft import Draft, JoinDraft, NodeDraft, RouteDraft
from dialoom.graph.errors import GraphProblem
from dialoom.graph.reducers import Reducer, Reducers
from dialoom.graph.retry import RetryPolicy
from dialoom.graph.table import MapSpec, Node, Router
from dialoom.graph.timeout import Timeout

BUILT_IN: Mapping[str, Reducer] = {
    reducer.name: reducer for reducer in (Reducers.overwrite, Reducers.append, Reducers.merge)
}


class Registry(msgspec.Struct, frozen=True):
    """What the names in a definition stand for. A `sketch` answers every name, with what cannot run."""

    nodes: Mapping[str, Node] = {}
    routes: Mapping[str, Router] = {}
    reducers: Mapping[str, Reducer] = {}
    types: Mapping[str, object] = {}
    sketch: bool = False


def draft_of(definition: Mapping[str, Any], registry: Registry) -> Draft:
    """Return the draft of `definition`, with a problem in it for every name that `registry` has not.

    Raises GraphBuildError when it is no definition.
    """
    found = parsed(definition)
    draft = Draft(found.graph)
    draft.channels += [_channel(draft, entry, registry) for entry in found.channels]
    draft.nodes += [_node(draft, entry, registry) for entry in found.nodes]
    draft.edges += [(entry.source, entry.target) for entry in found.edges]
    draft.routes += [_route(draft, entry, registry) for entry in found.routes]
    draft.joins += [JoinDraft(tuple(entry.sources), entry.target, entry.wait) for entry in found.joins]
    return draft


def _channel(draft: Draft, entry: ChannelEntry, registry: Registry) -> Channel:
    where = f"channel {entry.name!r}"
    reducer = BUILT_IN.get(entry.reducer, registry.reducers.get(entry.reducer))
    if reducer is None:
        if not registry.sketch:
            _miss(draft, where, f"reducer {entry.reducer!r}", {**BUILT_IN, **registry.reducers})
        reducer = Reducers.overwrite
    form: Any = None
    if entry.type is not None and not registry.sketch:
        try:
            form = read_type(entry.type, registry.types)
        except TypeTextError as error:
            draft.problems.append(GraphProblem("bad-type", where, str(error)))
    return Channel(entry.name, reducer, form, entry.default)


def _node(draft: Draft, entry: NodeEntry, registry: Registry) -> NodeDraft:
    use = entry.name if entry.use is None else entry.use
    fn = registry.nodes.get(use)
    if fn is None:
        if not registry.sketch:
            _miss(draft, f"node {entry.name!r}", f"function {use!r} in nodes=", registry.nodes)
        fn = _stand_in
    if entry.use is not None:
        draft.uses[entry.name] = entry.use
    return NodeDraft(
        entry.name,
        fn,
        entry.blocking,
        entry.dynamic,
        retry=_policy(draft, entry),
        timeout=_timeout(entry),
        on_error=entry.on_error,
        each=_map_spec(entry.map),
    )


def _timeout(entry: NodeEntry) -> Timeout | None:
    if entry.timeout is None and entry.idle_timeout is None:
        return None
    return Timeout(
        total=inf if entry.timeout is None else entry.timeout,
        idle=inf if entry.idle_timeout is None else entry.idle_timeout,
    )


def _policy(draft: Draft, entry: NodeEntry) -> RetryPolicy | None:
    if entry.retry is None:
        return None
    try:
        return RetryPolicy(**msgspec.structs.asdict(entry.retry))
    except UsageError as error:
        draft.problems.append(GraphProblem("bad-retry", f"node {entry.name!r}", str(error)))
    return None


def _map_spec(entry: MapEntry | None) -> MapSpec | None:
    return (
        None if entry is None else MapSpec(entry.over, entry.into, entry.max_concurrency, entry.on_item_error)
    )


def _route(draft: Draft, entry: RouteEntry, registry: Registry) -> RouteDraft:
    use = entry.source if entry.use is None else entry.use
    decide = registry.routes.get(use)
    if decide is None:
        if not registry.sketch:
            where = f"conditional edges of {entry.source!r}"
            _miss(draft, where, f"function {use!r} in routes=", registry.routes)
        decide = _stand_in
    return RouteDraft(entry.source, decide, entry.targets, entry.default, entry.use)


def _miss(draft: Draft, where: str, what: str, known: Mapping[str, object]) -> None:
    names = ", ".join(sorted(known)) or "none"
    draft.problems.append(GraphProblem("unknown-name", where, f"there is no {what}; there are: {names}"))


def _stand_in(_: object) -> NoReturn:
    raise NotImplementedError("this graph was made to be drawn, and its functions are not there")
