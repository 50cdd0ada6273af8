"""What a server offers: values and protocols, without the protocol's own package."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import msgspec

from dialoom.mcp.server.news import News
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


class ResourceBytes(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a resource that is no text, such as a picture."""

    uri: str
    data: bytes
    mime_type: str


Content: TypeAlias = ResourceText | ResourceBytes


class ResourceTemplate(Resource, frozen=True, kw_only=True):
    """Resources that are alike: `uri` has a `{name}` for each part that differs."""


class Resources(Protocol):
    """Readable things, listed in a steady order."""

    async def listed(self, start: int, count: int) -> Sequence[Resource]:
        """Return at most `count` of them, from the one at `start`; empty behind the end."""
        ...

    async def read(self, uri: str) -> Content | None:
        """Return the content at `uri`, None when there is nothing."""
        ...


class PromptArgument(msgspec.Struct, frozen=True, kw_only=True):
    """A blank in a prompt."""

    name: str
    description: str = ""
    required: bool = True


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """Words that a person sends to a model by name, such as a command of a chat program.

    `fill` takes the arguments that were given, the required ones among them, and returns what is said in
    the person's name: words, and texts or pictures to read. It raises `DialoomError` for what it cannot use.
    """

    name: str
    fill: "Callable[[Mapping[str, str]], Awaitable[Sequence[str | Content]]]"
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


class Blank(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is typing: an argument of the prompt, or a part of the template, that `of` names.

    `known` are the other arguments so far.
    """

    of: str
    argument: str
    begun: str
    known: Mapping[str, str] = {}


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """A server to be: a name, and what it offers. Tools added later are offered at the next listing."""

    tools: ToolRegistry
    name: str = "dialoom"
    version: str = ""
    instructions: str = ""
    """What a model should know of this server."""
    read_only: frozenset[str] = frozenset()
    """The tools that change nothing; hosts may call these without asking a person."""
    resources: Resources | None = None
    templates: tuple[ResourceTemplate, ...] = ()
    """Of `resources`."""
    prompts: tuple[Prompt, ...] = ()
    complete: Callable[[Blank], Awaitable[Sequence[str]]] | None = None
    """Says what a blank of a prompt or a template may become, the likeliest first."""
    news: News | None = None
    """Tells clients of changes; without it they have to ask again to see one."""
    policy: ToolExecutionPolicy = ToolExecutionPolicy(timeout=600.0, max_result_chars=1_000_000)
