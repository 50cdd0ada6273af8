"""A line of standard input that is no message is answered, and the messages after it are read."""

import json
from io import StringIO

import anyio
from mcp.server.stdio import stdio_server

from dialoom.mcp.server.sdk_lines import AnsweredLines

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
