"""A graph as it was described, before anybody checked it."""

from collections.abc import Mapping, Sequence

import msgspec

from dialoom.graph.channels import Channel
from dialoom.graph.errors import GraphProblem
from dialoom.graph.joins import Wait
from dialoom.graph.migrate import Migration
from dialoom.graph.retry import RetryPolicy
from dialoom.graph.table import MapSpec, Node, Router, Table
from dialoom.graph.timeout import Timeout


class ChildDraft(msgspec.Struct, frozen=True):
    """The table of a subgraph, and what passes between it and the graph around it."""

    table: Table
    inputs: Mapping[str, str]
    outputs: Sequence[str]
    resume_node: str | None


class NodeDraft(msgspec.Struct, frozen=True):
    """The arguments of one `add_node`, `add_map` or `add_subgraph`."""

    name: str
    fn: Node
    blocking: bool | None
    dynamic: bool
    retry: RetryPolicy | None = None
    timeout: Timeout | None = None
    on_error: str | None = None
    each: MapSpec | None = None
    child: ChildDraft | None = None


class JoinDraft(msgspec.Struct, frozen=True):
    """The arguments of one `add_join`."""

    sources: tuple[str, ...]
    target: str
    wait: Wait


class RouteDraft(msgspec.Struct, frozen=True):
    """The arguments of one `add_conditional_edges`."""

    source: str
    decide: Router
    targets: Mapping[str, str] | None
    default: str | None
    use: str | None = None


class Draft(msgspec.Struct):
    """Everything in the order in which it was added, twice what was added twice.

    `uses`, and `use` of a route, are what a definition calls a function that goes by another name.
    """

    name: str
    channels: list[Channel] = []
    nodes: list[NodeDraft] = []
    edges: list[tuple[str, str]] = []
    routes: list[RouteDraft] = []
    joins: list[JoinDraft] = []
    problems: list[GraphProblem] = []
    migrations: list[Migration] = []
    uses: dict[str, str] = {}

    def copy(self) -> "Draft":
        """Return one that later additions to this do not reach."""
        parts = {part: getattr(self, part).copy() for part in self.__struct_fields__ if part != "name"}
        return msgspec.structs.replace(self, **parts)
