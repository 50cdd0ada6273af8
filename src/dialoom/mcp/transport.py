"""What carries messages to a server and back: one JSON-RPC message per line, and nothing of what they say."""

from typing import Protocol, TypeAlias

import msgspec

MAX_MESSAGE_BYTES = 64 * 1024 * 1024


class Oversize(msgspec.Struct, frozen=True):
    """What is left of a line that passed the bound: its first and last bytes, and how long it was."""

    head: bytes
    tail: bytes
    size: int


Line: TypeAlias = bytes | Oversize


class LineTransport(Protocol):
    """A way to one server. Any object with these four methods is one.

    It is opened once and closed once. `send` may be called while another `send` or a `receive` waits.
    """

    async def open(self) -> None:
        """Make the connection. Raises `McpError`, or an `OSError` that says why there is none."""
        ...

    async def send(self, line: bytes) -> None:
        """Send one message, given without its line break. Raises `OSError` when the way is gone."""
        ...

    async def receive(self) -> Line | None:
        """Return the next line without its break, None when there will be no more."""
        ...

    async def aclose(self, *, hurry: bool = False) -> None:
        """Let go of everything, in bounded time; with `hurry`, as fast as that can be done."""
        ...
