"""What is offered, said in the protocol: the module of our server that stands on the official package."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from dialoom.base.cancel import CancelScope
from dialoom.base.ids import new_id
from dialoom.base.text import one_line
from dialoom.graph.errors import Interrupted
from dialoom.llm.messages import ToolCall
from dialoom.mcp.json_shapes import list_of, object_of
from dialoom.mcp.server.questions import Declined, Form, Questions, StateTooLargeError
from dialoom.mcp.server.served import Resource, Served
from dialoom.tools.context import Progress, ToolRun
from dialoom.tools.result import ToolResult, failed
from dialoom.tools.tool import Tool

PAGE: Final = 100
MAX_QUESTIONS: Final = 20
MAX_NOTICES: Final = 100
"""So many signs of progress of one call may wait to be sent; what comes on top is dropped."""
STATE_LIFETIME: Final = 7 * 24 * 3600.0
"""Seconds a person has to answer."""

_BLOCKS: Final = TypeAdapter[types.ContentBlock](types.ContentBlock)
_ASKING: Final = types.ClientCapabilities(elicitation=types.ElicitationCapability())
_APPROVAL: Final[dict[str, object]] = {
    "type": "object",
    "properties": {"approve": {"type": "boolean", "title": "Run it"}},
    "required": ["approve"],
}

Context = ServerRequestContext[Any, Any]


def sdk_server(served: Served, *, state_key: bytes | None = None) -> Server[Any]:
    """Return a server of the official package that offers `served`.

    `state_key`, 32 bytes or more, seals what clients keep for us while they ask a person; without one it is
    made anew with each server, and an answer after a restart is refused.
    """
    face = _Face(served)
    readable = served.resources is not None
    server: Server[Any] = Server(
        served.name,
        version=served.version,
        instructions=served.instructions or None,
        get_tool_input_schema=face.input_schema,
        on_list_tools=face.list_tools,
        on_call_tool=face.call_tool,
        on_list_resources=face.list_resources if readable else None,
        on_list_resource_templates=face.list_templates if readable else None,
        on_read_resource=face.read_resource if readable else None,
    )
    security = (
        RequestStateSecurity.ephemeral(ttl=STATE_LIFETIME)
        if state_key is None
        else RequestStateSecurity(keys=[state_key], ttl=STATE_LIFETIME)
    )
    server.middleware.append(RequestStateBoundary(security, default_audience=served.name))
    return server


class _Face:
    """The handlers. A request that makes no sense is refused; what a tool does with it is its result."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        return next((spec.parameters for spec in self._served.tools.specs() if spec.name == name), None)

    async def list_tools(
        self, _ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        start = _start(params)
        specs = self._served.tools.specs()
        page = [
            types.Tool(
                name=spec.name,
                description=spec.description or None,
                input_schema=dict(spec.parameters),
                annotations=_hints(self._served.tools.get(spec.name)),
            )
            for spec in specs[start : start + PAGE]
        ]
        return types.ListToolsResult(tools=page, next_cursor=_next(start, len(specs) - start))

    async def list_resources(
        self, _ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        assert self._served.resources is not None
        start = _start(params)
        found = await self._served.resources.listed(start, PAGE + 1)
        page = [_resource(each) for each in found[:PAGE]]
        return types.ListResourcesResult(resources=page, next_cursor=_next(start, len(found)))

    async def list_templates(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(
        self, _ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        assert self._served.resources is not None
        found = await self._served.resources.read(params.uri)
        if found is None:
            raise MCPError(
                code=types.INVALID_PARAMS, message="resource not found", data={"uri": one_line(params.uri)}
            )
        text = types.TextResourceContents(uri=found.uri, text=found.text, mime_type=found.mime_type)
        return types.ReadResourceResult(contents=[text])

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        tool = self._served.tools.get(params.name)
        if tool is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"unknown tool: {one_line(params.name, 80)}")
        replies = {
            key: reply.model_dump(mode="json") for key, reply in (params.input_responses or {}).items()
        }
        questions, progress = Questions(params.request_state, replies), _ProgressLine(ctx)
        call = ToolCall(id=new_id(), name=params.name, arguments=params.arguments or {})
        for _ in range(MAX_QUESTIONS):
            try:
                return _said(await self._run(tool, call, questions=questions, progress=progress))
            except Declined:
                return _said(
                    failed("declined", tool=tool.name, more={"message": "the person gave no answer"})
                )
            except Interrupted:
                form = questions.open
            assert form is not None
            modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
            if not ctx.session.check_client_capability(_ASKING):
                return _cannot_ask(tool, modern=modern)
            if modern:
                return _wanted(form, questions, tool=tool)
            reply = await ctx.session.elicit_form(form.message, form.schema, ctx.request_id)
            questions.reply(form.key, reply.model_dump(mode="json"))
        told = f"it asked more than {MAX_QUESTIONS} times"
        return _said(failed("max_questions", tool=tool.name, more={"message": told}))

    async def _run(
        self, tool: Tool, call: ToolCall, *, questions: Questions, progress: "_ProgressLine"
    ) -> ToolResult:
        """Run the call and pass its progress on. Raises `Interrupted` and `Declined`, never in a group."""
        if tool.options.requires_approval and not self._served.tools.validate(
            tool.name, call.arguments or {}
        ):
            words = f"allow {tool.name} with {_told(call)}?"
            wanted = {"message": words, "schema": _APPROVAL}
            if not questions.ask(wanted, key="approval", refused="").get("approve"):
                return failed("denied", tool=tool.name, more={"message": "a person did not allow this call"})
        notices: asyncio.Queue[Progress | None] = asyncio.Queue(MAX_NOTICES)
        scope = CancelScope()
        run = ToolRun(cancel=scope, journal=questions, on_progress=lambda notice: _put(notices, notice))

        async def execute() -> ToolResult | BaseException:
            try:
                return await self._served.tools.execute(call, run, policy=self._served.policy)
            except (Interrupted, Declined) as stop:
                return stop
            finally:
                await notices.put(None)

        async with asyncio.TaskGroup() as group:
            executing = group.create_task(execute())
            while (notice := await notices.get()) is not None:
                await progress.show(notice.value)
        outcome = executing.result()
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def _put(notices: "asyncio.Queue[Progress | None]", notice: Progress) -> None:
    if notices.qsize() < MAX_NOTICES - 1:  # one place is kept for the end
        notices.put_nowait(notice)


class _ProgressLine:
    """The progress of one call, which the protocol wants to grow with each notice."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._last = 0.0

    async def show(self, value: object) -> None:
        """Send `{"progress", "total", "message"}`, or any other value as the message."""
        fields = object_of(value) or {"message": str(value)}
        given, total, message = fields.get("progress"), fields.get("total"), fields.get("message")
        wanted = float(given) if isinstance(given, int | float) else 0.0
        self._last = wanted if wanted > self._last else self._last + 1
        await self._ctx.session.report_progress(
            self._last,
            float(total) if isinstance(total, int | float) else None,
            one_line(message, 300) if isinstance(message, str) else None,
        )


def _wanted(
    form: Form, questions: Questions, *, tool: Tool
) -> types.InputRequiredResult | types.CallToolResult:
    try:
        state = questions.state()
    except StateTooLargeError as error:
        return _said(failed(error.code, tool=tool.name, more={"message": str(error)}))
    params = types.ElicitRequestFormParams(message=form.message, requested_schema=form.schema)
    request = types.ElicitRequest(params=params)
    return types.InputRequiredResult(input_requests={form.key: request}, request_state=state)


def _said(result: ToolResult) -> types.CallToolResult:
    structured = result.structured
    if structured is not None and not isinstance(structured, dict):
        structured = {"result": structured}  # older clients take an object only
    shown = _shown(result.card)
    text = [types.TextContent(text=result.content)] if result.content or not shown else []
    return types.CallToolResult(
        content=[*text, *shown], structured_content=structured, is_error=result.is_error
    )


def _shown(card: object) -> Sequence[types.ContentBlock]:
    """Return the pictures and links of a card that holds blocks of the protocol; others are not for it."""
    fields = object_of(card)
    if fields.get("type") != "mcp_result":
        return ()
    found: list[types.ContentBlock] = []
    for block in list_of(fields.get("blocks")):
        try:
            content = _BLOCKS.validate_python(block)
        except ValidationError:
            continue
        if not isinstance(content, types.TextContent):
            found.append(content)
    return found


def _cannot_ask(tool: Tool, *, modern: bool) -> types.CallToolResult:
    """Say that the client cannot ask a person: in the result, or as the error that today's clients know."""
    told = f"{tool.name} has to ask a person, and this client cannot"
    if not modern:
        return _said(failed("cannot_ask", tool=tool.name, more={"message": told}))
    needed = types.MissingRequiredClientCapabilityErrorData(required_capabilities=_ASKING)
    data = needed.model_dump(mode="json", by_alias=True, exclude_none=True)
    raise MCPError(code=types.MISSING_REQUIRED_CLIENT_CAPABILITY, message=told, data=data)


def _told(call: ToolCall) -> str:
    return one_line(str(call.arguments), 1000)


def _hints(tool: Tool | None) -> types.ToolAnnotations | None:
    if tool is None or not tool.options.idempotent:
        return None
    return types.ToolAnnotations(idempotent_hint=True)


def _resource(resource: Resource) -> types.Resource:
    return types.Resource(
        uri=resource.uri,
        name=resource.name,
        title=resource.title or None,
        description=resource.description or None,
        mime_type=resource.mime_type,
    )


def _start(params: types.PaginatedRequestParams | None) -> int:
    cursor = params.cursor if params is not None else None
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise MCPError(code=types.INVALID_PARAMS, message="there is no such cursor")
    return int(cursor)


def _next(start: int, left: int) -> str | None:
    return str(start + PAGE) if left > PAGE else None
