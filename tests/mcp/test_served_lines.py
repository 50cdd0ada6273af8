"""A line of standard input that is no message is answered, and the messages after it are read."""

import asyncio
import json
from io import StringIO

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from dialoom.mcp.server import Served
from dialoom.mcp.server.sdk_face import sdk_server
from dialoom.mcp.server.sdk_lines import AnsweredLines
from dialoom.tools import ToolRegistry

PING = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}'


async def test_a_line_that_is_no_message_is_answered_and_a_blank_one_is_not():
    said = StringIO("\n".join(["nonsense", "", PING, "[1]", PING]))
    answers = StringIO()
    async with (
        stdio_server(anyio.wrap_file(said), anyio.wrap_file(answers)) as (read, write),
        write,
        AnsweredLines(read, write) as lines,
    ):
        messages = [item.message.model_dump(exclude_unset=True) async for item in lines]
        assert lines.last_context is not None
    assert messages == [json.loads(PING)] * 2
    assert [json.loads(line) for line in answers.getvalue().splitlines()] == [
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "the line is no JSON"}},
        {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": -32600, "message": "the line is no JSON-RPC message"},
        },
    ]


async def test_where_nobody_reads_any_more_messages_are_still_taken():
    said = StringIO(f"nonsense\n{PING}\n")
    async with stdio_server(anyio.wrap_file(said), anyio.wrap_file(StringIO())) as (read, write):
        await write.aclose()
        async with AnsweredLines(read, write) as lines:
            assert len([item async for item in lines]) == 1


async def test_a_request_before_initialize_is_told_what_comes_first():
    server = sdk_server(Served(tools=ToolRegistry()))
    to_server, read = anyio.create_memory_object_stream[SessionMessage | Exception](2)
    write, from_server = anyio.create_memory_object_stream[SessionMessage](2)
    told: list[object] = []
    async with asyncio.timeout(60), asyncio.TaskGroup() as group, from_server:
        group.create_task(server.run(read, write, server.create_initialization_options()))
        async with to_server:
            for method in ("tools/list", "tools/call"):  # the second has no params, which is another thing
                await to_server.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=method, method=method)))
                told.append((await from_server.receive()).message.model_dump(exclude_unset=True)["error"])
    assert told == [
        {"code": -32602, "message": "tools/list came before initialize; send initialize first"},
        {"code": -32602, "message": "Invalid request parameters", "data": ""},
    ]
