"""Which tool servers there are, from which files, and which of them may be started."""

import os
from collections.abc import Iterator
from pathlib import Path

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.mcp import MCPOptions, MCPServerConfig, Variables
from dialoom.mcp.config_files import read_server_file
from dialoom.mcp.inputs import MCPAnswers
from dialoom.mcp.trust import FoundServer, TrustStore

PROJECT_FILES = (Path(".mcp.json"), Path(".vscode/mcp.json"), Path(".cursor/mcp.json"))
"""Looked at in this order, below the folder the command runs in."""


def user_folder() -> Path:
    """Where a person's own settings are: `$XDG_CONFIG_HOME/dialoom`, by default `~/.config/dialoom`."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "dialoom"


def user_file() -> Path:
    """The file of a person's own tool servers, which need no approval."""
    return user_folder() / "mcp.json"


def trust_store() -> TrustStore:
    """Return the approvals of this person."""
    return TrustStore(user_folder() / "trusted-servers")


def found_servers(config: Path | None) -> tuple[list[FoundServer], list[str]]:
    """Return the servers of `config`, or of all usual files, and what in them is not followed.

    The person's own servers come first, and of one name the first counts: no project can take their place.
    """
    found: dict[str, FoundServer] = {}
    notes: list[str] = []
    for path in _files(config):
        own = path.exists() and user_file().exists() and path.samefile(user_file())
        read = read_server_file(path)
        notes += [f"{path}: {note}" for note in read.notes]
        for server in read.servers:
            found.setdefault(server.name, FoundServer(config=server, origin=None if own else path))
    return list(found.values()), notes


def found_server(name: str, config: Path | None) -> FoundServer:
    """Return the server `name`. Raises `UsageError` when no file lists it."""
    servers, _ = found_servers(config)
    for server in servers:
        if server.config.name == name:
            return server
    names = ", ".join(one_line(server.config.name, 80) for server in servers) or "none"
    raise UsageError(f"there is no mcp server {one_line(name, 80)!r}; listed are: {names}")


def cleared(found: FoundServer) -> MCPServerConfig:
    """Return the config for a connection. Raises `UsageError` for one that must not or cannot be used."""
    config = trust_store().cleared(found)
    problems = config.problems()
    if problems:
        raise UsageError(f"mcp server {one_line(config.name, 80)!r} cannot be used: {problems[0]}")
    return config


def client_options(*, interactive: bool = True) -> MCPOptions:
    """Return how servers are used from a terminal; without `interactive` nobody there can be asked."""
    variables = Variables(environment=os.environ, workspace=Path.cwd(), home=Path.home())
    return MCPOptions(variables=variables, answers=MCPAnswers(interactive=interactive))


def _files(config: Path | None) -> Iterator[Path]:
    if config is not None:
        yield config
        return
    yield from (path for path in (user_file(), *PROJECT_FILES) if path.is_file())
