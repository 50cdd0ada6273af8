"""The tool servers of `dialoom serve`: those a person named or listed in a file, and approved."""

from collections.abc import Sequence

from dialoom.base.errors import UsageError
from dialoom.cli.exits import complain
from dialoom.cli.mcp_servers import cleared, client_options, found_server, found_servers
from dialoom.cli.serve_flags import ServeFlags
from dialoom.mcp import MCPClient, MCPServerConfig
from dialoom.mcp.tool_source import MCPToolSource


def tool_servers(flags: ServeFlags) -> tuple[MCPServerConfig, ...]:
    """Return the servers whose tools every conversation may call.

    Those of `--server` have to be usable: raises `UsageError`. Of a file given without names, what is off
    is left out, and so is what is not approved or cannot be used, which is said.
    """
    if flags.server:
        return tuple(cleared(found_server(name, flags.mcp_config)) for name in flags.server)
    if flags.mcp_config is None:
        return ()
    found, notes = found_servers(flags.mcp_config)
    for note in notes:
        complain(note)
    usable: list[MCPServerConfig] = []
    for each in found:
        if not each.config.enabled:
            continue
        try:
            usable.append(cleared(each))
        except UsageError as error:
            complain(str(error))
    return tuple(usable)


def tool_source(servers: Sequence[MCPServerConfig]) -> MCPToolSource:
    """Return what connects `servers` and no others: a conversation may have come from somebody else."""

    def connect(config: MCPServerConfig) -> MCPClient:
        if config not in servers:
            raise UsageError("it came with the conversation; start dialoom serve with --server to have it")
        return MCPClient(config, client_options())

    return MCPToolSource(connect)
