"""`dialoom mcp serve`: a knowledge base, and a person's own tools, graphs and agents, for other programs."""

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from ipaddress import ip_address
from socket import AF_INET, AF_INET6, create_server, socket

import msgspec

import dialoom
from dialoom.base.errors import MissingExtraError, UsageError
from dialoom.base.text import one_line
from dialoom.cli.answer import FromDocuments
from dialoom.cli.embedder import open_embedder
from dialoom.cli.exits import ExitCode, check_stdout
from dialoom.cli.flags import KnowledgeFlags, ModelFlags
from dialoom.cli.knowledge import check_knowledge, has_knowledge, open_store
from dialoom.cli.mcp_export import exported_tools
from dialoom.cli.mcp_knowledge import READ_ONLY, DocumentResources, knowledge_tools
from dialoom.cli.mcp_library import Library
from dialoom.cli.mcp_prompts import TEMPLATE, document_names, knowledge_prompts
from dialoom.cli.model import OpenModel, announce, open_model
from dialoom.cli.progress import counted, say
from dialoom.mcp.server import HttpAccess, News, Served, http_endpoint, serve_stdio
from dialoom.net.address import is_loopback
from dialoom.rag import Embedder, HybridRetriever
from dialoom.tools import Tool, ToolRegistry

PATH = "/mcp"
GRACE_SECONDS = 3
"""How long calls that are under way have when the server ends; clients that listen would stay for ever."""
_HOW = "Use search to find documents, fetch to read one, and ask for a short answer with citations."


class Place(msgspec.Struct, frozen=True):
    """Where to serve over HTTP, and whom."""

    host: str
    port: int
    access: HttpAccess


async def serve(
    exports: Sequence[str], http: str | None, *, knowledge: KnowledgeFlags, model: ModelFlags
) -> ExitCode:
    """Serve until standard input ends, or over HTTP until stopped. People are told on stderr."""
    place = None if http is None else place_of(http)
    if place is None:
        check_stdout()
    own = exported_tools(exports)
    async with _served(own, knowledge, model) as served:
        say(f"{counted(len(served.tools.names()), 'tool')}: {', '.join(served.tools.names())}")
        if place is None:
            await serve_stdio(served)
        else:
            await _serve_http(served, place)
    return ExitCode.OK


@asynccontextmanager
async def _served(own: list[Tool], knowledge: KnowledgeFlags, model: ModelFlags) -> AsyncGenerator[Served]:
    """Offer a person's own tools, and the knowledge base where there is one."""
    if not has_knowledge(knowledge):
        if not own:
            raise UsageError("there is nothing to serve; name a folder with --docs, or --export FILE.py:NAME")
        yield Served(tools=ToolRegistry(own), version=dialoom.__version__)
        return
    await check_knowledge(knowledge)
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(open_model(model))
        embedder = await stack.enter_async_context(open_embedder(model.config))
        served = await stack.enter_async_context(served_documents(own, knowledge, opened, embedder))
        announce(opened.choice)
        yield served


@asynccontextmanager
async def served_documents(
    own: Sequence[Tool], knowledge: KnowledgeFlags, opened: OpenModel, embedder: Embedder
) -> AsyncGenerator[Served]:
    """Offer the knowledge base, and a person's `own` tools beside it. Raises as `Library.opened` does."""
    with open_store(knowledge) as store:
        news, retriever = News(), HybridRetriever(store, embedder)
        library = Library(store, knowledge.docs, news)
        answerer = partial(FromDocuments, store, opened, knowledge, embedder)
        async with library.opened(embedder):
            yield Served(
                tools=ToolRegistry([*knowledge_tools(library, retriever, answerer), *own]),
                version=dialoom.__version__,
                instructions=_HOW,
                read_only=READ_ONLY,
                resources=DocumentResources(library),
                templates=(TEMPLATE,),
                prompts=knowledge_prompts(library, retriever),
                complete=document_names(library),
                news=news,
            )


async def _serve_http(served: Served, place: Place) -> None:
    try:
        import uvicorn
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError as error:
        raise MissingExtraError("uvicorn", "server") from error
    with _bound(place.host, place.port) as listening:
        async with http_endpoint(served, place.access) as endpoint:
            app = Starlette(routes=[Route(PATH, endpoint)])
            shown = f"[{place.host}]" if ":" in place.host else place.host
            say(f"http://{shown}:{listening.getsockname()[1]}{PATH}")
            config = uvicorn.Config(
                app, log_level="critical", lifespan="off", timeout_graceful_shutdown=GRACE_SECONDS
            )
            await uvicorn.Server(config).serve([listening])


def _bound(host: str, port: int) -> socket:
    """Listen at an address; from here on requests wait for the server instead of failing."""
    try:
        return create_server((host, port), family=AF_INET6 if ":" in host else AF_INET, backlog=256)
    except OSError as error:
        told = os.strerror(error.errno) if error.errno else str(error)
        raise UsageError(f"cannot serve at {host}:{port}: {told}; choose another port") from error


def place_of(address: str) -> Place:
    """Read `HOST:PORT`; port 0 takes a free one.

    This machine is let in. Others need the token of DIALOOM_MCP_TOKEN, and to know the name they call. Raises
    `UsageError`.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if not _is_host(host) or not port.isdecimal() or not 0 <= int(port) < 65536:
        raise UsageError(f"{one_line(address, 80)!r} is no address of this machine; write 127.0.0.1:8710")
    token = os.environ.get("DIALOOM_MCP_TOKEN") or None
    if is_loopback(host):
        return Place(host, int(port), HttpAccess(token=token))
    if not token:
        raise UsageError(f"{host} can be reached by others; set DIALOOM_MCP_TOKEN to what they have to send")
    named = os.environ.get("DIALOOM_MCP_HOSTS", host).split(",")
    hosts = tuple(form for name in named for form in (name.strip(), f"{name.strip()}:*"))
    return Place(host, int(port), HttpAccess(token=token, hosts=hosts))


def _is_host(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return host == "localhost"
    return True
