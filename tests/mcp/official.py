"""A peer made of the official SDK, in this process: its server, and its client behind our protocol."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp.client.session import ClientRequestContext
from mcp.server.lowlevel.server import Server
from pydantic import TypeAdapter

from dialoom.mcp import MCPAnswers, MCPClient, MCPOptions
from dialoom.mcp.config import MCPServerConfig
from dialoom.mcp.inputs import Elicit, OnProgress
from mcp import Client, MCPError

ANY = {"type": "object", "properties": {"words": {"type": "string"}}}
_RESPONSES = TypeAdapter[dict[str, Any]](types.InputResponses)


def tool(
    name: str, description: str = "", schema: Mapping[str, Any] | None = None, **more: Any
) -> types.Tool:
    return types.Tool(name=name, description=description, input_schema=dict(schema or ANY), **more)


class Peer:
    """A server whose tools a test can change, and which remembers how it was called."""

    def __init__(self, *tools: types.Tool) -> None:
        self.tools = list(tools)
        self.calls: list[tuple[str, dict[str, Any] | None]] = []
        self.listings = 0
        self.broken = False
        self.waiting = asyncio.Event()
        self.stopped = asyncio.Event()
        self.server: Server[Any] = Server("peer", on_list_tools=self._list, on_call_tool=self._call)

    async def _list(self, ctx: Any, params: Any) -> types.ListToolsResult:
        self.listings += 1
        if self.broken:
            raise MCPError(code=types.INTERNAL_ERROR, message="it lists nothing today")
        return types.ListToolsResult(tools=self.tools)

    async def _call(self, ctx: Any, params: types.CallToolRequestParams) -> Any:
        self.calls.append((params.name, params.arguments))
        answer = await getattr(self, f"do_{params.name}")(ctx, params)
        return answer if not isinstance(answer, str) else said(answer)

    async def do_echo(self, ctx: Any, params: types.CallToolRequestParams) -> str:
        return f"echo: {(params.arguments or {}).get('words')}"

    async def do_wait(self, ctx: Any, params: types.CallToolRequestParams) -> str:
        self.waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        return "never"

    async def do_progress(self, ctx: Any, params: types.CallToolRequestParams) -> str:
        await ctx.session.report_progress(1, 2, "half")
        return "done"

    async def do_ask(self, ctx: Any, params: types.CallToolRequestParams) -> Any:
        """Ask for a name and then, by the state sent back, for a colour."""
        answers = params.input_responses or {}
        if params.request_state is None:
            return wants("name", state="asked for a name")
        if "name" in answers and answers["name"].action != "accept":
            return "nobody"
        if params.request_state == "asked for a name":
            return wants("colour", state=f"{answers['name'].content['value']}")
        return f"{params.request_state} likes {answers['colour'].content['value']}"

    async def do_old_ask(self, ctx: Any, params: types.CallToolRequestParams) -> str:
        """Ask while the call hangs, as servers before 2026-07-28 do."""
        answer = await ctx.session.elicit("your name?", form("name").params.requested_schema)
        return f"hello {answer.content['value']}" if answer.action == "accept" else answer.action


def said(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=words)])


def form(field: str) -> types.ElicitRequest:
    schema = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
    params = types.ElicitRequestFormParams(message=f"your {field}?", requested_schema=schema)
    return types.ElicitRequest(params=params)


def wants(field: str, *, state: str) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests={field: form(field)}, request_state=state)


class OfficialClient:
    """The official client, as the part of one that a sync needs."""

    def __init__(self, client: Client, config: MCPServerConfig) -> None:
        self.client = client
        self.config = config
        self.changed = False
        self.elicit: Elicit | None = None

    async def list_tools(self) -> Sequence[types.Tool]:
        return (await self.client.list_tools(cache_mode="bypass")).tools

    def tools_changed(self) -> bool:
        return self.changed

    def clear_list_changed(self, kind: str) -> None:
        self.changed = False

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object],
        *,
        on_progress: OnProgress | None = None,
        on_elicit: Elicit | None = None,
        input_responses: Mapping[str, Mapping[str, object]] | None = None,
        request_state: str | None = None,
        pause_for_input: bool = False,
    ) -> Any:
        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            if on_progress is not None:
                on_progress(progress, total, message)

        self.elicit = on_elicit
        return await self.client.session.call_tool(
            name,
            dict(arguments),
            progress_callback=progressed,
            input_responses=_RESPONSES.validate_python(input_responses) if input_responses else None,
            request_state=request_state,
            allow_input_required=pause_for_input,
        )

    async def answer_input(self, request: Mapping[str, object]) -> Mapping[str, object]:
        return {"roots": []}

    async def asked(self, context: ClientRequestContext, params: Any) -> types.ElicitResult:
        assert self.elicit is not None
        answer = await self.elicit(params.model_dump(mode="json", by_alias=True))
        return types.ElicitResult.model_validate(answer)


@asynccontextmanager
async def ours(
    peer: Peer, *, mode: str = "auto", roots: tuple[str, ...] | None = None
) -> AsyncIterator[MCPClient]:
    """Connect our own client, without any transport."""
    options = MCPOptions(era="legacy" if mode == "legacy" else "auto", answers=MCPAnswers(roots=roots))
    async with MCPClient.in_process(peer.server, name="peer", options=options) as client:
        yield client


@asynccontextmanager
async def connected(
    peer: Peer, config: MCPServerConfig | None = None, *, mode: str = "auto"
) -> AsyncIterator[OfficialClient]:
    """Connect the two within this process, in the modern way or by the handshake of `mode="legacy"`."""
    handle: list[OfficialClient] = []

    async def asked(context: ClientRequestContext, params: Any) -> types.ElicitResult:
        return await handle[0].asked(context, params)

    async with Client(peer.server, mode=mode, elicitation_callback=asked) as client:
        handle.append(OfficialClient(client, config or MCPServerConfig("peer", command="unused")))
        yield handle[0]
