"""Tool servers for whoever wants their tools and nothing else, such as a center of dialogs."""

import logging
from collections.abc import Callable, Sequence

from dialoom.base.errors import DialoomError
from dialoom.mcp.changes import ListKind
from dialoom.mcp.client import MCPClient
from dialoom.mcp.config import MCPServerConfig
from dialoom.mcp.tool_sync import MCPToolSync, SyncOptions
from dialoom.tools.registry import ToolRegistry
from dialoom.tools.tool import Tool

_log = logging.getLogger("dialoom.mcp")


class ConnectedServer:
    """The tools of one connected server, kept in line with what it announces until `aclose`."""

    def __init__(self, client: MCPClient, registry: ToolRegistry, sync: MCPToolSync) -> None:
        self._client = client
        self._registry = registry
        self._sync = sync
        client.on_list_changed(self._follow)

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools it offers now, in its order. While it is down they stay, and say so when called."""
        found = (self._registry.get(name) for name in self._registry.names())
        return tuple(tool for tool in found if tool is not None)

    async def aclose(self) -> None:
        """End the connection; twice is no error."""
        await self._client.close()

    async def _follow(self, kinds: frozenset[ListKind]) -> None:
        if "tools" not in kinds:
            return
        try:
            await self._sync.sync()
        except DialoomError as error:
            # the tools of before stay, and the next announcement is another chance
            _log.warning("tools not refreshed", extra={"server": self._client.name, "code": error.code})


class MCPToolSource:
    """Connects tool servers: what `Center(tool_source=...)` asks for.

    `connect` makes the client of a config; give one of your own to put in options, or to let nothing run that
    was not approved: `lambda config: MCPClient(store.cleared(found(config)), options)`.
    """

    def __init__(
        self,
        connect: Callable[[MCPServerConfig], MCPClient] = MCPClient,
        *,
        options: SyncOptions | None = None,
    ) -> None:
        self._connect = connect
        self._options = options

    async def open(self, server: MCPServerConfig) -> ConnectedServer:
        """Connect and list the tools, in bounded time.

        Raises `McpError`, and `UsageError` for a config or a name that cannot be used; nothing is left open.
        """
        client, registry = self._connect(server), ToolRegistry()
        sync = MCPToolSync(registry, client, options=self._options)
        try:
            await sync.sync()
        except BaseException:
            await client.close()
            raise
        return ConnectedServer(client, registry, sync)
