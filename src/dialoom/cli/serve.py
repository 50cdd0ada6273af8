"""`dialoom serve`: the workbench over HTTP, for this machine or behind a proxy."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from dialoom.agent import AGENT_TYPES
from dialoom.base.errors import StoreError, UsageError
from dialoom.cli.config import load_config
from dialoom.cli.embedder import open_embedder
from dialoom.cli.exits import ExitCode
from dialoom.cli.flags import KnowledgeFlags, ModelFlags
from dialoom.cli.knowledge import bring_in, has_knowledge, load_options, tell
from dialoom.cli.model import OpenModel, announce, open_model
from dialoom.cli.progress import say
from dialoom.cli.serve_flags import ServeFlags
from dialoom.cli.serve_geo import GEO_HANDLERS
from dialoom.cli.serve_graphs import graph_definitions
from dialoom.cli.serve_kit import add_kit, own_kit
from dialoom.cli.serve_mcp import documents_endpoint
from dialoom.cli.serve_tools import tool_servers, tool_source
from dialoom.cli.settings import ServeTable
from dialoom.conversation.cards import FormRegistry, builtin_cards
from dialoom.dialog import Center, Kit, RunPolicy, Stores
from dialoom.llm import Model
from dialoom.mcp import MCPServerConfig
from dialoom.net import is_loopback
from dialoom.rag import Embedder, RagConfig
from dialoom.server import Parts, ServerSettings, Workbench
from dialoom.server.card_work_knowledge import GROUNDED
from dialoom.server.knowledge import KnowledgeBases, MountedBase
from dialoom.server.serving import listen, serve
from dialoom.server.tokens import load_token
from dialoom.stores import SqliteCheckpointStore, SqliteConversationStore, SqliteVectorStore
from dialoom.tools.builtin import calculator, clock_tool

TOKEN_NAME = "DIALOOM_SERVER_TOKEN"  # noqa: S105 - the name of the variable
DOCS = "docs"
"""The id of the knowledge base that `--docs` and `--index` name."""


def run_server(flags: ServeFlags, knowledge: KnowledgeFlags, model: ModelFlags) -> ExitCode:
    """Serve until Ctrl-C or SIGTERM. The stores outlive the event loop, so that a run can be gone on with."""
    bounds = load_config(model.config, env=os.environ).serve
    settings = _settings(flags, bounds)
    servers, definitions = tool_servers(flags), graph_definitions(flags.graph)
    kit = own_kit()
    with ExitStack() as stack:
        listening = stack.enter_context(listen(settings))
        settings = msgspec.structs.replace(settings, port=listening.getsockname()[1])
        with _in_folder(flags.data):
            conversations = stack.enter_context(SqliteConversationStore(flags.data / "conversations.sqlite"))
            checkpoints = stack.enter_context(
                SqliteCheckpointStore(flags.data / "checkpoints.sqlite", types=AGENT_TYPES)
            )
        wired = _Wired(conversations, checkpoints, servers, definitions, kit)
        asyncio.run(_run(settings, listening, wired, knowledge=knowledge, model=model))
    say("stopped")
    return ExitCode.OK


@contextmanager
def _in_folder(data: Path) -> Generator[None]:
    """Say of what cannot be kept or read which option names its place."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)  # what was said is its owner's alone
        yield
    except OSError as error:
        reason = (error.strerror or "error").lower()
        raise StoreError(f"nothing can be kept in {data} ({reason}); choose another --data") from error
    except StoreError as error:
        raise StoreError(f"--data {data} cannot be used: {error}") from error


def _settings(flags: ServeFlags, bounds: ServeTable) -> ServerSettings:
    """Return the settings. Raises `UsageError` for an open address without a token that was chosen for it."""
    token = os.environ.get(TOKEN_NAME, "")
    if not token and not is_loopback(flags.host):
        raise UsageError(
            f"{flags.host} can be reached by others; set {TOKEN_NAME} to a secret of your own first"
        )
    return ServerSettings(
        token=token or _kept_token(flags.data),
        data=flags.data,
        host=flags.host,
        port=flags.port,
        allowed_hosts=flags.allow_host,
        secure=flags.secure,
        **_bounds(flags, bounds),
    )


def _bounds(flags: ServeFlags, table: ServeTable) -> dict[str, Any]:
    """Return what is said of the server's bounds, by the names of its settings; flags go before the file."""
    found = {name: getattr(flags, name) or getattr(table, name) for name in table.__struct_fields__}
    return {name: value for name, value in found.items() if value is not None}


def _kept_token(data: Path) -> str:
    with _in_folder(data):
        return load_token(data / "token")


class _Wired(msgspec.Struct, frozen=True):
    """What is opened before the event loop begins."""

    conversations: SqliteConversationStore
    checkpoints: SqliteCheckpointStore
    servers: tuple[MCPServerConfig, ...]
    definitions: dict[str, Any]
    kit: Kit


async def _run(
    settings: ServerSettings,
    listening: socket.socket,
    wired: _Wired,
    *,
    knowledge: KnowledgeFlags,
    model: ModelFlags,
) -> None:
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(open_model(model))
        embedder = await stack.enter_async_context(open_embedder(model.config))
        bases = await stack.enter_async_context(_bases(settings, knowledge, opened, embedder))
        forms, cards = FormRegistry(), builtin_cards()
        grounded = DOCS in await bases.ids()
        source = tool_source(wired.servers)
        endpoint = documents_endpoint(settings, knowledge, opened, embedder)
        if endpoint is not None:
            await stack.enter_async_context(endpoint.running())

        def center(stores: Stores) -> Center:
            policy = RunPolicy(chat=opened.options)
            made = Center(stores, forms=forms, cards=cards, policy=policy, tool_source=source)
            made.add_provider(opened.provider, default=True, models=_models(opened))
            made.add_tool(calculator).add_tool(clock_tool())
            add_kit(made, wired.kit)
            for server in wired.servers:
                made.add_mcp(server)
            return made.add_skill(GROUNDED) if grounded else made

        async def ground(_conversation: str, question: str) -> list[object]:
            return await bases.passages(DOCS, question)

        parts = Parts(
            store=wired.conversations,
            checkpoints=wired.checkpoints,
            definitions=wired.definitions,
            center=center,
            cards=cards,
            forms=forms,
            knowledge=bases,
            embedder=embedder,
            ground=ground if grounded else None,
            tool_source=source,
            card_handlers=GEO_HANDLERS,
            mcp=endpoint,
        )
        with _in_folder(settings.data):
            workbench = Workbench(settings, parts)
        announce(opened.choice)
        ending = () if endpoint is None else (endpoint.end,)
        await serve(workbench, listening, ready=lambda: _tell_address(workbench), ending=ending)


@asynccontextmanager
async def _bases(
    settings: ServerSettings, knowledge: KnowledgeFlags, opened: OpenModel, embedder: Embedder
) -> AsyncGenerator[KnowledgeBases]:
    """Give the knowledge bases, with the index of the flags among them when there is one."""
    mounted: dict[str, MountedBase] = {}
    if knowledge.docs is not None:
        with SqliteVectorStore(knowledge.index) as store:
            tell(await bring_in(knowledge.docs, store, embedder), knowledge.docs, always=False)
    if has_knowledge(knowledge):
        name = knowledge.docs.name if knowledge.docs is not None else knowledge.index.stem
        mounted[DOCS] = MountedBase(name=name or DOCS, index=knowledge.index)
    yield KnowledgeBases(
        settings.data / "kb",
        opened.provider,
        config=RagConfig(chat=opened.options, k=knowledge.top_k),
        load=load_options(knowledge.index),
        mounted=mounted,
        embedder=embedder,
    )


def _models(opened: OpenModel) -> tuple[Model, ...] | None:
    """Return the one model that was chosen; its provider is not asked for others before they are wanted."""
    name = opened.choice.model
    return (Model(id=name, provider=opened.provider.id),) if name else None


def _tell_address(workbench: Workbench) -> None:
    say(f"open {workbench.login_url} (works once, within a day; Ctrl-C ends the server)")
