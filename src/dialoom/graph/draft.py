"""A graph as it was described, before anybody checked it."""

from collections.abc import Mapping

import msgspec

from dialoom.graph.channels import Channel
from dialoom.graph.errors import GraphProblem
from dialoom.graph.migrate import Migration
from dialoom.graph.table import Node, Router


class NodeDraft(msgspec.Struct, frozen=True):
    """The arguments of one `add_node`."""

    name: str
    fn: Node
    blocking: bool | None
    dynamic: bool


class RouteDraft(msgspec.Struct, frozen=True):
    """The arguments of one `add_conditional_edges`."""

    source: str
    decide: Router
    targets: Mapping[str, str] | None
    default: str | None


class Draft(msgspec.Struct):
    """Everything in the order in which it was added, twice what was added twice."""

    name: str
    channels: list[Channel] = []
    nodes: list[NodeDraft] = []
    edges: list[tuple[str, str]] = []
    routes: list[RouteDraft] = []
    problems: list[GraphProblem] = []
    migrations: list[Migration] = []
