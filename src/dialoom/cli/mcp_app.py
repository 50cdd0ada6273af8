"""The `dialoom mcp` commands and their options, as people see them."""

import asyncio
from typing import Annotated

from cyclopts import App, Parameter

from dialoom.cli.exits import ExitCode
from dialoom.cli.flags import NO_KNOWLEDGE_FLAGS, NO_MODEL_FLAGS, KnowledgeFlags, ModelFlags, NamedPath

ServerFile = Annotated[
    NamedPath | None,
    Parameter(
        help="Look at this file alone; without it at yours, .mcp.json, .vscode/mcp.json and .cursor/mcp.json."
    ),
]
mcp_app = App(name="mcp", help="Tool servers: use those of your files, or be one.")


@mcp_app.command(name="list")
def list_command(*, config: ServerFile = None) -> ExitCode:
    """Show the tool servers that are listed, and which may be started. Starts none."""
    from dialoom.cli.mcp import list_servers

    return list_servers(config)


@mcp_app.command(name="trust")
def trust_command(
    name: str, /, *, config: ServerFile = None, yes: bool = False, revoke: bool = False
) -> ExitCode:
    """Show what a server of a project would run, and let it run that from now on.

    Parameters
    ----------
    name
        The name of the server in its file.
    yes
        Do not ask.
    revoke
        Take the approval back.
    """
    from dialoom.cli.mcp import trust_server

    return trust_server(name, config, yes=yes, revoke=revoke)


@mcp_app.command(name="test", usage="Usage: dialoom mcp test [OPTIONS] [NAMES...]")
def check_command(*names: str, config: ServerFile = None) -> ExitCode:
    """Connect to tool servers and tell what they offer, or why they do not.

    Parameters
    ----------
    names
        Which; all that are enabled without a name.
    """
    from dialoom.cli.mcp import test_servers

    return asyncio.run(test_servers(names, config))


@mcp_app.command(name="call", usage="Usage: dialoom mcp call [OPTIONS] SERVER TOOL [ARGUMENTS]")
def call_command(
    server: str, tool: str, arguments: str = "{}", /, *, config: ServerFile = None, json: bool = False
) -> ExitCode:
    """Call one tool of a server and print its answer.

    Parameters
    ----------
    server
        The name of the server in its file.
    tool
        The name of the tool, as the server says it.
    arguments
        A JSON object.
    json
        Print the result as it came, as one JSON object, with what it has for programs.
    """
    from dialoom.cli.mcp import call_tool

    return asyncio.run(call_tool(server, tool, arguments, config=config, as_json=json))


@mcp_app.command(name="serve")
def serve_command(
    *,
    export: tuple[str, ...] = (),
    http: str | None = None,
    knowledge: KnowledgeFlags = NO_KNOWLEDGE_FLAGS,
    model: ModelFlags = NO_MODEL_FLAGS,
) -> ExitCode:
    """Be a tool server over standard streams: search, fetch and ask over your documents, and your own tools.

    Parameters
    ----------
    export
        FILE.py:NAME of a tool, graph or agent to offer too; may be given more than once. The file is run.
    http
        Serve http://HOST:PORT/mcp instead; beyond this machine DIALOOM_MCP_TOKEN has to be set.
    """
    from dialoom.cli.mcp_serve import serve

    return asyncio.run(serve(export, http, knowledge=knowledge, model=model))
