"""The peer of the tests as a process of its own, on standard streams."""

import asyncio

from mcp.server.stdio import stdio_server

from tests.mcp.official import Peer, tool


async def main() -> None:
    peer = Peer(tool("ask"), tool("echo"), tool("wait"))
    async with stdio_server() as (read, write):
        await peer.server.run(read, write, peer.server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
