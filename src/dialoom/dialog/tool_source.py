"""Where the tools of tool servers come from: all that a center asks of what speaks their protocol."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.mcp.config import MCPServerConfig
from dialoom.tools import Tool


class ServerTools(Protocol):
    """One connected server. `tools` are those it offers now, under the names a model sees."""

    @property
    def tools(self) -> Sequence[Tool]: ...

    async def aclose(self) -> None:
        """End the connection; twice is no error."""
        ...


class ToolSource(Protocol):
    """Connects tool servers."""

    async def open(self, server: MCPServerConfig) -> ServerTools:
        """Connect and list the tools, in bounded time. Raises `DialoomError` when that fails."""
        ...


class FixedTools:
    """The tools of a server that is none: the in-memory twin of a connection."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.tools = tuple(tools)
        self.closed = False

    async def aclose(self) -> None:
        self.closed = True


class FixedToolSource:
    """A `ToolSource` of given tools by server name: the in-memory twin. `opened` counts the connections."""

    def __init__(self, servers: Mapping[str, Sequence[Tool]]) -> None:
        self._servers = servers
        self.opened: list[FixedTools] = []

    async def open(self, server: MCPServerConfig) -> FixedTools:
        """Return the tools of `server`. Raises `UsageError` for a name it does not have."""
        if server.name not in self._servers:
            raise UsageError(f"there is no tool server {one_line(server.name, 80)!r}; check its config")
        connection = FixedTools(self._servers[server.name])
        self.opened.append(connection)
        return connection
