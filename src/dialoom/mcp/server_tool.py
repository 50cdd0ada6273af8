"""A server's tool as one of ours: checked, called, answered for like any other."""

import hashlib
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from dialoom.base.errors import UsageError
from dialoom.llm.json_schema import JsonSchema
from dialoom.mcp.asking import AskingCall, CallsTools
from dialoom.mcp.errors import McpError
from dialoom.mcp.json_shapes import object_of
from dialoom.mcp.results import clean_text, observation_of, observation_of_error
from dialoom.mcp.schema_profiles import SchemaProfile, profiled, without_nulls
from dialoom.tools.context import ToolContext
from dialoom.tools.result import ToolResult, failed
from dialoom.tools.tool import ArgumentsError, Tool, ToolOptions

MAX_RESULT_CHARS: Final = 25_000
AskBefore: TypeAlias = Literal["nothing", "writes", "everything"]
"""Which tools a person allows each time; one that does not say it only reads counts as writing."""

_GUARDED: Final = ("name", "description", "inputSchema", "outputSchema", "annotations")


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of a tool. Hints are its own words: they never widen what a tool may do."""

    name: str
    title: str
    description: str
    schema: dict[str, object]
    output: dict[str, object] | None
    read_only: bool
    idempotent: bool
    digest: str
    """A hash of all a model or a person decides by; another one is another tool under the same name."""
    size: int
    """Bytes of all that."""


def definition_of(fields: Mapping[str, object]) -> ToolDefinition:
    """Read a `Tool` of the protocol, as JSON values. Raises `UsageError` when it has no name or no schema."""
    name, schema, output = fields.get("name"), fields.get("inputSchema"), fields.get("outputSchema")
    if not isinstance(name, str) or not name:
        raise UsageError("it has no name")
    if not isinstance(schema, Mapping):
        raise UsageError("it has no input schema")
    told = object_of(fields.get("annotations"))
    title = fields.get("title") or told.get("title")
    description = fields.get("description")
    guarded = msgspec.json.encode([fields.get(key) for key in _GUARDED], order="sorted")
    return ToolDefinition(
        name=name,
        title=clean_text(title, 200) if isinstance(title, str) else "",
        description=clean_text(description) if isinstance(description, str) else "",
        schema=object_of(fields.get("inputSchema")),
        output=object_of(output) or None,
        read_only=told.get("readOnlyHint") is True,
        idempotent=told.get("readOnlyHint") is True or told.get("idempotentHint") is True,
        digest=hashlib.sha256(guarded).hexdigest(),
        size=len(guarded),
    )


class MCPTool(Tool):
    """One tool of one server, as it was when it was registered.

    `server` and `raw_name` are how the server knows it. Raises `UsageError` for a schema that no call could
    be checked against.
    """

    def __init__(
        self,
        client: CallsTools,
        definition: ToolDefinition,
        *,
        server: str,
        name: str,
        profile: SchemaProfile = "raw",
        options: ToolOptions | None = None,
    ) -> None:
        self.name = name
        self.server = server
        self.raw_name = definition.name
        self.definition = definition
        self.description = definition.description or definition.title
        self.options = options or ToolOptions(max_result_chars=MAX_RESULT_CHARS)
        self.changed = False
        """Its definition is not the one that was accepted."""
        self.blocked = False
        """So a call is refused."""
        self._client = client
        self._shown = profiled(definition.schema, profile)
        plain = profiled(definition.schema, "raw")
        self._restored = profiled(definition.schema, "inline_refs") if profile == "openai_strict" else None
        self._check = None if self._shown == plain else JsonSchema(plain)
        JsonSchema(self._shown)
        self._output = None if definition.output is None else _output_schema(definition.output)

    def parameters_schema(self) -> Mapping[str, object]:
        return self._shown

    async def run(self, args: dict[str, object], ctx: ToolContext) -> ToolResult:
        """Call the tool. What the server answers, and that it did not, is an observation.

        Raises `Interrupted` while the server wants something from a person.
        """
        if self.blocked:
            told = "the server changed this tool, and nobody has accepted the change; use another tool"
            return failed("blocked", tool=self.name, more={"message": told})
        sent = args if self._restored is None else without_nulls(args, self._restored)
        violations = () if self._check is None else self._check.check(sent)
        if violations:
            raise ArgumentsError(violations)
        call = AskingCall(self._client, ctx, server=self.server, tool=self.raw_name)
        try:
            return observation_of(await call.result(sent), tool=self.name, output=self._output)
        except McpError as error:
            return observation_of_error(error, tool=self.name)


def _output_schema(schema: dict[str, object]) -> JsonSchema | None:
    """A schema that cannot be used checks nothing: the answers are still of use."""
    try:
        return JsonSchema(schema)
    except UsageError:
        return None
