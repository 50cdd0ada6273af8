"""A graph as the engine runs it: looked up, never searched, never changed."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from dialoom.graph.channels import Channel
from dialoom.graph.context import NodeContext
from dialoom.graph.migrate import Migration
from dialoom.graph.ops import Op
from dialoom.graph.result import NodeResult
from dialoom.graph.state import State

NodeOutput = Mapping[str, Any] | NodeResult | None
Node = Callable[[NodeContext], NodeOutput | Awaitable[NodeOutput]]
Router = Callable[[State], str | Sequence[str]]


class Route(msgspec.Struct, frozen=True):
    """A conditional edge. `ways` leads from answers of `decide` to nodes or END, `default` from others."""

    decide: Router
    ways: Mapping[str, str]
    default: str | None = None


class Exits(msgspec.Struct, frozen=True):
    """The ways out of one node: those that always follow, in the order they were added, and routes."""

    static: tuple[str, ...] = ()
    routes: tuple[Route, ...] = ()


class NodeSpec(msgspec.Struct, frozen=True):
    """One node. `blocking` says that `fn` is plain code that may wait: not to be run on an event loop."""

    name: str
    order: int
    fn: Node
    is_async: bool
    blocking: bool


class Table(msgspec.Struct, frozen=True):
    """Everything about a graph that its runs share. `exits` has those of every node, and of START."""

    name: str
    channels: Mapping[str, Channel]
    initial: Mapping[str, Op]
    nodes: Mapping[str, NodeSpec]
    exits: Mapping[str, Exits]
    has_async: bool
    migrations: tuple[Migration, ...] = ()

    def in_order(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the nodes among `names` (so not END) once each, in the order in which they were added."""
        nodes = self.nodes
        if len(names) == 1:
            return tuple(names) if names[0] in nodes else ()
        return tuple(sorted({name for name in names if name in nodes}, key=lambda name: nodes[name].order))
