"""A tool server that does nothing, for the bench: `python mcp_server.py stdio|http`. Standard library only.

It answers the handshake, lists one tool, and answers calls with as many bytes as they ask for.
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

TOOL = {"name": "fill", "inputSchema": {"type": "object"}}


def answer(message: Mapping[str, Any]) -> bytes | None:
    """Return the answer to a message as JSON, None when it wants none."""
    if "id" not in message:
        return None
    params = message.get("params", {})
    outcome: dict[str, Any]
    match message["method"]:
        case "initialize":
            about = {"name": "fill", "version": "1"}
            version = params["protocolVersion"]
            able: dict[str, Any] = {"tools": {}}
            outcome = {"result": {"protocolVersion": version, "capabilities": able, "serverInfo": about}}
        case "tools/list":
            outcome = {"result": {"tools": [TOOL]}}
        case "tools/call":
            text = "x" * params["arguments"]["bytes"]
            outcome = {"result": {"content": [{"type": "text", "text": text}]}}
        case _:
            outcome = {"error": {"code": -32601, "message": "Method not found"}}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}).encode()


def serve_stdio() -> None:
    for line in sys.stdin.buffer:
        said = answer(json.loads(line))
        if said is not None:
            sys.stdout.buffer.write(said + b"\n")
            sys.stdout.buffer.flush()


async def serve_http() -> None:
    """Print the port, then answer on it until standard input ends."""
    server = await asyncio.start_server(_connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def _connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = next(
                (line[15:] for line in head.split("\r\n") if line.startswith("content-length:")), "0"
            )
            body = await reader.readexactly(int(length))
            said = answer(json.loads(body)) if body else None
            if said is None:
                status = "202 Accepted" if body else "405 Method Not Allowed"
                writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n".encode())
            else:
                about = f"content-type: application/json\r\ncontent-length: {len(said)}"
                writer.write(f"HTTP/1.1 200 OK\r\n{about}\r\n\r\n".encode() + said)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        serve_stdio()
    else:
        asyncio.run(serve_http())
