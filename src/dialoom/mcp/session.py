"""What a client keeps about its server: the connection, what it announces, and who answers its questions."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.mcp.asked import Asker
from dialoom.mcp.backoff import Backoff
from dialoom.mcp.catalog import Skipped, all_pages
from dialoom.mcp.changes import KINDS, ListChanges, ListKind
from dialoom.mcp.config import MCPServerConfig
from dialoom.mcp.config_fields import Transport
from dialoom.mcp.connection import Connection, ConnectionState, Live, Route
from dialoom.mcp.errors import McpError
from dialoom.mcp.expand import expand
from dialoom.mcp.inputs import Elicit, Fields, OnNotice
from dialoom.mcp.options import MCPOptions
from dialoom.mcp.patience import Patience
from dialoom.mcp.subscriptions import Wanted
from dialoom.mcp.transport import LineTransport

_log = logging.getLogger("dialoom.mcp")

T = TypeVar("T")


class RouteParts(msgspec.Struct, frozen=True, kw_only=True):
    """What the way to a server is made from. `callbacks` go to the SDK; `on_gap` notes missed notices."""

    config: MCPServerConfig
    options: MCPOptions
    callbacks: dict[str, Any]
    on_gap: Callable[[], None]


MakeRoute = Callable[[RouteParts], Route]

_LISTS: Final[Mapping[str, tuple[ListKind, str]]] = {
    "tools": ("tools", "name"),
    "resources": ("resources", "uri"),
    "resourceTemplates": ("resources", "uri_template"),
    "prompts": ("prompts", "name"),
}
_CHANGED: Final[Mapping[str, ListKind]] = {f"notifications/{kind}/list_changed": kind for kind in KINDS}


class ServerSession:
    """One server and its connection, over however many connections that takes."""

    def __init__(self, config: MCPServerConfig, options: MCPOptions, make_route: MakeRoute) -> None:
        self.config = config
        self.changes = ListChanges(options.clock)
        self.wanted = Wanted()
        self.on_notice: OnNotice | None = None
        self.skipped: dict[str, tuple[Skipped, ...]] = {}
        self._options = options
        self._make_route = make_route
        self._asker = Asker(options.answers.elicit)
        self._been_ready = False
        self.connection = Connection(
            self._route,
            self,
            name=config.name,
            timeouts=config.timeouts,
            legacy=options.era == "legacy",
            rng=options.rng,
        )

    @property
    def verbs(self):
        """The requests of the protocol; loading them takes long, so that is done when the first is sent."""
        from dialoom.mcp.sdk import verbs

        return verbs

    async def ask(self, send: Callable[[Live, Patience], Awaitable[T]], *, elicit: Elicit | None = None) -> T:
        """Return what `send` gets over the live connection; questions on the way go to `elicit`."""
        with self._asker.call(elicit) as call:

            async def sent(live: Live, patience: Patience) -> T:
                call.patience = patience
                return await send(live, patience)

            return await self.connection.request(sent, bounds=self.config.timeouts)

    async def list_all(self, kind: str) -> tuple[Any, ...]:
        """Return all items of one list; empty when the server has no such list."""
        return await self.ask(lambda live, patience: self.list_over(live, patience, kind))

    async def list_over(self, live: Live, patience: Patience, kind: str) -> tuple[Any, ...]:
        """Return all items of one list over a connection that is at hand."""
        ability, key = _LISTS[kind]
        if getattr(live.client.server_capabilities, ability) is None:
            return ()

        async def page(cursor: str | None) -> tuple[Sequence[Any], str | None]:
            patience.alive()
            try:
                return await self.verbs.list_page(live, kind, cursor)
            except self.verbs.MCPError as error:
                if cursor is None and self.verbs.is_unknown_method(error):
                    return (), None  # many that have resources have no templates of them
                raise

        found, repeated = await all_pages(page, server=self.config.name, key=attrgetter(key))
        dropped = (each for each in live.link.repair.dropped if each.kind == kind)
        self.skipped[kind] = (
            *dropped,
            *(Skipped(kind, one_line(getattr(each, key), 128), "comes twice") for each in repeated),
        )
        return found

    async def subscribe(self, uri: str) -> None:
        """Be told of changes of a resource, now and after every reconnection. Raises `McpError`."""
        if not self.verbs.is_modern(await self.connection.live()):
            await self.ask(lambda live, _: self.verbs.subscribe(live, uri))
            self.wanted.add(uri)
            return
        self.wanted.add(uri)
        try:
            await self.ask(lambda _, __: self._granted(uri))
        except McpError:
            self.wanted.remove(uri)
            raise

    async def unsubscribe(self, uri: str) -> None:
        """Be told no more of them."""
        live = await self.connection.live()
        self.wanted.remove(uri)
        if not self.verbs.is_modern(live):
            await self.ask(lambda live, _: self.verbs.unsubscribe(live, uri))

    def on_state(self, state: ConnectionState, error: McpError | None) -> None:
        if self._options.on_state is None:
            return
        try:
            self._options.on_state(self.config.name, state, error)
        except Exception:  # noqa: BLE001 - seam: foreign code listens here
            _log.exception("a listener to states failed", extra={"server": self.config.name})

    async def while_ready(self, live: Live) -> None:
        from dialoom.mcp.sdk.listening import keep_told

        if self._been_ready:
            self.changes.mark(*KINDS)  # nobody told of what happened meanwhile
        self._been_ready = True
        timeouts = self.config.timeouts
        backoff = Backoff(timeouts.reconnect, timeouts.max_reconnect, rng=self._options.rng)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.changes.tell())
            group.create_task(keep_told(live, self.wanted, self.changes, backoff=backoff))

    async def _granted(self, uri: str) -> None:
        refusal = await self.wanted.answer(uri)
        if refusal is not None:
            raise McpError(
                f"mcp server {self.config.name!r} will not tell of {one_line(uri, 200)!r}: {refusal}",
                server=self.config.name,
                kind="rpc",
            )

    def _noticed(self, method: str, params: Fields) -> None:
        kind = _CHANGED.get(method)
        if kind is not None:
            self.changes.mark(kind)
        if self.on_notice is not None:
            self.on_notice(method, params)

    def _route(self) -> Route:
        from dialoom.mcp.sdk.callbacks import client_options

        made = client_options(
            self.config.name, self._options.answers, elicit=self._asker.elicit, on_notice=self._noticed
        )
        return self._make_route(
            RouteParts(
                config=self.config,
                options=self._options,
                callbacks=made,
                on_gap=lambda: self.changes.mark(*KINDS),
            )
        )


def route_by_config(parts: RouteParts) -> Route:
    """Return the way that the config describes, its variables expanded. Raises `UsageError`."""
    from dialoom.mcp.sdk.routes import HttpRoute, StdioRoute

    if not parts.config.enabled:
        raise UsageError("it is disabled; enable it in its config")
    config = expand(parts.config, parts.options.variables)
    if problems := config.problems():
        raise UsageError("; ".join(problems))
    if config.transport is Transport.STDIO:
        own = os.environ if parts.options.environment is None else parts.options.environment
        return StdioRoute(config, parts.callbacks, environment=own)
    return HttpRoute(config, parts.callbacks, parts.options, on_gap=parts.on_gap)


def route_of_lines(make: Callable[[], LineTransport]) -> MakeRoute:
    """Return what leads to transports of the program's own."""

    def make_route(parts: RouteParts) -> Route:
        from dialoom.mcp.sdk.routes import GivenRoute
        from dialoom.mcp.sdk.streams import LineStreams

        return GivenRoute(lambda link: LineStreams(make(), link), parts.callbacks)

    return make_route


def route_in_process(server: object) -> MakeRoute:
    """Return what leads to a server object of the SDK."""

    def make_route(parts: RouteParts) -> Route:
        from dialoom.mcp.sdk.routes import GivenRoute

        return GivenRoute(lambda _: server, parts.callbacks)

    return make_route
