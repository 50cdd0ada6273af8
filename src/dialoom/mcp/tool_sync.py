"""The tools of a server in a registry: brought in, kept up to date, taken out, and nobody else's touched."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, Protocol, TypeAlias

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.mcp.asking import CallsTools, DumpsItself, fields_of
from dialoom.mcp.config import MCPServerConfig
from dialoom.mcp.schema_profiles import SchemaProfile
from dialoom.mcp.server_tool import MAX_RESULT_CHARS, AskBefore, MCPTool, ToolDefinition, definition_of
from dialoom.mcp.tool_names import tool_name
from dialoom.tools.registry import ToolRegistry
from dialoom.tools.tool import ToolOptions

_log = logging.getLogger("dialoom.mcp")

MAX_TOOLS: Final = 1000
MAX_BYTES: Final = 4 * 1024 * 1024
"""Of the definitions of one server together: each is copied, checked and shown to a model."""
_TOO_MUCH: Final = f"is more than the {MAX_TOOLS} tools or {MAX_BYTES} bytes that one server may have"

OnChange: TypeAlias = Literal["ask", "allow", "block"]
"""What becomes of a tool whose definition changed: a person is asked before each call, it is taken as it is,
or calls are refused."""


class ToolNameCollisionError(UsageError):
    """A server's tool would take a name that is in use. Nothing was changed; give another prefix."""

    code = "tool_name_collision"


class ToolServer(CallsTools, Protocol):
    """The part of a client that a sync needs besides calling."""

    @property
    def config(self) -> MCPServerConfig: ...

    async def list_tools(self) -> Sequence[DumpsItself]: ...

    def tools_changed(self) -> bool: ...

    def clear_list_changed(self, kind: Literal["tools"]) -> None: ...


class SyncReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a sync did, by the names that models see. `skipped` has the server's names, and why."""

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.added or self.updated or self.removed)


class ToolDefinitionChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A server says something else of a tool than it did when the tool was taken in."""

    server: str
    tool: str
    before: str
    after: str
    """Digests of the definitions."""


class SyncOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a server's tools become ours."""

    profile: SchemaProfile = "raw"
    ask_before: AskBefore = "nothing"
    on_change: OnChange = "ask"
    """For tools that may write; one that said, before and after, that it only reads is taken as it is."""
    trust_hints: bool = False
    """Believe a tool that says it may be called twice, so that a call cut off by a crash is made again."""
    known: Mapping[str, str] = {}
    """Digests of definitions that were accepted before, by name: `MCPToolSync.digests` of an earlier run."""
    on_definition_changed: Callable[[ToolDefinitionChanged], None] | None = None


class MCPToolSync:
    """Keeps the tools of one server in `registry`. Keep the object for as long as they are to be kept right.

    Only tools that this object registered are replaced or removed. When the server is down they stay, so
    that a model's prompt stays the same, and answer that it is unavailable.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        client: ToolServer,
        prefix: str | None = None,
        *,
        options: SyncOptions | None = None,
    ) -> None:
        self._registry = registry
        self._client = client
        self._prefix = client.config.prefix if prefix is None else prefix
        self._options = options or SyncOptions()
        self._own: dict[str, MCPTool] = {}
        self._accepted = dict(self._options.known)
        self._stale = True

    @property
    def digests(self) -> dict[str, str]:
        """The accepted definitions by name; give them to the next run as `SyncOptions.known`."""
        return dict(self._accepted)

    async def sync(self) -> SyncReport:
        """Bring the registry in line with what the server lists now, and say what changed.

        Raises `McpError` when it cannot list and `ToolNameCollisionError` when a name is taken; the registry
        is as it was then. Not to be called from a handler of the same client's notices.
        """
        self._stale = True
        self._client.clear_list_changed("tools")  # first, so that a change while listing is not missed
        listed = await self._client.list_tools()
        report, tools = self._plan([fields_of(tool) for tool in listed])
        if report.changed:
            self._apply(tools)
        self._stale = False
        return report

    async def sync_if_changed(self) -> SyncReport | None:
        """`sync` when the server announced a change since the last one that worked; else None."""
        if not self._stale and not self._client.tools_changed():
            return None
        return await self.sync()

    def accept(self, name: str) -> None:
        """Take the tool `name` as it is now: it is not asked for or refused for its change any more.

        Raises `UsageError` when there is no such tool of this server.
        """
        tool = self._own.get(name)
        if tool is None:
            raise UsageError(
                f"there is no tool {one_line(name, 80)!r} of this server; sync first, or see `digests`"
            )
        self._accepted[name] = tool.definition.digest
        tool.changed = tool.blocked = False
        tool.options = self._tool_options(tool.definition, changed=False)

    def remove_all(self) -> None:
        """Take this server's tools out of the registry."""
        self._apply({})
        self._stale = True

    def _plan(self, listed: Sequence[Mapping[str, object]]) -> tuple[SyncReport, dict[str, MCPTool]]:
        """Return what a sync comes to, and the tools of the server from then on; changes nothing."""
        tools, skipped = self._read(listed)
        digests = {name: tool.definition.digest for name, tool in self._own.items()}
        both = [name for name in tools if name in digests]
        same = {name for name in both if digests[name] == tools[name].definition.digest}
        report = SyncReport(
            added=tuple(name for name in tools if name not in digests),
            updated=tuple(name for name in both if name not in same),
            removed=tuple(name for name in digests if name not in tools),
            unchanged=tuple(name for name in both if name in same),
            skipped=skipped,
        )
        return report, {name: self._own[name] if name in same else tool for name, tool in tools.items()}

    def _read(
        self, listed: Sequence[Mapping[str, object]]
    ) -> tuple[dict[str, MCPTool], tuple[tuple[str, str], ...]]:
        """Return the tools that are offered, by name, and those that are not, with the reason.

        Raises `ToolNameCollisionError`.
        """
        tools: dict[str, MCPTool] = {}
        skipped: list[tuple[str, str]] = []
        room = MAX_BYTES
        for fields in listed:
            try:
                definition = definition_of(fields)
                reason = self._left_out(definition, tools)
                if reason is None and (len(tools) == MAX_TOOLS or definition.size > room):
                    reason = _TOO_MUCH
                if reason is None:
                    tool = self._tool(definition)
                    tools[tool.name] = tool
                    room -= definition.size
            except ToolNameCollisionError:
                raise
            except UsageError as error:
                reason = str(error)
            if reason is not None:
                skipped.append((one_line(str(fields.get("name")), 80), reason))
        return tools, tuple(skipped)

    def _left_out(self, definition: ToolDefinition, tools: Mapping[str, MCPTool]) -> str | None:
        """Return why a tool is not offered. Raises `ToolNameCollisionError` when its name is taken."""
        config = self._client.config
        if config.allow_tools is not None and definition.name not in config.allow_tools:
            return "is not among the allowed tools"
        if definition.name in config.deny_tools:
            return "is among the denied tools"
        name = tool_name(config.name, definition.name, self._prefix)
        if name in tools and tools[name].raw_name == definition.name:
            return "is listed twice; the first one counts"
        if name in tools or self._registry.get(name) not in {None, self._own.get(name)}:
            shown = f"tool {one_line(definition.name, 80)!r} of mcp server {one_line(config.name, 80)!r}"
            raise ToolNameCollisionError(
                f"{shown} would be called {name!r}, which is taken; give the server another prefix"
            )
        return None

    def _tool(self, definition: ToolDefinition) -> MCPTool:
        config = self._client.config
        name = tool_name(config.name, definition.name, self._prefix)
        changed = self._is_suspicious(name, definition)
        tool = MCPTool(
            self._client,
            definition,
            server=config.name,
            name=name,
            profile=self._options.profile,
            options=self._tool_options(definition, changed=changed),
        )
        tool.changed, tool.blocked = changed, changed and self._options.on_change == "block"
        return tool

    def _is_suspicious(self, name: str, definition: ToolDefinition) -> bool:
        """Whether the definition is not the accepted one and that matters."""
        accepted = self._accepted.get(name)
        if accepted is None or accepted == definition.digest or self._options.on_change == "allow":
            return False
        before = self._own.get(name)
        return not (definition.read_only and before is not None and before.definition.read_only)

    def _tool_options(self, definition: ToolDefinition, *, changed: bool) -> ToolOptions:
        asks = {"nothing": False, "writes": not definition.read_only, "everything": True}
        return ToolOptions(
            requires_approval=changed or asks[self._options.ask_before],
            timeout=self._client.config.timeouts.total,
            idempotent=self._options.trust_hints and definition.idempotent,
            max_result_chars=MAX_RESULT_CHARS,
        )

    def _apply(self, tools: dict[str, MCPTool]) -> None:
        """Put `tools` in place of ours, in the server's order, in one go: nothing is awaited in between."""
        before = {name: tool.definition.digest for name, tool in self._own.items()}
        for name, tool in self._own.items():
            if self._registry.get(name) is tool:
                self._registry.remove(name)
        for tool in tools.values():
            self._registry.add(tool)
        self._own = tools
        for name, tool in tools.items():
            after = tool.definition.digest
            accepted = self._accepted.setdefault(name, after)
            if accepted != after and before.get(name) != after:
                self._tell(name, accepted, after)
            if not tool.changed:
                self._accepted[name] = after

    def _tell(self, name: str, before: str, after: str) -> None:
        server = self._client.config.name
        _log.warning("tool definition changed", extra={"server": server, "tool": name})
        if self._options.on_definition_changed is not None:
            event = ToolDefinitionChanged(server=server, tool=name, before=before, after=after)
            self._options.on_definition_changed(event)


async def add_mcp_tools(
    registry: ToolRegistry,
    client: ToolServer,
    prefix: str | None = None,
    *,
    options: SyncOptions | None = None,
) -> SyncReport:
    """Register the tools that a server has now, once: they stay as they were registered.

    Raises as `MCPToolSync.sync` does.
    """
    return await MCPToolSync(registry, client, prefix, options=options).sync()
