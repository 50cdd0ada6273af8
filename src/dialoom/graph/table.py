"""A graph as the engine runs it: looked up, never searched, never changed."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from dialoom.graph.channels import Channel
from dialoom.graph.context import NodeContext
from dialoom.graph.frontier import Frontier, JoinCount, Send
from dialoom.graph.joins import Join
from dialoom.graph.migrate import Migration
from dialoom.graph.ops import Op
from dialoom.graph.result import NodeResult
from dialoom.graph.retry import RetryPolicy
from dialoom.graph.state import State
from dialoom.graph.timeout import Timeout

NodeOutput = Mapping[str, Any] | NodeResult | None
Node = Callable[[NodeContext], NodeOutput | Awaitable[NodeOutput]]
Router = Callable[[State], str | Send | Sequence[str | Send]]
OnItemError = Literal["fail", "collect", "skip"]
MAX_SENDS: Final = 10_000


class Route(msgspec.Struct, frozen=True):
    """A conditional edge. `ways` leads from answers of `decide` to nodes or END, `default` from others."""

    decide: Router
    ways: Mapping[str, str]
    default: str | None = None


class Exits(msgspec.Struct, frozen=True):
    """The ways out of one node: those that always follow, in the order they were added, and routes.

    Worked out ahead: where the static ones lead when there are no routes (`always`), and where each answer
    leads when one route is all there is (`chosen`).
    """

    static: tuple[str, ...] = ()
    routes: tuple[Route, ...] = ()
    always: Frontier | None = None
    chosen: Mapping[str, Frontier] = {}


class MapSpec(msgspec.Struct, frozen=True):
    """What a node is run over: the items of channel `over`, at most `limit` at once, results to `into`."""

    over: str
    into: str
    limit: int
    on_item_error: OnItemError


class NodeSpec(msgspec.Struct, frozen=True):
    """One node. `blocking` says that `fn` is plain code that may wait: not to be run on an event loop.

    `timeout` is that of each attempt. `guarded` says that there is a policy or a timeout to keep.
    `child` is the table of a subgraph, `resume_node` its node that answers to the subgraph are for. `alone`
    is the frontier at which it is all there is to run, once and as it is; None where it takes more than that.
    """

    name: str
    order: int
    fn: Node
    is_async: bool
    blocking: bool
    retry: RetryPolicy | None = None
    timeout: Timeout | None = None
    on_error: str | None = None
    each: MapSpec | None = None
    guarded: bool = False
    resume_node: str | None = None
    child: "Table | None" = None
    alone: Frontier | None = None


class Table(msgspec.Struct, frozen=True):
    """Everything about a graph that its runs share. `exits` has those of every node, and of START.

    `max_sends` is how many tasks the nodes of one superstep may send for the next.
    """

    name: str
    channels: Mapping[str, Channel]
    initial: Mapping[str, Op]
    nodes: Mapping[str, NodeSpec]
    exits: Mapping[str, Exits]
    has_async: bool
    has_maps: bool = False
    joins: Mapping[str, Join] = {}
    migrations: tuple[Migration, ...] = ()
    max_sends: int = MAX_SENDS

    def in_order(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the nodes among `names` (so not END) once each, in the order in which they were added."""
        nodes = self.nodes
        if len(names) == 1:
            return tuple(names) if names[0] in nodes else ()
        return tuple(sorted({name for name in names if name in nodes}, key=lambda name: nodes[name].order))

    def commit_order(self, node: str, item: int | None) -> tuple[int, int]:
        """Return what orders the tasks of a superstep: the node, then itself before its items."""
        return self.nodes[node].order, -1 if item is None else item

    def frontier(
        self, ready: tuple[str, ...], *, sends: tuple[Send, ...] = (), joins: tuple[JoinCount, ...] = ()
    ) -> Frontier:
        """Return that frontier: the very one of `NodeSpec.alone` when it is one, to be told by `is`."""
        if len(ready) == 1 and not sends and not joins:
            return self.nodes[ready[0]].alone or Frontier(ready)
        return Frontier(ready, sends=sends, joins=joins)
