"""Whatever a model calls and a tool gives, the model reads what happened and the loop goes on."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dialoom.agent import AGENT_TYPES, AgentResult, AgentSettings, ReActAgent
from dialoom.graph import RunOptions
from dialoom.llm import (
    AnthropicProvider,
    ChatOptions,
    JsonSchema,
    MockProvider,
    OpenAIProvider,
    Provider,
    ToolCall,
)
from dialoom.llm.messages import CallProblem
from dialoom.stores import SqliteCheckpointStore
from dialoom.testing.wire import WireReply
from dialoom.testing.wire_case import WireCase, read_cases
from dialoom.tools import Tool, ToolContext, tool
from tests.agent.tools import add, call
from tests.llm.scripted_transport import ScriptedTransport

CASES = {case.id: case for case in read_cases(Path(__file__).parents[1] / "llm" / "wire_cases.jsonl")}
ANSWERS = {
    "openai": {"choices": [{"index": 0, "message": {"content": "All right."}, "finish_reason": "stop"}]},
    "anthropic": {
        "type": "message",
        "content": [{"type": "text", "text": "All right."}],
        "stop_reason": "end_turn",
    },
}


def observation(result: AgentResult) -> Any:
    (part,) = [part for message in result.history for part in message.tool_results]
    assert part.is_error
    return msgspec.json.decode(part.content)


def nested(depth: int) -> dict[str, object]:
    inner: dict[str, object] = {}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


def said(raw: str, problem: CallProblem | None = None) -> ToolCall:
    return ToolCall(id="c1", name="add", raw=raw, problem=problem)


BAD_ARGUMENTS = {
    "empty": (said(""), "invalid_arguments"),
    "blank": (said("  "), "invalid_arguments"),
    "null": (said("null", "not_object"), "not_object"),
    "a list": (said("[1, 2]", "not_object"), "not_object"),
    "cut off": (said('{"a": 1, "b"', "truncated"), "truncated_arguments"),
    "not json": (said("{a: 1}", "invalid_json"), "invalid_json"),
    "wrongly typed": (call("c1", "add", a="one", b=2), "invalid_arguments"),
    "missing": (call("c1", "add", a=1), "invalid_arguments"),
    "one too many": (call("c1", "add", a=1, b=2, c=3), "invalid_arguments"),
    "huge": (call("c1", "add", a="9" * 2_000_000, b=2), "invalid_arguments"),
    "deep": (call("c1", "add", a=nested(150), b=2), "invalid_arguments"),
    "deeper than json is read": (call("c1", "add", a=nested(5_000), b=2), "invalid_json"),
    "half a character": (call("c1", "add", a="\ud83d", b=2), "invalid_arguments"),
    "unknown tool": (call("c1", "substract", a=1, b=2), "unknown_tool"),
    "a tool without a name": (call("c1", "", a=1), "unknown_tool"),
}


@pytest.mark.promise("agent-003", "agent-006")
@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "on disk"])
@pytest.mark.parametrize("bad", BAD_ARGUMENTS)
async def test_bad_arguments_are_told_and_the_loop_goes_on(bad: str, stored: bool, tmp_path: Path) -> None:
    wrong, error = BAD_ARGUMENTS[bad]
    model = MockProvider().queue_tool_calls(wrong).queue_text("I see.")
    if not stored:
        result = await ReActAgent(model, [add]).run("Add.")
    else:
        with SqliteCheckpointStore(tmp_path / "threads", types=AGENT_TYPES) as store:
            result = await ReActAgent(model, [add], store=store).run("Add.", RunOptions(thread_id="t"))
    assert (result.answer, result.stop_reason, result.error) == ("I see.", "finished", None)
    assert observation(result)["error"] == error
    assert AgentResult.from_json(result.to_json()).answer == "I see."


async def test_only_the_call_that_nests_without_end_is_refused_and_its_neighbours_run() -> None:
    endless = call("c2", "add", a=nested(5_000), b=2)
    model = MockProvider().queue_tool_calls(call("c1", "add", a=1, b=2), endless, call("c3", "add", a=3, b=4))
    result = await ReActAgent(model.queue_text("I see."), [add]).run("Add.")
    contents = [part.content for message in result.history for part in message.tool_results]
    assert (contents[0], contents[2]) == ("3", "7")
    assert contents[1].startswith('{"error":"invalid_json"')


class Schemed(Tool):
    """A tool whose schema is foreign."""

    name = "add"

    def __init__(self, schema: dict[str, object]) -> None:
        self._schema = schema

    def parameters_schema(self) -> dict[str, object]:
        return self._schema

    def run(self, args: dict[str, object], ctx: ToolContext) -> str:
        return "ran"


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://schemas.test/add.json"},
        {"$ref": "file:///etc/passwd"},
        {"type": "objekt"},
        {"properties": {"a": {"$ref": "#/nowhere"}}},
    ],
    ids=["remote", "file", "no schema", "nowhere"],
)
async def test_a_schema_that_cannot_be_used_is_told_and_the_tool_is_not_run(
    schema: dict[str, object],
) -> None:
    model = MockProvider().queue_tool_calls(call("c1", "add", a=1)).queue_text("I see.")
    result = await ReActAgent(model, [Schemed(schema)]).run("Add.")
    assert result.finished
    assert observation(result)["error"] == "invalid_schema"


async def test_a_schema_that_refers_to_itself_is_a_schema() -> None:
    schema: dict[str, object] = {
        "$defs": {"node": {"type": "object", "additionalProperties": {"$ref": "#/$defs/node"}}},
        "$ref": "#/$defs/node",
    }
    assert JsonSchema(schema).accepts(nested(50))
    model = MockProvider().queue_tool_calls(call("c1", "add", **nested(50))).queue_text("I see.")
    result = await ReActAgent(model, [Schemed(schema)]).run("Add.")
    assert result.history[2].tool_results[0].content == "ran"


class Unreadable:
    pass


def raising() -> object:
    raise ValueError("no such order")


def leaving() -> object:
    sys.exit(2)


BAD_RESULTS: dict[str, tuple[Any, bool, str]] = {
    "an exception": (raising, True, '{"error":"ValueError: no such order","tool":"give"}'),
    "the wish to end the program": (leaving, True, '{"error":"SystemExit: 2","tool":"give"}'),
    "what is no json": (
        Unreadable,
        True,
        '{"error":"the tool returned Unreadable, which cannot be written as JSON","tool":"give"}',
    ),
    "bytes": (
        lambda: b"\x00",
        True,
        '{"error":"the tool returned bytes; return text or JSON values","tool":"give"}',
    ),
    "half a character": (lambda: "a\ud83d", False, "a\ufffd"),
    "nothing": (lambda: None, False, "null"),
    "ten megabytes": (
        lambda: "x" * 10_000_000,
        False,
        "x" * 50_000 + "\n[cut: the first 50000 of 10000000 characters; the rest was not kept]",
    ),
}


@pytest.mark.promise("agent-004")
@pytest.mark.parametrize("kind", BAD_RESULTS)
async def test_whatever_a_tool_gives_is_made_fit_for_the_model(kind: str, tmp_path: Path) -> None:
    give_back, is_error, content = BAD_RESULTS[kind]

    @tool
    def give() -> object:
        return give_back()

    model = MockProvider().queue_tool_calls(call("c1", "give")).queue_text("I see.")
    with SqliteCheckpointStore(tmp_path / "threads", types=AGENT_TYPES) as store:
        result = await ReActAgent(model, [give], store=store).run("Give.", RunOptions(thread_id="t"))
    (part,) = result.history[2].tool_results
    assert (part.content, part.is_error) == (content, is_error)
    assert (result.answer, result.stop_reason) == ("I see.", "finished")


async def test_a_tool_that_takes_too_long_is_told_as_such_and_the_loop_goes_on() -> None:
    @tool(timeout=0.01)
    async def hang() -> None:
        await asyncio.Event().wait()

    model = MockProvider().queue_tool_calls(call("c1", "hang")).queue_text("I see.")
    result = await ReActAgent(model, [hang]).run("Hang.")
    assert observation(result) == {
        "error": "the tool took longer than 0.01 s",
        "timeout": True,
        "tool": "hang",
    }
    assert result.finished


def provider_of(case: WireCase, transport: ScriptedTransport) -> Provider:
    if case.provider == "anthropic":
        return AnthropicProvider("http://127.0.0.1:1", "key", transport=transport)
    return OpenAIProvider("http://127.0.0.1:1/v1", "key", transport=transport)


@pytest.mark.parametrize("name", ["oai-s-unknown-tool", "oai-s-length-tool", "ant-s-max-tokens-tool"])
async def test_calls_as_servers_really_spoil_them_are_told_and_the_loop_goes_on(name: str) -> None:
    case = CASES[name]
    ran: list[str] = []

    def tool_of(tool_name: str) -> Tool:
        @tool(name=tool_name)
        def run() -> str:
            ran.append(tool_name)
            return "ran"

        return run

    body = msgspec.json.encode(ANSWERS[case.provider])
    later = WireReply(headers={"content-type": "application/json"}, body=(body,))
    transport = ScriptedTransport([case.reply(case.pieces, now=0), later])
    settings = AgentSettings(options=ChatOptions(model="demo-model"))
    agent = ReActAgent(
        provider_of(case, transport), [tool_of(each) for each in case.request.tools], settings=settings
    )
    result = await agent.run("Go on.")
    wanted: Any = case.expect["agent"]
    told = observation(result)
    assert told["error"] == wanted["observation_error"]
    assert ran == []
    if wanted.get("lists_available_tools"):
        assert told["tools"] == list(case.request.tools)
    assert (result.answer, result.stop_reason) == ("All right.", "finished")
    assert len(transport.requests) == 2
