"""The settings of a tool server: what each is, its type, its default, and how it is written."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, Literal, TypeAlias, TypedDict

import msgspec

from dialoom.base.errors import UsageError


class Transport(Enum):
    """How messages travel. Prefer STREAMABLE_HTTP for a remote server."""

    STDIO = 0
    """A child process, one JSON-RPC message per line on its standard streams."""
    SSE = 1
    """The older remote way: server-sent events one way, POST the other."""
    STREAMABLE_HTTP = 2
    """One HTTP endpoint, answered by JSON or an event stream."""


class McpTimeouts(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Bounds of one server, in seconds."""

    connect: float = 15.0
    """Until the handshake is done."""
    idle: float = 60.0
    """Of a request without a sign of life; progress begins it anew."""
    total: float = 600.0
    """Of a request, whatever its progress."""
    grace: float = 1.5
    """A child has this long to end when its input is closed, and as long again after it is told to."""
    reconnect: float = 0.2
    """Before the first attempt to connect again; each later wait is three times as long."""
    max_reconnect: float = 10.0
    """No wait before an attempt is longer, but for a fifth that keeps clients out of step."""

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            seconds = getattr(self, field)
            if not 0 < seconds < float("inf"):
                raise UsageError(f"timeout {field!r} of an mcp server is {seconds}; give seconds above 0")


class BearerAuth(msgspec.Struct, frozen=True, kw_only=True, tag="bearer"):
    """A fixed token, sent as `Authorization: Bearer` with each request. May be `${VARIABLE}`."""

    token: str

    def __repr__(self) -> str:
        return "BearerAuth(token=***)"


class OAuth(msgspec.Struct, frozen=True, kw_only=True, tag="oauth", rename="camel", omit_defaults=True):
    """A login at the server's own authorization server. Without a client id, one is registered."""

    client_id: str = ""
    client_secret: str = ""
    scopes: tuple[str, ...] = ()
    callback_port: int = 0
    """Where the browser is sent back to on this machine; 0 takes a free port."""
    client_metadata_url: str = ""
    """An https URL that is itself the client id, for servers that know client metadata documents."""

    def __repr__(self) -> str:
        return f"OAuth(client_id={self.client_id!r}, scopes={self.scopes!r})"


Auth: TypeAlias = BearerAuth | OAuth
InheritEnv: TypeAlias = Literal["all", "safe"] | tuple[str, ...]
"""What a child gets of this process's environment: all, only what every program needs, or these names too."""


class MCPSettings(TypedDict, total=False):
    """What `MCPServerConfig` takes by keyword; each has a setter and a property of the same name."""

    transport: Transport
    command: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    url: str
    headers: Mapping[str, str]
    enabled: bool
    auto_start: bool
    cwd: str
    timeouts: McpTimeouts
    prefix: str | None
    allow_tools: Sequence[str] | None
    deny_tools: Sequence[str]
    inherit_env: InheritEnv
    auth: Auth | None
    sse_fallback: bool
    subscribe: bool


class ConfigFields(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields as they are understood. `transport` stands apart: any value of it is understood."""

    command: str = ""
    arguments: tuple[str, ...] = ()
    environment: dict[str, str | int | float] = {}
    url: str = ""
    headers: dict[str, str] = {}
    enabled: bool = True
    auto_start: bool = True
    cwd: str = ""
    timeouts: McpTimeouts = McpTimeouts()
    prefix: str | None = None
    allow_tools: tuple[str, ...] | None = None
    deny_tools: tuple[str, ...] = ()
    inherit_env: InheritEnv = "all"
    auth: Auth | None = None
    sse_fallback: bool = False
    subscribe: bool = True


WRITTEN: Final = {Transport.STDIO: "stdio", Transport.SSE: "sse", Transport.STREAMABLE_HTTP: "streamableHttp"}
READ: Final = {
    "stdio": Transport.STDIO,
    "sse": Transport.SSE,
    "streamablehttp": Transport.STREAMABLE_HTTP,
    "http": Transport.STREAMABLE_HTTP,
}
ALWAYS_WRITTEN: Final = frozenset(
    {"command", "arguments", "environment", "url", "headers", "enabled", "auto_start"}
)
NAMES: Final = {field.name: field.encode_name for field in msgspec.structs.fields(ConfigFields)}
TYPES: Final = {field.name: field.type for field in msgspec.structs.fields(ConfigFields)}
