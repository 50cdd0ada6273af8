"""Why a tool server did not do what it was asked. Kinds are closed, so that a caller can decide by them."""

from typing import Literal

import msgspec

from dialoom.base.errors import DialoomError

McpErrorKind = Literal[
    "config",
    "start",
    "connect",
    "auth",
    "status",
    "session",
    "timeout",
    "closed",
    "protocol",
    "too_large",
    "rpc",
    "unavailable",
]
"""`config`: it cannot be reached as it is described. `start`: its program did not come up. `connect`: no
connection was made, so nothing was sent. `auth`: it wants a login that it was not given. `status`: HTTP said
no. `session`: it forgot the session and nothing was done. `timeout`: it was too slow. `closed`: the
connection was lost on the way, and what was asked may have been done. `protocol`: its words make no sense.
`too_large`: they passed a bound. `rpc`: it answered with an error. `unavailable`: it is down, disabled or
closed by us."""

_UNDONE: frozenset[McpErrorKind] = frozenset(("config", "start", "connect", "auth", "session", "unavailable"))


class McpFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a failure besides its words."""

    rpc_code: int | None = None
    """The number of a JSON-RPC error."""
    data: object = None
    """What the server added to its error, as it came."""
    status: int | None = None
    """The HTTP status."""
    retry_after: float | None = None
    """Seconds, when the server named them."""
    exit_code: int | None = None
    """Of a child that ended; a negative one is the signal that ended it."""
    stderr_tail: tuple[str, ...] = ()
    """The last lines of a child's error output, without secrets. For people, never for a model."""

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in self.__struct_fields__ if name != "data"}
        told = (f"{name}={value!r}" for name, value in shown.items() if value not in (None, ()))
        return f"McpFacts({', '.join(told)})"  # what a server adds to an error may hold anything


NO_FACTS = McpFacts()


class McpError(DialoomError):
    """One thing asked of one server did not work; other things and other servers may.

    `server` is the name in its config, `kind` what a caller can decide by. Neither `str` nor `repr` holds a
    secret of the config or an argument of a call.
    """

    code = "mcp"

    def __init__(self, message: str, *, server: str, kind: McpErrorKind, facts: McpFacts = NO_FACTS) -> None:
        super().__init__(message)
        self.server = server
        self.kind: McpErrorKind = kind
        self.facts = facts

    @property
    def undone(self) -> bool:
        """Whether it is certain that the server did nothing, so that asking again does no harm."""
        return self.kind in _UNDONE or self.facts.status == 429

    @property
    def lasting(self) -> bool:
        """Whether it will fail again until a person changes something."""
        return self.kind in {"config", "auth"}
