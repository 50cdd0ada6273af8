"""`/mcp` of the workbench: its documents for other programs, by the token of the server."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from starlette.types import ASGIApp, Receive, Scope, Send

from dialoom.base.errors import DialoomError
from dialoom.cli.flags import KnowledgeFlags
from dialoom.cli.knowledge import has_knowledge
from dialoom.cli.mcp_serve import served_documents
from dialoom.cli.model import OpenModel
from dialoom.mcp.server import HttpAccess, http_endpoint
from dialoom.rag import Embedder
from dialoom.server import ServerSettings
from dialoom.server.problems import problem_of


class LateEndpoint:
    """An ASGI app that is opened when the first request comes: what it stands on takes long to load.

    `running` is its life. `end` lets go of the clients that listen, so that the server can end.
    """

    def __init__(self, open_app: Callable[[], AbstractAsyncContextManager[ASGIApp]]) -> None:
        self._open_app = open_app
        self._wanted = asyncio.Event()
        self._over = asyncio.Event()
        self._app: asyncio.Future[ASGIApp] = asyncio.get_running_loop().create_future()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._wanted.set()
        try:
            app = await asyncio.shield(self._app)
        except DialoomError as error:
            app = problem_of(error).response(scope["path"])
        await app(scope, receive, send)

    def end(self) -> None:
        self._over.set()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["LateEndpoint"]:
        life = asyncio.create_task(self._live())  # owned by this block, which waits for its end
        try:
            yield self
        finally:
            self.end()
            if not self._wanted.is_set():
                life.cancel()
            await asyncio.wait({life})

    async def _live(self) -> None:
        """Open and close in one task, as what is opened asks for."""
        await self._wanted.wait()
        try:
            async with self._open_app() as app:
                self._app.set_result(app)
                await self._over.wait()
        except Exception as error:  # what is opened is foreign: each who asks is told
            if self._app.done():
                raise
            self._app.set_exception(error)


def documents_endpoint(
    settings: ServerSettings, knowledge: KnowledgeFlags, opened: OpenModel, embedder: Embedder
) -> LateEndpoint | None:
    """Offer the documents that the flags name; None when they name none."""
    if not has_knowledge(knowledge):
        return None
    access = HttpAccess(token=settings.token, hosts=tuple(settings.hosts), origins=tuple(settings.origins))

    @asynccontextmanager
    async def open_app() -> AsyncGenerator[ASGIApp]:
        async with AsyncExitStack() as stack:
            served = await stack.enter_async_context(served_documents((), knowledge, opened, embedder))
            yield await stack.enter_async_context(http_endpoint(served, access))

    return LateEndpoint(open_app)
