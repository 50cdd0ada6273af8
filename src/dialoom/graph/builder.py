"""Describing a graph, then building it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import UsageError
from dialoom.base.events import Observer
from dialoom.base.text import one_line
from dialoom.graph.channels import UNSET, Channel
from dialoom.graph.checkpoint import CheckpointStore
from dialoom.graph.compile_draft import compile_draft
from dialoom.graph.context import NodeContext
from dialoom.graph.draft import ChildDraft, Draft, JoinDraft, NodeDraft, RouteDraft
from dialoom.graph.errors import GraphBuildError, GraphProblem
from dialoom.graph.graph import Graph
from dialoom.graph.joins import Wait
from dialoom.graph.lint import problems_of
from dialoom.graph.merges import warnings_of
from dialoom.graph.migrate import Migration, MoveState
from dialoom.graph.reducers import Reducer, Reducers
from dialoom.graph.retry import RetryPolicy
from dialoom.graph.setup import Setup
from dialoom.graph.subgraph import SubgraphConfig
from dialoom.graph.table import MAX_SENDS, MapSpec, Node, OnItemError, Router
from dialoom.graph.timeout import Timeout, timeout_of

ALL_CHANNELS = SubgraphConfig()

NOTHING: Mapping[str, Any] = {}


class GraphBuilder:
    """Collects channels, nodes and edges; `build` checks them all and makes a graph of them.

    `state`, when given, is a TypedDict, dataclass, msgspec Struct or pydantic model whose fields become
    channels: overwritten ones, or as in `Annotated[list[str], Reducers.append]`; the types of the fields are
    checked at every write. Nothing here raises before `build`, so that it can name all problems at once.
    """

    def __init__(self, name: str, state: type | None = None) -> None:
        self._draft = Draft(name)
        if state is not None:
            self._add_schema(state)

    @classmethod
    def from_dict(
        cls,
        definition: Mapping[str, Any],
        *,
        nodes: Mapping[str, Node],
        routes: Mapping[str, Router] = NOTHING,
        reducers: Mapping[str, Reducer] = NOTHING,
        types: Mapping[str, object] = NOTHING,
    ) -> "GraphBuilder":
        """Return a builder for what `Graph.to_dict`, or a person, wrote; open to more of everything.

        The names it uses for functions, reducers and types are looked up in the other arguments; one that is
        missing there is a problem of `build`. Raises GraphBuildError when `definition` is not one.
        """
        from dialoom.graph.definition_read import Registry, draft_of

        draft = draft_of(definition, Registry(nodes, routes, reducers, types))
        builder = cls(draft.name)
        builder._draft = draft
        return builder

    def add_channel(
        self,
        name: str,
        reducer: Reducer = Reducers.overwrite,
        *,
        type: object | None = None,  # noqa: A002 - the word every reader expects here
        default: object = UNSET,
    ) -> None:
        """Add a named cell of the state.

        `type` is the type of its whole value, as in `list[str]`: anything msgspec can check. `default` is
        what a new thread holds; append and merge channels begin empty, others without a value.
        """
        self._draft.channels.append(Channel(name, reducer, type, default))

    def add_node(
        self,
        name: str,
        fn: Node,
        *,
        blocking: bool | None = None,
        dynamic: bool = False,
        retry: RetryPolicy | None = None,
        timeout: float | Timeout | None = None,
        on_error: str | None = None,
    ) -> None:
        """Add a node: a plain or async function of a `NodeContext` that returns writes, a NodeResult or None.

        Nodes of one superstep commit in the order in which they are added. A plain `fn` is kept off event
        loops, on a worker thread, unless `blocking=False` says that it never waits. `dynamic` marks a node
        that only a goto or a Send leads to.

        A failed attempt is tried again as `retry` says. `timeout` is for each attempt, in seconds or as a
        `Timeout`: then the run goes on without it, also when a plain `fn` still runs. When all attempts
        failed, `on_error` names the node that runs instead of what follows, with the failure as `ctx.input`;
        without it the run ends.
        """
        self._draft.nodes.append(
            NodeDraft(
                name, fn, blocking, dynamic, retry=retry, timeout=timeout_of(timeout), on_error=on_error
            )
        )

    def add_edge(self, source: str, target: str) -> None:
        """Have `target` follow `source`; START and END are a source and a target too."""
        self._draft.edges.append((source, target))

    def add_map(
        self,
        name: str,
        node: Callable[[NodeContext], Any],
        *,
        over: str,
        into: str,
        max_concurrency: int = 32,
        on_item_error: OnItemError = "fail",
        retry: RetryPolicy | None = None,
    ) -> None:
        """Add a node that runs `node` once for each item of channel `over` and writes the results to `into`.

        `node` finds its item as `ctx.input` and returns any value; results are in the order of the items.
        Plain or async, at most `max_concurrency` of them run at once. An item that fails, with all attempts
        of `retry`, fails the map (`fail`; the others are kept and do not run again on resume), leaves
        `{"item", "error", "attempts"}` in its place (`collect`), or is left out (`skip`).
        """
        each = MapSpec(over, into, max_concurrency, on_item_error)
        self._draft.nodes.append(
            NodeDraft(name, cast("Node", node), blocking=None, dynamic=False, retry=retry, each=each)
        )

    def add_subgraph(
        self,
        name: str,
        graph: Graph,
        config: SubgraphConfig = ALL_CHANNELS,
        *,
        retry: RetryPolicy | None = None,
        timeout: float | Timeout | None = None,
        on_error: str | None = None,
    ) -> None:
        """Add a built graph as one node; `config` says what passes between the two.

        It runs under this graph's thread, store, observers and stop requests; its own store and observers
        are not used. Each of its supersteps is a checkpoint, so it goes on where it stood. What a node of it
        asks is asked by the whole; where it fails, the node fails.
        """
        inner = graph.as_node(config)
        child = ChildDraft(inner.table, config.inputs, config.outputs, config.resume_node)
        self._draft.nodes.append(
            NodeDraft(
                name,
                inner.node,
                blocking=None,
                dynamic=False,
                retry=retry,
                timeout=timeout_of(timeout),
                on_error=on_error,
                child=child,
            )
        )

    def add_join(self, sources: Sequence[str], target: str, wait: Wait = "reachable") -> None:
        """Have `target` run once after several `sources`, whenever each of them finishes.

        It waits for all sources to which a path still leads (`reachable`, so a branch that was not taken is
        not waited for), for `all` of them, for `any` one, or for that many. When those can no longer come,
        the run ends with stop_reason error. A goto away from a source counts as not coming.
        """
        self._draft.joins.append(JoinDraft(tuple(sources), target, wait))

    def add_conditional_edges(
        self,
        source: str,
        route: Router,
        targets: Mapping[str, str] | None = None,
        *,
        default: str | None = None,
    ) -> None:
        """After `source`, call `route(state)` and follow what it returns: names, Sends, several, or END.

        With `targets` the names are its keys; a name it does not have leads to `default`, or ends the run
        with stop_reason error. `route` sees the state with the writes of the superstep and must not wait.
        """
        self._draft.routes.append(RouteDraft(source, route, targets, default))

    def migrate(
        self,
        move: MoveState | None = None,
        *,
        from_: int,
        to: int,
        nodes: Mapping[str, str] | None = None,
    ) -> None:
        """Say how a thread with state of version `from_` comes to `to`: this graph's version, or on its way.

        `move` takes the channels as they were, as a dict, and returns them as they are to be; `nodes` maps
        old names of nodes to new ones. A graph without migrations has state of version 1.
        """
        self._draft.migrations.append(Migration(from_, to, move, {} if nodes is None else dict(nodes)))

    def build(
        self,
        store: CheckpointStore | None = None,
        observers: Sequence[Observer] = (),
        *,
        clock: Clock = SYSTEM_CLOCK,
        chance: Callable[[], float] | None = None,
        strict: bool = False,
        max_sends: int = MAX_SENDS,
    ) -> Graph:
        """Return the graph. Raises GraphBuildError with every problem found.

        `store` keeps a checkpoint of every superstep; `observers` hear every event of every run. `chance`
        returns numbers from 0 to 1, for jitter; the default is `random.random`. With `strict`, for tests, a
        write is refused when something in it can change in place. `max_sends` bounds what the nodes of one
        superstep send.
        """
        if store is not None and (isinstance(store, type) or not callable(getattr(store, "save", None))):
            told = one_line(repr(store), 60)
            raise UsageError(f"{told} is no store; give one, such as SqliteCheckpointStore('store.db')")
        if max_sends < 1:
            raise UsageError(f"max_sends is {max_sends}; give 1 or more")
        problems = problems_of(self._draft)
        if problems:
            raise GraphBuildError(self._draft.name, problems)
        warnings = warnings_of(self._draft)
        if warnings:
            _log(self._draft.name, warnings)
        draft = self._draft.copy()
        setup = Setup(
            compile_draft(draft, strict=strict, max_sends=max_sends),
            store,
            observers,
            clock=clock,
            chance=chance,
            draft=draft,
        )
        return Graph(setup, warnings)

    def _add_schema(self, state: type) -> None:
        from dialoom.graph.schema import channels_of

        try:
            self._draft.channels += channels_of(state)
        except Exception as error:  # noqa: BLE001 - seam: resolving annotations runs foreign code
            reason = one_line(f"cannot make channels of it: {error}")
            self._draft.problems.append(GraphProblem("bad-state", f"state {state!r}", reason))


def _log(graph: str, warnings: Sequence[GraphProblem]) -> None:
    import logging  # only a graph that has any pays for it

    for warning in warnings:
        logging.getLogger("dialoom.graph").warning("graph %r: %s", graph, warning)
