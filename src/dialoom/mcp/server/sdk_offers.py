"""The lists of what is served, and what is read of them, said in the protocol."""

import base64
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from dialoom.base.errors import DialoomError
from dialoom.base.text import one_line
from dialoom.mcp.server.served import (
    Blank,
    Content,
    Prompt,
    Resource,
    ResourceBytes,
    Served,
)
from dialoom.tools.tool import Tool

PAGE: Final = 100
MOST_COMPLETIONS: Final = 100
"""What the protocol allows in one answer."""

Context: TypeAlias = ServerRequestContext[Any, Any]
Paged: TypeAlias = types.PaginatedRequestParams | None


class Offers:
    """The handlers of lists, resources, prompts and completions. What makes no sense is refused."""

    def __init__(self, served: Served) -> None:
        self._served = served

    async def list_tools(self, _ctx: Context, params: Paged) -> types.ListToolsResult:
        start = _start(params)
        specs = self._served.tools.specs()
        page = [
            types.Tool(
                name=spec.name,
                description=spec.description or None,
                input_schema=dict(spec.parameters),
                annotations=self._hints(self._served.tools.get(spec.name)),
            )
            for spec in specs[start : start + PAGE]
        ]
        return types.ListToolsResult(tools=page, next_cursor=_next(start, len(specs) - start))

    async def list_resources(self, _ctx: Context, params: Paged) -> types.ListResourcesResult:
        assert self._served.resources is not None
        start = _start(params)
        found = await self._served.resources.listed(start, PAGE + 1)
        page = [types.Resource(uri=each.uri, **_labels(each)) for each in found[:PAGE]]
        return types.ListResourcesResult(resources=page, next_cursor=_next(start, len(found)))

    async def list_templates(self, _ctx: Context, params: Paged) -> types.ListResourceTemplatesResult:
        start, templates = _start(params), self._served.templates
        page = [
            types.ResourceTemplate(uri_template=each.uri, **_labels(each))
            for each in templates[start : start + PAGE]
        ]
        return types.ListResourceTemplatesResult(
            resource_templates=page, next_cursor=_next(start, len(templates) - start)
        )

    async def read_resource(
        self, _ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        assert self._served.resources is not None
        found = await self._served.resources.read(params.uri)
        if found is None:
            raise _refused("resource not found", {"uri": one_line(params.uri)})
        return types.ReadResourceResult(contents=[_contents(found)])

    async def list_prompts(self, _ctx: Context, params: Paged) -> types.ListPromptsResult:
        start, prompts = _start(params), self._served.prompts
        page = [_prompt(each) for each in prompts[start : start + PAGE]]
        return types.ListPromptsResult(prompts=page, next_cursor=_next(start, len(prompts) - start))

    async def get_prompt(self, _ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        prompt = next((each for each in self._served.prompts if each.name == params.name), None)
        if prompt is None:
            raise _refused(f"unknown prompt: {one_line(params.name, 80)}")
        given = params.arguments or {}
        lacking = [each.name for each in prompt.arguments if each.required and not given.get(each.name)]
        if lacking:
            raise _refused(f"prompt {prompt.name} lacks {', '.join(lacking)}")
        try:
            said = await prompt.fill(given)
        except DialoomError as error:
            raise _refused(one_line(str(error), 500)) from error
        messages = [types.PromptMessage(role="user", content=_block(each)) for each in said]
        return types.GetPromptResult(description=prompt.description or None, messages=messages)

    async def complete(self, _ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        assert self._served.complete is not None
        match params.ref:
            case types.PromptReference(name=name):
                of = name
            case types.ResourceTemplateReference(uri=uri):
                of = uri
        blank = Blank(
            of=of,
            argument=params.argument.name,
            begun=params.argument.value,
            known=(params.context.arguments if params.context else None) or {},
        )
        values = await self._served.complete(blank)
        shown = types.Completion(
            values=list(values[:MOST_COMPLETIONS]), total=len(values), has_more=len(values) > MOST_COMPLETIONS
        )
        return types.CompleteResult(completion=shown)

    def _hints(self, tool: Tool | None) -> types.ToolAnnotations | None:
        if tool is not None and tool.name in self._served.read_only:
            return types.ToolAnnotations(read_only_hint=True)
        if tool is None or not tool.options.idempotent:
            return None
        return types.ToolAnnotations(idempotent_hint=True)


def _refused(message: str, data: dict[str, str] | None = None) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS, message=message, data=data)


def _labels(resource: Resource) -> dict[str, Any]:
    """Return what the protocol says alike of a resource and of a template."""
    return {
        "name": resource.name,
        "title": resource.title or None,
        "description": resource.description or None,
        "mime_type": resource.mime_type,
    }


def _prompt(prompt: Prompt) -> types.Prompt:
    arguments = [
        types.PromptArgument(name=each.name, description=each.description or None, required=each.required)
        for each in prompt.arguments
    ]
    return types.Prompt(
        name=prompt.name,
        title=prompt.title or None,
        description=prompt.description or None,
        arguments=arguments,
    )


def _contents(content: Content) -> types.TextResourceContents | types.BlobResourceContents:
    if isinstance(content, ResourceBytes):
        blob = base64.b64encode(content.data).decode()
        return types.BlobResourceContents(uri=content.uri, blob=blob, mime_type=content.mime_type)
    return types.TextResourceContents(uri=content.uri, text=content.text, mime_type=content.mime_type)


def _block(said: str | Content) -> types.ContentBlock:
    """Return what a person says as a block; a picture is shown as one."""
    if isinstance(said, str):
        return types.TextContent(text=said)
    if isinstance(said, ResourceBytes) and said.mime_type.startswith("image/"):
        return types.ImageContent(data=base64.b64encode(said.data).decode(), mime_type=said.mime_type)
    return types.EmbeddedResource(resource=_contents(said))


def _start(params: Paged) -> int:
    cursor = params.cursor if params is not None else None
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise _refused("there is no such cursor")
    return int(cursor)


def _next(start: int, left: int) -> str | None:
    return str(start + PAGE) if left > PAGE else None
