"""Calls on graphs and on where their threads stood: look at a checkpoint, go on from it elsewhere."""

import asyncio
import base64
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, TypeAlias

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.conversation.header import to_rfc3339
from dialoom.conversation.store import ListedConversationStore
from dialoom.graph import END, START, Checkpoint, CheckpointStore, Graph, draw_definition
from dialoom.graph.definition import Definition, parsed
from dialoom.graph.state import settled
from dialoom.server.problems import not_found
from dialoom.server.routes import AnyRoute, Call, Nothing, Route
from dialoom.server.talks import Talks

MAX_CHECKPOINTS = 500
MAX_STATE_BYTES = 1024 * 1024
MAX_CHANNEL_BYTES = 64 * 1024
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


class HistoryQuery(msgspec.Struct, frozen=True):
    """How many checkpoints to list."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_CHECKPOINTS)] = 100


class CheckpointLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One committed superstep: which nodes ran, what runs next, which channels changed, how many wait.

    `step` counts the checkpoints of the thread from 1: a run that is resumed counts on.
    """

    id: str
    thread: str
    run: str
    step: int
    at: str
    nodes: list[str]
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
    """The graph that goes on in a new thread; a conversation's checkpoint needs none."""

    graph: Annotated[str, msgspec.Meta(max_length=200)] = ""


class Forked(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A conversation with what the checkpoint had said, or a thread that stands where it stood."""

    conversation_id: str = ""
    thread: str = ""


TOOL_LOOP = GraphPicture(
    "dialog",
    [
        GraphNode(START, "start"),
        GraphNode("model", "node"),
        GraphNode("tools", "node"),
        GraphNode(END, "end"),
    ],
    [
        GraphEdge(START, "model"),
        GraphEdge("model", "tools", "calls"),
        GraphEdge("tools", "model"),
        GraphEdge("model", END, "answer"),
    ],
    "flowchart TD\n    start([start]) --> model --> finish([end])\n    model -. calls .-> tools --> model",
)
"""The graph of every dialog: the model routes by what it says, which no static edge tells."""


class Graphs:
    """Serves graphs by id and the checkpoints of one store; `definitions` are shown, and not run here."""

    def __init__(
        self,
        graphs: Mapping[str, Graph],
        definitions: Mapping[str, Mapping[str, Any]],
        checkpoints: CheckpointStore,
        store: ListedConversationStore,
        talks: Talks,
    ) -> None:
        self._graphs = dict(graphs)
        self._pictures = {id_: _picture(each, draw_definition(each)) for id_, each in definitions.items()}
        self._pictures |= {id_: _picture(each.to_dict(), each.to_mermaid()) for id_, each in graphs.items()}
        self._checkpoints = checkpoints
        self._store = store
        self._talks = talks

    def routes(self) -> list[AnyRoute]:
        one, conversation = "/api/v1/checkpoints/{id}", "/api/v1/conversations/{id}"
        return [
            Route("GET", "/api/v1/graphs", self.list_all, answer=GraphList, summary="List graphs"),
            Route("GET", "/api/v1/graphs/{id}", self.show, answer=GraphPicture, summary="Show a graph"),
            Route(
                "GET", conversation + "/graph", self.show_loop, answer=GraphPicture,
                summary="Show the graph that answers in a conversation",
            ),
            Route(
                "GET", conversation + "/checkpoints", self.of_conversation, query=HistoryQuery,
                answer=CheckpointList, summary="List where a conversation's run stood, newest first",
            ),
            Route(
                "GET", "/api/v1/runs/{id}/checkpoints", self.of_run, query=HistoryQuery,
                answer=CheckpointList, summary="List where a run stood, newest first",
            ),
            Route(
                "GET", "/api/v1/threads/{thread}/checkpoints", self.of_thread, query=HistoryQuery,
                answer=CheckpointList, summary="List where a graph's thread stood, newest first",
            ),
            Route("GET", one, self.inspect, answer=CheckpointState, summary="Look at a checkpoint's state"),
            Route(
                "POST", one + "/fork", self.fork, body=ForkTo, answer=Forked, status=201,
                summary="Begin a conversation, or a thread, where a checkpoint stood",
            ),
        ]  # fmt: skip

    async def list_all(self, _call: Call[Nothing, Nothing]) -> GraphList:
        return GraphList([GraphName(id_, each.name) for id_, each in sorted(self._pictures.items())])

    async def show(self, call: Call[Nothing, Nothing]) -> GraphPicture:
        picture = self._pictures.get(call.name("id"))
        if picture is None:
            raise not_found("graph", call.name("id"))
        return picture

    async def show_loop(self, call: Call[Nothing, Nothing]) -> GraphPicture:
        await self._store.header(call.id())
        return TOOL_LOOP

    async def of_conversation(self, call: Call[HistoryQuery, Nothing]) -> CheckpointList:
        await self._store.header(call.id())
        return await self._list(call.id(), call.query.limit)

    async def of_run(self, call: Call[HistoryQuery, Nothing]) -> CheckpointList:
        thread = self._talks.runs.find(call.id()).conversation_id
        return await self._list(thread, call.query.limit)

    async def of_thread(self, call: Call[HistoryQuery, Nothing]) -> CheckpointList:
        return await self._list(call.name("thread"), call.query.limit)

    async def inspect(self, call: Call[Nothing, Nothing]) -> CheckpointState:
        checkpoint = await self._load(call.name("id"))
        state, cut = await asyncio.to_thread(plain_state, settled(checkpoint.state))
        return CheckpointState(checkpoint_line(checkpoint, ()), state, cut)

    async def fork(self, call: Call[Nothing, ForkTo]) -> Forked:
        checkpoint = await self._load(call.name("id"))
        if call.body.graph:
            first = await self._graph(call.body.graph).fork(checkpoint)
            return Forked(thread=first.thread_id)
        if "seen" not in checkpoint.state or "turn" not in checkpoint.state:
            raise UsageError("this checkpoint is of no conversation; name the graph that goes on from it")
        return Forked(conversation_id=await self._talks.fork(checkpoint))

    async def _list(self, thread: str, limit: int) -> CheckpointList:
        def read() -> list[Checkpoint]:
            return list(islice(self._checkpoints.history(thread), limit))

        found = await asyncio.to_thread(read)
        ran = {each.id: each.frontier.nodes for each in found}
        return CheckpointList([checkpoint_line(each, ran.get(each.parent_id or "", ())) for each in found])

    def _graph(self, graph_id: str) -> Graph:
        graph = self._graphs.get(graph_id)
        if graph is None:
            raise not_found("graph", graph_id)
        return graph

    async def _load(self, name: str) -> Checkpoint:
        try:
            thread, checkpoint_id = msgspec.json.decode(base64.urlsafe_b64decode(name), type=tuple[str, str])
        except (ValueError, msgspec.DecodeError):
            raise not_found("checkpoint", name) from None
        found = await asyncio.to_thread(self._checkpoints.load, thread, checkpoint_id)
        if found is None:
            raise not_found("checkpoint", name)
        return found


def _picture(definition: Mapping[str, Any], mermaid: str) -> GraphPicture:
    found = parsed(definition)
    return GraphPicture(found.graph, list(_nodes(found)), list(_edges(found)), mermaid)


def checkpoint_line(checkpoint: Checkpoint, ran: Sequence[str]) -> CheckpointLine:
    """Return what a list shows of a checkpoint; `ran` are the nodes whose results it has."""
    return CheckpointLine(
        id=checkpoint_name(checkpoint.thread_id, checkpoint.id),
        thread=checkpoint.thread_id,
        run=checkpoint.run_id,
        step=checkpoint.version,
        at=to_rfc3339(checkpoint.created),
        nodes=list(ran),
        next=list(checkpoint.frontier.nodes),
        changed=list(dict.fromkeys(op.channel for op in checkpoint.ops)),
        waiting=len(checkpoint.interrupts),
    )


def checkpoint_name(thread: str, checkpoint_id: str) -> str:
    """Return what a checkpoint is called over HTTP: its thread and its id in one word."""
    return base64.urlsafe_b64encode(msgspec.json.encode((thread, checkpoint_id))).decode()


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
