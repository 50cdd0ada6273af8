"""How a client goes about its work: what belongs to the program, not to a server's config."""

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.mcp.connection import ConnectionState
from dialoom.mcp.errors import McpError
from dialoom.mcp.expand import Variables
from dialoom.mcp.inputs import MCPAnswers
from dialoom.mcp.login import Visit
from dialoom.mcp.tokens import MemoryTokenStore, TokenStore
from dialoom.net.guard import UrlPolicy

if TYPE_CHECKING:
    import httpx2

OnState = Callable[[str, ConnectionState, McpError | None], None]
"""Told the name of a server, its new state, and why it is down."""


class MCPOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a client uses besides its config."""

    answers: MCPAnswers = MCPAnswers()
    variables: Variables = Variables()
    """What `${NAME}` in the config stands for."""
    environment: Mapping[str, str] | None = None
    """What children may inherit; None for this process's environment."""
    era: Literal["auto", "legacy"] = "auto"
    """`legacy` does not ask for the revisions without a handshake."""
    http: "httpx2.AsyncClient | None" = None
    """A client to send everything through, with its own proxies, limits and headers. It is not closed."""
    url_policy: UrlPolicy | None = None
    """Which addresses of remote servers may be reached, for configs that come from others; None for any."""
    auth: "httpx2.Auth | None" = None
    """A login of the program's own, instead of the one in the config."""
    tokens: TokenStore = msgspec.field(default_factory=MemoryTokenStore)
    """Where logins are kept."""
    visit: Visit | None = None
    """Opens a login page for a person; without it a server that wants one is told no."""
    on_state: OnState | None = None
    """Called on the event loop; must not block."""
    clock: Clock = SYSTEM_CLOCK
    rng: random.Random = msgspec.field(default_factory=random.Random)

    def __repr__(self) -> str:
        return f"MCPOptions(answers={self.answers!r}, era={self.era!r})"  # the rest may hold secrets
