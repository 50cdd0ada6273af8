"""What is offered, said in the protocol: the module of our server that stands on the official package."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import quote

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from dialoom.base.cancel import CancelScope
from dialoom.base.ids import new_id
from dialoom.base.text import one_line
from dialoom.graph.errors import Interrupted
from dialoom.llm.files import FilePart
from dialoom.llm.messages import ToolCall
from dialoom.mcp.json_shapes import list_of, object_of
from dialoom.mcp.server.questions import Declined, Form, Questions, StateTooLargeError
from dialoom.mcp.server.sdk_news import MAX_URIS, Followers
from dialoom.mcp.server.sdk_offers import Context, Offers
from dialoom.mcp.server.served import Served
from dialoom.tools.context import Progress, ToolRun
from dialoom.tools.result import ToolResult, failed
from dialoom.tools.tool import Tool

MAX_QUESTIONS: Final = 20
MAX_NOTICES: Final = 100
"""So many signs of progress of one call may wait to be sent; what comes on top is dropped."""
STATE_LIFETIME: Final = 7 * 24 * 3600.0
"""Seconds a person has to answer."""

_BLOCKS: Final = TypeAdapter[types.ContentBlock](types.ContentBlock)
_ASKING: Final = types.ClientCapabilities(elicitation=types.ElicitationCapability())
_TOO_EARLY: Final = types.ErrorData(code=types.INVALID_PARAMS, message="Invalid request parameters", data="")
"""What the package answers to a request before `initialize`; other errors of that name never pass here."""
_APPROVAL: Final[dict[str, object]] = {
    "type": "object",
    "properties": {"approve": {"type": "boolean", "title": "Run it"}},
    "required": ["approve"],
}


def sdk_server(served: Served, *, state_key: bytes | None = None) -> Server[Any]:
    """Return a server of the official package that offers `served`.

    `state_key`, 32 bytes or more, seals what clients keep for us while they ask a person; without one it is
    made anew with each server, and an answer after a restart is refused.
    """
    face, offers, news = _Face(served), Offers(served), served.news
    readable, prompting, telling = served.resources is not None, bool(served.prompts), news is not None
    server: Server[Any] = _Server(
        served.name,
        version=served.version,
        instructions=served.instructions or None,
        lifespan=_quiet if news is None else lambda _: Followers().following(news),
        get_tool_input_schema=face.input_schema,
        on_list_tools=offers.list_tools,
        on_call_tool=face.call_tool,
        on_list_resources=offers.list_resources if readable else None,
        on_list_resource_templates=offers.list_templates if readable else None,
        on_read_resource=offers.read_resource if readable else None,
        on_list_prompts=offers.list_prompts if prompting else None,
        on_get_prompt=offers.get_prompt if prompting else None,
        on_completion=offers.complete if served.complete else None,
        on_subscriptions_listen=_listen if telling else None,
        on_subscribe_resource=_subscribe if telling and readable else None,
        on_unsubscribe_resource=_unsubscribe if telling and readable else None,
    )
    if telling:
        server.add_notification_handler("notifications/initialized", types.NotificationParams, _welcome)
    security = (
        RequestStateSecurity.ephemeral(ttl=STATE_LIFETIME)
        if state_key is None
        else RequestStateSecurity(keys=[state_key], ttl=STATE_LIFETIME)
    )
    server.middleware.append(_initialize_first)
    server.middleware.append(RequestStateBoundary(security, default_audience=served.name))
    return server


async def _initialize_first(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Say what is missing where the package says no more than that a request came before `initialize`."""
    try:
        return await call_next(ctx)
    except MCPError as error:
        if error.error != _TOO_EARLY:
            raise
        told = f"{one_line(ctx.method, 80)} came before initialize; send initialize first"
        raise MCPError(code=error.code, message=told) from error


class _Server(Server[Any]):
    """A server that says of itself whether it tells of changes."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        tells = self.get_request_handler("subscriptions/listen") is not None
        told = notification_options or NotificationOptions(tells, tells, tells)
        return super().create_initialization_options(told, experimental_capabilities, extensions)


@asynccontextmanager
async def _quiet(_server: Server[Any]) -> AsyncGenerator[None]:
    """The life of a server that tells of nothing."""
    yield


async def _listen(
    ctx: Context, params: types.SubscriptionsListenRequestParams
) -> types.SubscriptionsListenResult:
    return await _followers(ctx).listen(ctx, params)


async def _welcome(ctx: Context, _params: types.NotificationParams) -> None:
    _followers(ctx).welcome(ctx.session)


async def _subscribe(ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
    if not _followers(ctx).follow(ctx.session, params.uri):
        raise MCPError(code=types.INVALID_REQUEST, message=f"more than {MAX_URIS} resources are followed")
    return types.EmptyResult()


async def _unsubscribe(ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    _followers(ctx).forget(ctx.session, params.uri)
    return types.EmptyResult()


def _followers(ctx: Context) -> Followers:
    followers = ctx.lifespan_context
    assert isinstance(followers, Followers)
    return followers


class _Face:
    """The handler of calls. One that makes no sense is refused; what a tool does with it is its result."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        return next((spec.parameters for spec in self._served.tools.specs() if spec.name == name), None)

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
    shown = _shown(result)
    text = [types.TextContent(text=result.content)] if result.content or not shown else []
    return types.CallToolResult(
        content=[*text, *shown], structured_content=structured, is_error=result.is_error
    )


def _shown(result: ToolResult) -> Sequence[types.ContentBlock]:
    """Return the files, then what else a card holds in blocks of the protocol; other cards are not for it."""
    found = [_block_of(file) for file in result.files]
    known = [block.model_dump(exclude={"annotations", "meta"}) for block in found]
    fields = object_of(result.card)
    if fields.get("type") != "mcp_result":
        return found
    for block in list_of(fields.get("blocks")):
        try:
            content = _BLOCKS.validate_python(block)
        except ValidationError:
            continue
        is_known = content.model_dump(exclude={"annotations", "meta"}) in known
        if not is_known and not isinstance(content, types.TextContent):
            found.append(content)
    return found


def _block_of(file: FilePart) -> types.ContentBlock:
    match file.kind:
        case "image":
            return types.ImageContent(data=file.base64, mime_type=file.media_type)
        case "audio":
            return types.AudioContent(data=file.base64, mime_type=file.media_type)
        case "document":
            named = quote(file.name) or "document"
            blob = types.BlobResourceContents(
                uri=f"attachment:{named}", blob=file.base64, mime_type=file.media_type
            )
            return types.EmbeddedResource(resource=blob)


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
