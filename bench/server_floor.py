"""The floor: Starlette and uvicorn alone, a queue for each stream, no guard."""

import asyncio
import json
from collections.abc import AsyncGenerator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

QUEUES: set[asyncio.Queue[bytes]] = set()


async def follow(_request: Request) -> Response:
    return StreamingResponse(_frames(), media_type="text/event-stream")


async def _frames() -> AsyncGenerator[bytes]:
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    QUEUES.add(queue)
    try:
        yield b"retry: 1000\n\n"
        while True:
            yield await queue.get()
    finally:
        QUEUES.discard(queue)


async def publish(request: Request) -> Response:
    asked = await request.json()
    count = asked["count"]
    for at in range(count):
        name = "last" if at + 1 == count else "TEXT_MESSAGE_CONTENT"
        event = {"type": name, "messageId": "m1", "delta": "some words", "seq": at}
        frame = f"id: {at}\ndata: {json.dumps(event)}\n\n".encode()
        for queue in QUEUES:
            queue.put_nowait(frame)
        await asyncio.sleep(asked["apart"])
    return Response(status_code=204)


async def listing(_request: Request) -> Response:
    return JSONResponse({"items": [], "cursor": None})


def main() -> None:
    app = Starlette(
        routes=[
            Route("/api/v1/events", follow),
            Route("/api/v1/publish", publish, methods=["POST"]),
            Route("/api/v1/conversations", listing),
        ]
    )
    config = uvicorn.Config(app, port=0, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    listening = config.bind_socket()
    print(json.dumps({"url": f"http://127.0.0.1:{listening.getsockname()[1]}"}), flush=True)
    asyncio.run(server.serve(sockets=[listening]))


if __name__ == "__main__":
    main()
