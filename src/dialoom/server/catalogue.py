"""Calls on what a server offers: providers, tool servers, skills, prompts, tools, settings."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec

import dialoom
from dialoom.base.errors import StoreError
from dialoom.base.files import replace_file
from dialoom.base.text import one_line
from dialoom.dialog import Center, ToolSource
from dialoom.dialog.settings import capability_names
from dialoom.mcp import MCPServerConfig
from dialoom.server.model_names import models_of
from dialoom.server.problems import ProblemError, not_found
from dialoom.server.routes import AnyRoute, Call, Nothing, Route
from dialoom.tools import Tool

Fields: TypeAlias = dict[str, Any]
_Name = Annotated[str, msgspec.Meta(max_length=200)]


class ModelName(msgspec.Struct, frozen=True):
    """A model one can choose."""

    provider: str
    model: str
    label: str


class Me(msgspec.Struct, frozen=True):
    """What runs here, and what of it can be used."""

    version: str
    features: dict[str, bool]
    models: list[ModelName]


class ModelLine(msgspec.Struct, frozen=True):
    """A model of a provider."""

    id: str
    capabilities: list[str]


class ProviderLine(msgspec.Struct, frozen=True, kw_only=True):
    """A provider; `error` is why its models are not known. Keys are never shown."""

    id: str
    default: bool
    enabled: bool
    models: list[ModelLine]
    error: str


class ProviderList(msgspec.Struct, frozen=True):
    """The providers there are."""

    items: list[ProviderLine]


class ServerLine(msgspec.Struct, frozen=True, kw_only=True):
    """A tool server as it is configured; values that may be secrets are left out."""

    name: str
    transport: str
    command: str
    arguments: list[str]
    url: str
    enabled: bool
    problems: list[str]


class ServerList(msgspec.Struct, frozen=True):
    """The tool servers there are."""

    items: list[ServerLine]


class ToolLine(msgspec.Struct, frozen=True):
    """A tool, with the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Fields


class ToolList(msgspec.Struct, frozen=True):
    """Tools."""

    items: list[ToolLine]


class ServerTools(msgspec.Struct, frozen=True):
    """What a tool server offers now."""

    tools: list[ToolLine]


class SkillLine(msgspec.Struct, frozen=True):
    """A skill one can switch on."""

    name: str
    description: str
    mode: str
    enabled: bool


class SkillList(msgspec.Struct, frozen=True):
    """Skills."""

    items: list[SkillLine]


class PromptLine(msgspec.Struct, frozen=True):
    """A prompt: a text with gaps like {{ name }}."""

    name: str
    template: str
    role: str
    defaults: dict[str, str]


class PromptList(msgspec.Struct, frozen=True):
    """Prompts."""

    items: list[PromptLine]


class ServerChoices(msgspec.Struct, frozen=True, rename="camel"):
    """What all conversations of a server share: the default provider, and those that are switched off."""

    default_provider: _Name = ""
    disabled_providers: Annotated[list[_Name], msgspec.Meta(max_length=100)] = []


class _Shown(msgspec.Struct, frozen=True):
    """The part of a tool server's redacted config that is shown."""

    command: str = ""
    arguments: list[str] = []
    url: str = ""


class Catalogue:
    """Serves what a center has; `settings_file` keeps the choices people make here, and is read at first.

    Tool servers are shown and tried, never changed: a command is code, and comes from the operator.
    """

    def __init__(
        self,
        center: Center,
        tool_source: ToolSource | None,
        settings_file: Path,
        *,
        features: Mapping[str, bool],
    ) -> None:
        self._center = center
        self._tool_source = tool_source
        self._settings_file = settings_file
        self._features = dict(features)
        if settings_file.exists():
            self._take(_read(settings_file))

    def routes(self) -> list[AnyRoute]:
        server = "/api/v1/mcp-servers/{name}/test"
        return [
            Route("GET", "/api/v1/me", self.me, answer=Me, summary="Show what runs here"),
            Route("GET", "/api/v1/providers", self.providers, answer=ProviderList, summary="List providers"),
            Route("GET", "/api/v1/mcp-servers", self.servers, answer=ServerList, summary="List tool servers"),
            Route("POST", server, self.try_server, answer=ServerTools, summary="Connect a tool server once"),
            Route("GET", "/api/v1/functions", self.functions, answer=ToolList, summary="List tools"),
            Route("GET", "/api/v1/skills", self.skills, answer=SkillList, summary="List skills"),
            Route("GET", "/api/v1/prompts", self.prompts, answer=PromptList, summary="List prompts"),
            Route("GET", "/api/v1/settings", self.settings, answer=ServerChoices, summary="Show settings"),
            Route(
                "PUT", "/api/v1/settings", self.choose, body=ServerChoices, answer=ServerChoices,
                summary="Change settings",
            ),
        ]  # fmt: skip

    async def me(self, _call: Call[Nothing, Nothing]) -> Me:
        lines = [line for line in await self._provider_lines() if line.enabled]
        models = [
            ModelName(line.id, model.id, f"{line.id}: {model.id}") for line in lines for model in line.models
        ]
        return Me(dialoom.__version__, self._features, models)

    async def providers(self, _call: Call[Nothing, Nothing]) -> ProviderList:
        return ProviderList(await self._provider_lines())

    async def servers(self, _call: Call[Nothing, Nothing]) -> ServerList:
        return ServerList([_server_line(each) for each in self._center.mcps])

    async def try_server(self, call: Call[Nothing, Nothing]) -> ServerTools:
        config = next((each for each in self._center.mcps if each.name == call.name("name")), None)
        if config is None:
            raise not_found("tool server", call.name("name"))
        if self._tool_source is None:
            raise ProblemError(501, "no_tool_servers", "this server was started without tool servers")
        connection = await self._tool_source.open(config)
        try:
            return ServerTools([_tool_line(each) for each in connection.tools])
        finally:
            await connection.aclose()

    async def functions(self, _call: Call[Nothing, Nothing]) -> ToolList:
        return ToolList([_tool_line(each) for each in self._center.own_kit().tools.values()])

    async def skills(self, _call: Call[Nothing, Nothing]) -> SkillList:
        return SkillList(
            [SkillLine(each.name, each.description, each.mode, each.enabled) for each in self._center.skills]
        )

    async def prompts(self, _call: Call[Nothing, Nothing]) -> PromptList:
        return PromptList(
            [PromptLine(each.name, each.template, each.role, each.defaults) for each in self._center.prompts]
        )

    async def settings(self, _call: Call[Nothing, Nothing]) -> ServerChoices:
        return self._choices()

    async def choose(self, call: Call[Nothing, ServerChoices]) -> ServerChoices:
        chosen = call.body
        unknown = {chosen.default_provider, *chosen.disabled_providers} - {"", *self._center.provider_ids}
        if unknown:
            raise not_found("provider", min(unknown))
        await asyncio.to_thread(_write, self._settings_file, msgspec.json.encode(chosen))
        self._take(chosen)
        return self._choices()

    def _take(self, chosen: ServerChoices) -> None:
        self._center.set_default_provider(chosen.default_provider)
        for provider_id in self._center.provider_ids:
            self._center.enable_provider(provider_id, enabled=provider_id not in chosen.disabled_providers)

    def _choices(self) -> ServerChoices:
        return msgspec.convert(self._center.to_dict(), ServerChoices)

    async def _provider_lines(self) -> list[ProviderLine]:
        choices = self._choices()
        default = self._center.default_provider
        lines: list[ProviderLine] = []
        for provider_id in self._center.provider_ids:
            provider = self._center.get_provider(provider_id)
            assert provider is not None
            models, error = await models_of(provider)
            lines.append(
                ProviderLine(
                    id=provider_id,
                    default=default is not None and default.id == provider_id,
                    enabled=provider_id not in choices.disabled_providers,
                    models=[ModelLine(each.id, capability_names(each.capabilities)) for each in models],
                    error=error,
                )
            )
        return lines


def _server_line(config: MCPServerConfig) -> ServerLine:
    shown = msgspec.json.decode(config.to_json(redact=True), type=_Shown)
    return ServerLine(
        name=config.name,
        transport=config.transport.name.lower(),
        command=shown.command,
        arguments=shown.arguments,
        url=shown.url,
        enabled=config.enabled,
        problems=list(config.problems()),
    )


def _tool_line(tool: Tool) -> ToolLine:
    return ToolLine(tool.name, tool.description, dict(tool.parameters_schema()))


def _read(path: Path) -> ServerChoices:
    try:
        return msgspec.json.decode(path.read_bytes(), type=ServerChoices)
    except (OSError, msgspec.DecodeError) as error:
        told = one_line(str(error), 120)
        raise StoreError(f"the settings {path} cannot be read ({told}); mend or remove them") from error


def _write(path: Path, content: bytes) -> None:
    try:
        replace_file(path, content)
    except OSError as error:
        reason = (error.strerror or "error").lower()
        raise StoreError(f"the settings {path} cannot be written ({reason}); free some space") from error
