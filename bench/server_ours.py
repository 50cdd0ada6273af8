"""Our server, with a route that publishes events for the bench: `python -m bench.server_ours FOLDER`."""

import asyncio
import json
import sys
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bench.server import TOKEN
from dialoom.conversation import MemoryConversationStore
from dialoom.dialog import Center
from dialoom.graph import MemoryCheckpointStore
from dialoom.server import Parts, RateLimit, ServerSettings, Workbench
from dialoom.server.hub import EventHub
from dialoom.server.serving import listen, serve

UNHURRIED = RateLimit(1_000_000, 1_000_000)


def publishing(app: ASGIApp, hub: EventHub) -> ASGIApp:
    """Return `app` with one call more, which publishes events a moment apart, as a model's words come."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/api/v1/publish":
            await app(scope, receive, send)
            return
        asked = await Request(scope, receive).json()
        count: int = asked["count"]
        for at in range(count):
            name = "last" if at + 1 == count else "TEXT_MESSAGE_CONTENT"
            hub.publish("bench", {"type": name, "messageId": "m1", "delta": "some words"}, runId="r1")
            await asyncio.sleep(asked["apart"])
        await Response(status_code=204)(scope, receive, send)

    return call


def main() -> None:
    settings = ServerSettings(token=TOKEN, data=Path(sys.argv[1]), port=0, calls=UNHURRIED)
    with listen(settings) as listening:
        settings = msgspec.structs.replace(settings, port=listening.getsockname()[1])
        parts = Parts(store=MemoryConversationStore(), checkpoints=MemoryCheckpointStore(), center=Center)
        workbench = Workbench(settings, parts)
        workbench.app = publishing(workbench.app, workbench.hub)
        asyncio.run(
            serve(workbench, listening, ready=lambda: print(json.dumps({"url": settings.url}), flush=True))
        )


if __name__ == "__main__":
    main()
