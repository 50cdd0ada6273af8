"""Several tool servers at once, none of which can hold up another."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Self

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.mcp.client import MCPClient
from dialoom.mcp.config import MCPServerConfig
from dialoom.mcp.connection import ConnectionState
from dialoom.mcp.errors import McpError
from dialoom.mcp.options import MCPOptions


class ServerStatus(msgspec.Struct, frozen=True):
    """How one server fares."""

    name: str
    state: ConnectionState
    error: McpError | None = None


class MCPHost:
    """The clients of several servers, by name. Servers that are disabled have none.

    `start` connects all that start by themselves, at the same time, and waits for none; the others connect
    when they are first used. Leaving `async with` closes all of them, at the same time.
    """

    def __init__(self, configs: Iterable[MCPServerConfig] = (), options: MCPOptions | None = None) -> None:
        self._options = options
        self._clients: dict[str, MCPClient] = {}
        self._starting: dict[str, asyncio.Task[None]] = {}
        for config in configs:
            if config.enabled:
                self._clients[config.name] = MCPClient(config, options)

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __getitem__(self, name: str) -> MCPClient:
        """Return the client of a server. Raises `UsageError` when there is no such server."""
        client = self._clients.get(name)
        if client is None:
            raise UsageError(
                f"there is no mcp server {one_line(name, 80)!r} here; there are: {', '.join(self._clients)}"
            )
        return client

    def __contains__(self, name: object) -> bool:
        return name in self._clients

    def __iter__(self) -> Iterator[str]:
        return iter(self._clients)

    def __len__(self) -> int:
        return len(self._clients)

    def start(self) -> None:
        """Begin to connect, in the background. Called on the event loop that will use the clients."""
        for client in self._clients.values():
            if client.config.auto_start and client.state == "idle":
                self._begin(client)

    async def settle(self, seconds: float) -> tuple[ServerStatus, ...]:
        """Wait until every server that was started is up or down, at most `seconds`; return how all fare."""
        if self._starting:
            await asyncio.wait(self._starting.values(), timeout=seconds)
        return self.status()

    def status(self) -> tuple[ServerStatus, ...]:
        """Return how each server fares now."""
        return tuple(
            ServerStatus(name, client.state, None if client.state == "ready" else client.error)
            for name, client in self._clients.items()
        )

    async def put(self, config: MCPServerConfig) -> MCPClient | None:
        """Add a server in place of the one of its name, which is closed; None for a disabled one."""
        await self.remove(config.name)
        if not config.enabled:
            return None
        client = self._clients[config.name] = MCPClient(config, self._options)
        if config.auto_start:
            self._begin(client)
        return client

    async def remove(self, name: str) -> None:
        """Close a server and forget it, if it is there."""
        starting = self._starting.pop(name, None)
        client = self._clients.pop(name, None)
        if client is not None:
            await client.close()
        if starting is not None:
            await asyncio.wait({starting})

    async def close(self) -> None:
        """Close all servers."""
        async with asyncio.TaskGroup() as group:
            for name in tuple(self._clients):
                group.create_task(self.remove(name))

    def _begin(self, client: MCPClient) -> None:
        starting = asyncio.get_running_loop().create_task(_start(client), name=f"mcp start {client.name}")
        self._starting[client.name] = starting


async def _start(client: MCPClient) -> None:
    try:
        await client.initialize()
    except McpError:
        return  # the client remembers it, and tries again
