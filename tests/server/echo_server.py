"""A server for clients of others, as a process: `python -m tests.server.echo_server FOLDER`.

Its one model repeats what it is told, or calls the first tool it is offered, until it has a result. Prints
its address; its token is that of the tests. With `--short-streams` behind the folder a stream that goes on
for ever is left after a moment, for clients that wait for the end of every answer.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import msgspec
from starlette import types as asgi

from dialoom.agent import AGENT_TYPES
from dialoom.conversation.cards import FormRegistry, builtin_cards
from dialoom.dialog import Center, Stores
from dialoom.graph import END, START, GraphBuilder
from dialoom.llm import ChatOptions, Message, MockProvider, OfflineProvider, Usage, UsageUpdate
from dialoom.llm.events import TextDelta
from dialoom.llm.options import DEFAULT_OPTIONS
from dialoom.llm.provider import ResponseStream
from dialoom.rag import HashEmbedder, LoadOptions, RagConfig
from dialoom.server import Parts, RateLimit, ServerSettings, Workbench
from dialoom.server.knowledge import KnowledgeBases
from dialoom.server.serving import listen, serve
from dialoom.stores import SqliteCheckpointStore, SqliteConversationStore
from tests.server.conftest import GRID_FORM, TOKEN

UNHURRIED = RateLimit(100_000, 100_000)
MOMENT = 0.02


class EchoProvider(MockProvider):
    """Repeats the newest words, word by word; with tools on offer it calls the first one before."""

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ResponseStream]:
        one = MockProvider(id=self.id, model=options.model or "echo")
        newest = messages[-1]
        if options.tools and newest.role == "user":
            one.queue_tool_call("call_1", options.tools[0].name, {"city": "Oslo"})
        else:
            words = newest.text or "".join(each.content for each in newest.tool_results)
            pieces = [TextDelta(f"{word} ") for word in f"You said: {words}".split()]
            one.queue_events(*pieces, UsageUpdate(Usage(input_tokens=3, output_tokens=len(pieces))))
        async with one.stream(messages, options) as answer:
            yield answer


def center(stores: Stores) -> Center:
    made = Center(stores, forms=FormRegistry(GRID_FORM), cards=builtin_cards())
    return made.add_provider(EchoProvider(id="echo", model="echo"))


def leaving(app: asgi.ASGIApp) -> asgi.ASGIApp:
    """Return `app` as if whoever follows events left it soon, and waited for its end."""

    async def call(scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        if scope["type"] != "http" or not scope["path"].endswith("/events"):
            await app(scope, receive, send)
            return
        ended = False

        async def leave() -> asgi.Message:
            await asyncio.sleep(MOMENT)
            return {"type": "http.disconnect"}

        async def watch(message: asgi.Message) -> None:
            nonlocal ended
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        await app(scope, leave, watch)
        if not ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return call


def main() -> None:
    data = Path(sys.argv[1])
    settings = ServerSettings(
        token=TOKEN, data=data, port=0, calls=UNHURRIED, logins=UNHURRIED, runs=UNHURRIED
    )
    builder = GraphBuilder("steps")
    builder.add_node("one", lambda _ctx: None)
    builder.add_edge(START, "one")
    builder.add_edge("one", END)
    with ExitStack() as stack:
        listening = stack.enter_context(listen(settings))
        settings = msgspec.structs.replace(settings, port=listening.getsockname()[1])
        store = stack.enter_context(SqliteConversationStore(data / "conversations.sqlite"))
        checkpoints = stack.enter_context(SqliteCheckpointStore(data / "checkpoints", types=AGENT_TYPES))
        asyncio.run(_serve(settings, listening, store, checkpoints, builder))


async def _serve(settings, listening, store, checkpoints, builder) -> None:
    knowledge = KnowledgeBases(
        settings.data / "kb", OfflineProvider(), config=RagConfig(), load=LoadOptions(), mounted={}
    )
    workbench = Workbench(
        settings,
        Parts(
            store=store,
            checkpoints=checkpoints,
            center=center,
            forms=FormRegistry(GRID_FORM),
            graphs={"steps": builder.build(store=checkpoints)},
            knowledge=knowledge,
            embedder=HashEmbedder(64),
        ),
    )
    if "--short-streams" in sys.argv:
        workbench.app = leaving(workbench.app)
    await serve(workbench, listening, ready=lambda: print(settings.url, flush=True))


if __name__ == "__main__":
    main()
