"""The server put together: one table of calls over what the edge hands it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.routing import Route as PathRoute
from starlette.types import ASGIApp

import dialoom
from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.conversation.cards.builtin import DEFAULT_CARDS
from dialoom.conversation.cards.form_registry import FormRegistry
from dialoom.conversation.cards.registry import CardRegistry
from dialoom.conversation.drafts import DraftStore
from dialoom.conversation.store import ListedConversationStore
from dialoom.dialog import Center, Stores, ToolSource
from dialoom.graph import CheckpointStore, Graph
from dialoom.server.agui import Agui
from dialoom.server.agui_graphs import AguiGraphs
from dialoom.server.attached import attached_reader
from dialoom.server.background import Background
from dialoom.server.card_work import CardHandlers, Desk, Keep
from dialoom.server.card_work_knowledge import KnowledgeWork, grounds
from dialoom.server.card_work_runs import RUN_HANDLERS
from dialoom.server.cards import Cards
from dialoom.server.catalogue import Catalogue
from dialoom.server.completions import Completions, TextEmbedder
from dialoom.server.conversations import Conversations
from dialoom.server.dataset_store import DatasetStore
from dialoom.server.datasets import Datasets
from dialoom.server.document import openapi_document
from dialoom.server.files import Files, FileStore
from dialoom.server.graphs import Graphs
from dialoom.server.guard import Guard
from dialoom.server.hub import EventHub
from dialoom.server.knowledge import KnowledgeBases
from dialoom.server.knowledge_calls import KnowledgeCalls
from dialoom.server.login import Login
from dialoom.server.messages import Messages
from dialoom.server.metrics import Metrics
from dialoom.server.pictures import Pictures
from dialoom.server.plain import PlainPage
from dialoom.server.returned import file_keeper
from dialoom.server.routes import AnyRoute, serve_table
from dialoom.server.runs import Runs
from dialoom.server.settings import ServerSettings
from dialoom.server.shown import Shelf
from dialoom.server.static import PageFiles
from dialoom.server.streams import Streams
from dialoom.server.talks import Ground, Talks
from dialoom.server.tokens import Doorkeeper
from dialoom.server.watched import WatchedStore


class WorkbenchStore(ListedConversationStore, DraftStore, Protocol):
    """What conversations of a server are kept in: listed, searched, with drafts."""


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What the edge hands a server: it wires, the server serves."""

    store: WorkbenchStore
    checkpoints: CheckpointStore
    center: Callable[[Stores], Center]
    """Makes the center whose dialogs answer, over stores that tell what changes in them."""
    graphs: Mapping[str, Graph] = {}
    definitions: Mapping[str, Mapping[str, Any]] = {}
    """Graphs as data, by id: shown, and not run here."""
    cards: CardRegistry = DEFAULT_CARDS
    forms: FormRegistry = msgspec.field(default_factory=FormRegistry)
    knowledge: KnowledgeBases | None = None
    embedder: TextEmbedder | None = None
    """Makes the vectors of `/v1/embeddings`; None leaves that call out."""
    ground: Ground | None = None
    """Finds the passages that questions are answered from where a conversation has no base of its own."""
    card_handlers: CardHandlers = {}
    """Do the work of cards' actions, over those for knowledge bases and runs that are built in."""
    tool_source: ToolSource | None = None
    """Connects a tool server that people want to try."""
    mcp: ASGIApp | None = None
    """Answers at `/mcp`, where other programs find tools and documents; None leaves that path out."""


class Workbench:
    """One server's calls, events and jobs; `app` is what an ASGI server runs.

    `async with workbench.running()` is its life, as the app's lifespan is. The stores it was given stay
    the caller's to close.
    """

    def __init__(self, settings: ServerSettings, parts: Parts, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.settings = settings
        self.hub = EventHub(max_followers=settings.max_streams)
        self.doorkeeper = Doorkeeper(
            settings.token, session_seconds=settings.session_days * 86_400.0, clock=clock
        )
        self._parts = parts
        self._clock = clock
        self._background = Background()
        self._files = FileStore(
            settings.data / "files", max_file=settings.max_file, max_total=settings.max_files
        )
        self._datasets = DatasetStore(settings.data / "datasets.sqlite")
        self._shelf = Shelf(parts.store, parts.cards, parts.forms, self._running)
        self.store = WatchedStore(parts.store, self.hub, self._shelf)
        self._center = parts.center(Stores(self.store, parts.checkpoints, file_keeper(self._files)))
        if settings.approval_seconds is not None:
            self._center.limit_approvals(settings.approval_seconds)
        self._talks = Talks(
            self._center, self.store, self.hub, read_attached=attached_reader(self._files), clock=clock
        )
        keep = Keep(self._files, self._datasets, self._background)
        desk = Desk(self.store, self._shelf, self._talks, keep)
        self._talks.answer_from(grounds(parts.knowledge, desk, parts.ground))
        self._cards = Cards(self._shelf, desk, _handlers(parts))
        gauges = {
            "open_streams": lambda: self.hub.followers,
            "jobs": lambda: len(self._background),
            "runs": lambda: self._talks.runs.going,
        }
        self._metrics = Metrics(gauges, clock=clock)
        self.table = list(self._table())
        self.app = self._assemble()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Hold what goes on beside calls; at the end streams close and jobs stop."""
        async with self._background, asyncio.TaskGroup() as group:
            watching = group.create_task(self._talks.expire_overdue())
            try:
                yield
            finally:
                watching.cancel()
                self.hub.close()
                await self._talks.aclose()
        if self._parts.knowledge is not None:
            self._parts.knowledge.close()
        self._datasets.close()

    @property
    def login_url(self) -> str:
        """Return an address that signs a browser in, once."""
        return f"{self.settings.url}/login?token={self.doorkeeper.new_link()}"

    def document(self) -> dict[str, object]:
        """Return the OpenAPI document of the calls."""
        return openapi_document(self.table)

    def _table(self) -> Iterable[AnyRoute]:
        parts, settings = self._parts, self.settings
        yield from Conversations(
            self.store, parts.store, self._shelf, self._talks, cursor=lambda: self.hub.cursor,
            max_import=settings.max_import, clock=self._clock,
        ).routes()  # fmt: skip
        yield from self._cards.routes()
        yield from Runs(self._talks, self._files, self._center).routes()
        yield from Streams(self.hub, self.store).routes()
        yield from Files(self._files).routes()
        yield from Pictures(self._files).routes()
        yield from Datasets(self._datasets, self._files).routes()
        yield from Graphs(
            parts.graphs, parts.definitions, parts.checkpoints, self.store, self._talks
        ).routes()
        yield from Catalogue(
            self._center, parts.tool_source, settings.data / "settings.json",
            features={"kb": parts.knowledge is not None, "mcp": True, "graphs": True},
        ).routes()  # fmt: skip
        yield from Agui(self._talks, self.store, self._shelf, self.hub, clock=self._clock).routes()
        yield from AguiGraphs(parts.graphs, self.hub, self._background).routes()
        yield from Messages(self._center).routes()
        yield from Completions(self._center, parts.embedder, clock=self._clock).routes()
        if parts.knowledge is not None:
            yield from KnowledgeCalls(parts.knowledge, self._files, self.hub, self._background).routes()

    def _assemble(self) -> ASGIApp:
        routes: list[BaseRoute] = [
            *serve_table(self.table, self.settings.max_body),
            *Login(self.settings, self.doorkeeper).routes(),
            PathRoute("/healthz", self._health, methods=["GET"]),
            PathRoute("/metrics", self._metrics.show, methods=["GET"]),
            PathRoute("/openapi.json", self._document, methods=["GET"]),
            *([] if self._parts.mcp is None else [PathRoute("/mcp", self._parts.mcp)]),
            *PlainPage(self.store, self._shelf, self._talks, self._cards).routes(),
            *PageFiles().routes(),
        ]
        app = Starlette(routes=routes, lifespan=lambda _app: self.running())
        return self._metrics.counted(Guard(app, self.settings, self.doorkeeper, clock=self._clock))

    async def _health(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok", "version": dialoom.__version__})

    async def _document(self, _request: Request) -> Response:
        return JSONResponse(self.document())

    def _running(self, conversation_id: str) -> str | None:
        return self._talks.runs.running(conversation_id)


def _handlers(parts: Parts) -> CardHandlers:
    handlers = {**RUN_HANDLERS, **parts.card_handlers}
    return handlers if parts.knowledge is None else {**KnowledgeWork(parts.knowledge).handlers(), **handlers}
