"""The peer of the tests as a process of its own, on standard streams."""

import asyncio
import os
import sys
from typing import Any

from mcp.server.stdio import stdio_server

from tests.mcp.official import Peer, tool


class Child(Peer):
    """A peer that tells how it was started."""

    async def do_argv(self, ctx: Any, params: Any) -> str:
        return repr(sys.argv[1:])

    async def do_env(self, ctx: Any, params: Any) -> str:
        return str(os.environ.get(params.arguments["words"]))


async def main() -> None:
    peer = Child(*map(tool, ("ask", "echo", "argv", "env")))
    async with stdio_server() as (read, write):
        await peer.server.run(read, write, peer.server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
