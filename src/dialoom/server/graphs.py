"""Calls on graphs and on where their threads stood: look at a checkpoint, go on from it elsewhere."""

import asyncio
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Annotated, Any, TypeAlias

import msgspec

from dialoom.base.text import one_line
from dialoom.conversation.header import to_rfc3339
from dialoom.graph import END, START, Checkpoint, CheckpointStore, Graph
from dialoom.graph.definition import Definition, parsed
from dialoom.server.problems import not_found
from dialoom.server.routes import AnyRoute, Call, Nothing, Route

MAX_CHECKPOINTS = 500
MAX_STATE_BYTES = 1024 * 1024
MAX_CHANNEL_BYTES = 64 * 1024
_Thread = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]

Fields: TypeAlias = dict[str, Any]


class GraphName(msgspec.Struct, frozen=True):
    """A graph by the id it is served under."""

    id: str
    name: str


class GraphList(msgspec.Struct, frozen=True):
    """The graphs served here."""

    items: list[GraphName]


class GraphNode(msgspec.Struct, frozen=True):
    """A node; `kind` is node, map, start or end."""

    id: str
    kind: str


class GraphEdge(msgspec.Struct, frozen=True, omit_defaults=True):
    """A way between two nodes; `label` names a conditional one."""

    source: str
    target: str
    label: str = ""


class GraphPicture(msgspec.Struct, frozen=True):
    """What a page draws."""

    name: str
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    mermaid: str


class ThreadQuery(msgspec.Struct, frozen=True):
    """The thread a checkpoint is of; a conversation's thread has its id."""

    thread: _Thread


class HistoryQuery(msgspec.Struct, frozen=True):
    """Which thread's history; with `run`, only what that run committed."""

    thread: _Thread
    run: Annotated[str, msgspec.Meta(max_length=200)] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_CHECKPOINTS)] = 100


class CheckpointLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One committed superstep: what ran next after it, which channels it changed, who waits for an answer."""

    id: str
    thread: str
    run: str
    step: int
    at: str
    next: list[str]
    changed: list[str]
    waiting: int


class CheckpointList(msgspec.Struct, frozen=True):
    """Checkpoints, newest first."""

    items: list[CheckpointLine]


class CheckpointState(msgspec.Struct, frozen=True, rename="camel"):
    """A checkpoint with its state; the names in `cut` are of channels too large to be sent whole."""

    checkpoint: CheckpointLine
    state: Fields
    cut: list[str]


class ForkTo(msgspec.Struct, frozen=True):
    """The graph that goes on; a fork is a new thread."""

    graph: _Thread


class Forked(msgspec.Struct, frozen=True):
    """The thread that stands where the checkpoint stood."""

    thread: str
    checkpoint: str


class Graphs:
    """Serves graphs by id and the checkpoints of one store."""

    def __init__(self, graphs: Mapping[str, Graph], checkpoints: CheckpointStore) -> None:
        self._graphs = dict(graphs)
        self._checkpoints = checkpoints

    def routes(self) -> list[AnyRoute]:
        one = "/api/v1/checkpoints/{id}"
        return [
            Route("GET", "/api/v1/graphs", self.list_all, answer=GraphList, summary="List graphs"),
            Route("GET", "/api/v1/graphs/{id}", self.show, answer=GraphPicture, summary="Show a graph"),
            Route(
                "GET", "/api/v1/checkpoints", self.history, query=HistoryQuery, answer=CheckpointList,
                summary="List the checkpoints of a thread, newest first",
            ),
            Route(
                "GET", one, self.inspect, query=ThreadQuery, answer=CheckpointState,
                summary="Look at a checkpoint's state",
            ),
            Route(
                "POST", one + "/fork", self.fork, query=ThreadQuery, body=ForkTo, answer=Forked, status=201,
                summary="Begin a thread where a checkpoint stood",
            ),
        ]  # fmt: skip

    async def list_all(self, _call: Call[Nothing, Nothing]) -> GraphList:
        return GraphList([GraphName(id_, graph.name) for id_, graph in sorted(self._graphs.items())])

    async def show(self, call: Call[Nothing, Nothing]) -> GraphPicture:
        graph = self._graph(call.name("id"))
        definition = parsed(graph.to_dict())
        return GraphPicture(
            graph.name, list(_nodes(definition)), list(_edges(definition)), graph.to_mermaid()
        )

    async def history(self, call: Call[HistoryQuery, Nothing]) -> CheckpointList:
        query = call.query

        def read() -> list[CheckpointLine]:
            found = (
                each
                for each in self._checkpoints.history(query.thread)
                if not query.run or each.run_id == query.run
            )
            return [checkpoint_line(each) for each in islice(found, query.limit)]

        return CheckpointList(await asyncio.to_thread(read))

    async def inspect(self, call: Call[ThreadQuery, Nothing]) -> CheckpointState:
        checkpoint = await self._load(call.query.thread, call.name("id"))
        state, cut = await asyncio.to_thread(plain_state, checkpoint.state)
        return CheckpointState(checkpoint_line(checkpoint), state, cut)

    async def fork(self, call: Call[ThreadQuery, ForkTo]) -> Forked:
        graph = self._graph(call.body.graph)
        checkpoint = await self._load(call.query.thread, call.name("id"))
        first = await graph.fork(checkpoint)
        return Forked(first.thread_id, first.id)

    def _graph(self, graph_id: str) -> Graph:
        graph = self._graphs.get(graph_id)
        if graph is None:
            raise not_found("graph", graph_id)
        return graph

    async def _load(self, thread: str, checkpoint_id: str) -> Checkpoint:
        found = await asyncio.to_thread(self._checkpoints.load, thread, checkpoint_id)
        if found is None:
            raise not_found("checkpoint", checkpoint_id)
        return found


def checkpoint_line(checkpoint: Checkpoint) -> CheckpointLine:
    """Return what a list shows of a checkpoint."""
    return CheckpointLine(
        id=checkpoint.id,
        thread=checkpoint.thread_id,
        run=checkpoint.run_id,
        step=checkpoint.step,
        at=to_rfc3339(checkpoint.created),
        next=list(checkpoint.frontier.nodes),
        changed=list(dict.fromkeys(op.channel for op in checkpoint.ops)),
        waiting=len(checkpoint.interrupts),
    )


def plain_state(state: Mapping[str, Any]) -> tuple[Fields, list[str]]:
    """Return channels as JSON values, and the names of those cut to a text because they are too large."""
    shown: Fields = {}
    cut: list[str] = []
    total = 0
    for name, value in state.items():
        text = _json(value)
        total += len(text)
        if len(text) <= MAX_CHANNEL_BYTES and total <= MAX_STATE_BYTES:
            shown[name] = msgspec.json.decode(text)
        else:
            cut.append(name)
            shown[name] = one_line(text[:1000].decode("utf-8", "replace"), 500)
    return shown, cut


def _json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=_foreign)
    except (TypeError, ValueError, RecursionError) as error:  # a key that is no text, half a character
        return msgspec.json.encode(one_line(f"a {type(value).__name__} that is not JSON: {error}", 200))


def _foreign(value: Any) -> str:
    """Show an object of a type JSON does not know by its type alone: its repr may hold a secret."""
    return f"<{type(value).__name__}>"


def _nodes(definition: Definition) -> Iterator[GraphNode]:
    yield GraphNode(START, "start")
    for node in definition.nodes:
        yield GraphNode(node.name, "node" if node.map is None else "map")
    yield GraphNode(END, "end")


def _edges(definition: Definition) -> Iterator[GraphEdge]:
    for edge in definition.edges:
        yield GraphEdge(edge.source, edge.target)
    for route in definition.routes:
        for label, target in (route.targets or {}).items():
            yield GraphEdge(route.source, target, label)
        if route.default is not None:
            yield GraphEdge(route.source, route.default, "otherwise")
    for join in definition.joins:
        for source in join.sources:
            yield GraphEdge(source, join.target, f"join {join.wait}")
    for node in definition.nodes:
        if node.on_error is not None:
            yield GraphEdge(node.name, node.on_error, "on error")
