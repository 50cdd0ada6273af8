"""Changes of what is served, told to each client in the way of its era."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import mcp_types as types
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.subscriptions import ServerEvent

from dialoom.mcp.server.beside import beside
from dialoom.mcp.server.news import Change, ListChanged, News

MAX_UNTOLD: Final = 10_000
"""So many different changes may wait to be told; what comes on top is dropped."""
MAX_CLIENTS: Final = 1000
"""Older clients that are told; of more than that those who came first are not."""
MAX_URIS: Final = 250
"""Resources that one older client may follow."""
SEND_SECONDS: Final = 5.0
"""A client that takes nothing for so long is told nothing more."""

_LISTS: Final[dict[str, tuple[ServerEvent, types.ServerNotification]]] = {
    "tools": (ToolsListChanged(), types.ToolListChangedNotification()),
    "resources": (ResourcesListChanged(), types.ResourceListChangedNotification()),
    "prompts": (PromptsListChanged(), types.PromptListChangedNotification()),
}


class _Older:
    """A client of a session: it hears of every list, and of the resources that it follows."""

    def __init__(self, session: ServerSession) -> None:
        self.session = session
        self.uris: set[str] = set()


class Followers:
    """The clients of one running server. Newer ones listen by a request of theirs; older ones are sent to."""

    def __init__(self, send_seconds: float = SEND_SECONDS) -> None:
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._older: dict[int, _Older] = {}
        self._untold: dict[Change, None] = {}
        self._news = asyncio.Event()
        self._send_seconds = send_seconds

    @asynccontextmanager
    async def following(self, news: News) -> AsyncGenerator["Followers"]:
        """Pass changes on while inside."""
        end = news.listen(self._note)
        try:
            async with beside(self._tell()):
                yield self
        finally:
            end()
            self.listen.close()

    def welcome(self, session: ServerSession) -> None:
        """Tell a client of changes from now on."""
        self._known(session)

    def follow(self, session: ServerSession, uri: str) -> bool:
        """Tell a client when a resource changes; returns False when it follows too many."""
        uris = self._known(session).uris
        if len(uris) >= MAX_URIS and uri not in uris:
            return False
        uris.add(uri)
        return True

    def forget(self, session: ServerSession, uri: str) -> None:
        """Tell a client no more of a resource."""
        self._known(session).uris.discard(uri)

    def _known(self, session: ServerSession) -> _Older:
        # each request has a session object of its own; what its client said of itself is there once
        key = id(session.client_params)
        if key not in self._older:
            if len(self._older) >= MAX_CLIENTS:
                del self._older[next(iter(self._older))]
            self._older[key] = _Older(session)
        return self._older[key]

    def _note(self, change: Change) -> None:
        if len(self._untold) < MAX_UNTOLD:
            self._untold[change] = None
            self._news.set()

    async def _tell(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            untold, self._untold = self._untold, {}
            for change in untold:
                await self._tell_of(change)

    async def _tell_of(self, change: Change) -> None:
        if isinstance(change, ListChanged):
            event, notice = _LISTS[change.kind]
        else:
            event = ResourceUpdated(change.uri)
            params = types.ResourceUpdatedNotificationParams(uri=change.uri)
            notice = types.ResourceUpdatedNotification(params=params)
        await self._bus.publish(event)
        for key, client in tuple(self._older.items()):
            if isinstance(change, ListChanged) or change.uri in client.uris:
                await self._send(key, client, notice)

    async def _send(self, key: int, client: _Older, notice: types.ServerNotification) -> None:
        try:
            async with asyncio.timeout(self._send_seconds):
                await client.session.send_notification(notice)
        except (TimeoutError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._older.pop(key, None)
