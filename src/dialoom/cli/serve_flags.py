"""Options of `dialoom serve`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter, validators

from dialoom.cli.flags import NamedPath

_SERVER = Group("Server", sort_key=0)


@Parameter(name="*", group=_SERVER)
@dataclass(frozen=True, kw_only=True)
class ServeFlags:
    """Where the server listens, and where it keeps what it is told."""

    host: str = "127.0.0.1"
    """The address to listen at; one that others reach needs DIALOOM_SERVER_TOKEN and --allow-host."""
    port: Annotated[int, Parameter(validator=validators.Number(gte=0, lte=65_535))] = 8_321
    """The port; 0 takes any that is free."""
    data: NamedPath = Path(".dialoom/server")
    """The folder of conversations, files and the token."""
    allow_host: tuple[str, ...] = ()
    """A further host name people use, such as that of a proxy; may be given more than once."""
    secure: bool = False
    """People come over https, through a proxy."""
    server: tuple[str, ...] = ()
    """Let conversations call the tools of this approved MCP server; may be given more than once."""
    mcp_config: NamedPath | None = None
    """The file that lists tool servers; without --server all of it that you approved are used."""
    graph: tuple[NamedPath, ...] = ()
    """Show the graph that this .json, .yaml or .yml file defines; may be given more than once."""
    approval_seconds: Annotated[float | None, Parameter(validator=validators.Number(gt=0))] = None
    """Let an approval expire that nobody gives in so many seconds; without it one waits for ever."""
    max_connections: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None
    """Refuse connections beyond so many; 1500 without it."""
    max_streams: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None
    """Refuse to send events to more than so many open pages at once; 1000 without it."""


NO_SERVE_FLAGS = ServeFlags()
