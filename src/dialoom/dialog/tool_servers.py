"""The tool servers of a center: connected when a run first needs them, kept while the center lives."""

import asyncio
from collections.abc import Iterable, Mapping

from dialoom.base.errors import DialoomError
from dialoom.base.text import one_line
from dialoom.dialog.policy import Served
from dialoom.dialog.tool_source import ServerTools, ToolSource
from dialoom.mcp.config import MCPServerConfig
from dialoom.tools import Tool

MAX_CONNECTIONS = 100


class ToolServers:
    """Connections by what their configs say: dialogs with the same config share one."""

    def __init__(self, source: ToolSource | None) -> None:
        self._source = source
        self._connections: dict[str, ServerTools] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def serve(self, servers: Mapping[str, MCPServerConfig]) -> Served:
        """Return the tools of `servers`. One that cannot be reached is a notice, and no run fails for it."""
        tools: dict[str, Tool] = {}
        notices: list[str] = []
        for server in servers.values():
            if not server.enabled:
                continue
            try:
                connection = await self._connection(server)
            except DialoomError as error:
                notices.append(f"tool server {one_line(server.name, 80)!r} has no part in this: {error}")
                continue
            for tool in connection.tools:
                tools.setdefault(tool.name, tool)
        return Served(tools, tuple(notices))

    async def start(self, servers: Iterable[MCPServerConfig]) -> tuple[str, ...]:
        """Connect those of `servers` that start with the center; return what kept any from it."""
        return (await self.serve({each.name: each for each in servers if each.auto_start})).notices

    async def aclose(self) -> None:
        """End every connection."""
        connections, self._connections, self._locks = self._connections, {}, {}
        for connection in connections.values():
            await connection.aclose()

    async def _connection(self, server: MCPServerConfig) -> ServerTools:
        key = server.to_json()
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key in self._connections:
                return self._connections[key]
            if self._source is None:
                raise DialoomError("the center has no tool source; give it one: Center(tool_source=...)")
            if problems := server.problems():
                raise DialoomError(problems[0])
            if len(self._connections) >= MAX_CONNECTIONS:
                raise DialoomError(f"{MAX_CONNECTIONS} tool servers are connected; switch some off")
            self._connections[key] = await self._source.open(server)
            return self._connections[key]
