"""A graph as data: what JSON or YAML can hold of it. Functions, and types of one's own, go by name."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from dialoom.base.text import one_line
from dialoom.graph.channels import UNSET
from dialoom.graph.errors import GraphBuildError, GraphProblem
from dialoom.graph.joins import Wait
from dialoom.graph.table import OnItemError

FORMAT: Final = 1
MAX_ENTRIES: Final = 10_000


class ChannelEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One channel. `type` is spelled as in Python: "list[str]", "dict[str, int] | None"."""

    name: str
    reducer: str = "overwrite"
    type: str | None = None
    default: Any = UNSET


class RetryEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A `RetryPolicy`, as far as it is not code."""

    attempts: int = 3
    delay: float = 0.5
    backoff: Literal["linear", "exponential"] = "exponential"
    jitter: float = 0.0
    max_delay: float = 30.0


class MapEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What makes a node run once for each item of channel `over`, as `add_map` does."""

    over: str
    into: str
    max_concurrency: int = 32
    on_item_error: OnItemError = "fail"


class NodeEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One node. `use` is what the registry calls its function, when that is not the node's own name."""

    name: str
    use: str | None = None
    blocking: bool | None = None
    dynamic: bool = False
    retry: RetryEntry | None = None
    timeout: float | None = None
    idle_timeout: float | None = None
    on_error: str | None = None
    map: MapEntry | None = None


class EdgeEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`to` follows `from`; `__start__` and `__end__` are where runs begin and paths end."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")


class RouteEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Conditional edges. `use` is what the registry calls the route, when that is not the name of `from`."""

    source: str = msgspec.field(name="from")
    use: str | None = None
    targets: dict[str, str] | None = msgspec.field(name="to", default=None)
    default: str | None = None


class JoinEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`to` runs once after several nodes; `wait` is as in `add_join`."""

    sources: list[str] = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    wait: Wait = "reachable"


class Definition(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A whole graph. Lists, because nodes commit in the order in which they stand here."""

    format: int
    graph: str
    channels: list[ChannelEntry] = []
    nodes: list[NodeEntry] = []
    edges: list[EdgeEntry] = []
    routes: list[RouteEntry] = []
    joins: list[JoinEntry] = []


def parsed(definition: Mapping[str, Any]) -> Definition:
    """Return `definition`, which may come from anywhere, as what it says.

    Raises GraphBuildError, naming the place in it, for anything it should not hold.
    """
    try:
        found = msgspec.convert(definition, Definition)
    except (msgspec.ValidationError, RecursionError) as error:
        reason, _, where = one_line(str(error)).partition(" - at ")
        raise _refused(where.strip("`") or "$", f"{reason}; mend it") from error
    if found.format != FORMAT:
        raise _refused("$.format", f"it is {found.format} and this version reads {FORMAT}; update dialoom")
    for name in ("channels", "nodes", "edges", "routes", "joins"):
        if (count := len(getattr(found, name))) > MAX_ENTRIES:
            raise _refused(f"$.{name}", f"{count} entries are more than {MAX_ENTRIES}; divide the graph")
    return found


def _refused(where: str, reason: str) -> GraphBuildError:
    return GraphBuildError("definition", (GraphProblem("bad-definition", where, reason),))
