"""What a server offers: values and protocols, without the protocol's own package."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from dialoom.tools.policy import ToolExecutionPolicy
from dialoom.tools.registry import ToolRegistry


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """Something that can be read. `uri` is absolute and names it for good."""

    uri: str
    name: str
    title: str = ""
    description: str = ""
    mime_type: str = "text/plain"


class ResourceText(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a resource."""

    uri: str
    text: str
    mime_type: str = "text/plain"


class Resources(Protocol):
    """Readable things, listed in a steady order."""

    async def listed(self, start: int, count: int) -> Sequence[Resource]:
        """Return at most `count` of them, from the one at `start`; empty behind the end."""
        ...

    async def read(self, uri: str) -> ResourceText | None:
        """Return the content at `uri`, None when there is nothing."""
        ...


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """A server to be: a name, and what it offers. Tools added later are offered at the next listing."""

    tools: ToolRegistry
    name: str = "dialoom"
    version: str = ""
    instructions: str = ""
    """What a model should know of this server."""
    resources: Resources | None = None
    policy: ToolExecutionPolicy = ToolExecutionPolicy(timeout=600.0, max_result_chars=1_000_000)
