"""Our own server, used by the official client in both eras of the protocol."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypedDict

import mcp_types as types
import pytest

from dialoom.base.errors import MissingExtraError, UsageError
from dialoom.graph import END, START, GraphBuilder, MemoryCheckpointStore, NodeContext
from dialoom.mcp.server import (
    GraphTool,
    HttpAccess,
    Served,
    http_endpoint,
    serve_stdio,
)
from dialoom.mcp.server.questions import MAX_STATE, Questions, StateTooLargeError
from dialoom.mcp.server.sdk_face import sdk_server
from dialoom.tools import ToolContext, ToolRegistry, ToolResult, tool
from mcp import Client, MCPError

BOTH = pytest.mark.parametrize("mode", ["auto", "legacy"])


@tool(idempotent=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def link() -> ToolResult:
    """Point to a page."""
    block = {"type": "resource_link", "uri": "https://a.example/", "name": "page"}
    return ToolResult(
        content="see the page",
        structured={"pages": 1},
        card={"type": "mcp_result", "blocks": [block, {"type": "nonsense"}, {"type": "text", "text": "no"}]},
    )


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("it broke")


@tool
async def count(ctx: ToolContext) -> str:
    """Count to three."""
    for number in (1, 2, 3):
        ctx.emit({"progress": number, "total": 3, "message": f"at {number}"})
        await asyncio.sleep(0)
    ctx.emit("last words")
    return "counted"


@tool
async def order(ctx: ToolContext, dish: str) -> str:
    """Order a dish; asks how many, and then whether to go on."""
    first = await ctx.aonce("first", _noted)
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    told = ctx.ask({"message": f"how many {dish}?", "schema": schema}, key="count", schema=_at_least_one)
    sure = ctx.ask("are you sure?", key="sure", schema=bool)
    return f"{told['count']} {dish}, {sure}, noted {first}"


NOTED: list[str] = []


async def _noted() -> int:
    NOTED.append("noted")
    return len(NOTED)


def _at_least_one(answer: Any) -> Any:
    if answer["count"] < 1:
        raise UsageError("order at least one")
    return answer


@tool(requires_approval=True)
def delete(name: str) -> str:
    """Delete a file."""
    return f"deleted {name}"


class Person:
    """Answers forms one after another, and remembers what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params.message)
        answer = self.answers.pop(0)
        if answer is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=answer)


@asynccontextmanager
async def used(*tools: Any, person: Person | None = None, mode: str = "auto") -> AsyncGenerator[Client]:
    served = Served(tools=ToolRegistry(tools), name="ours", version="1")
    async with (
        asyncio.timeout(60),
        Client(sdk_server(served), mode=mode, elicitation_callback=person) as client,
    ):
        yield client


def words(result: types.CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


@BOTH
async def test_tools_are_listed_and_called(mode: str):
    async with used(add, link, mode=mode) as client:
        listed = (await client.list_tools()).tools
        assert [(each.name, each.description) for each in listed] == [
            ("add", "Add two numbers."),
            ("link", "Point to a page."),
        ]
        assert listed[0].input_schema["required"] == ["a", "b"]
        assert listed[0].annotations == types.ToolAnnotations(idempotent_hint=True)
        sum_of_two = await client.call_tool("add", {"a": 1, "b": 2})
        assert (words(sum_of_two), sum_of_two.structured_content) == ("3", {"result": 3})
        linked = await client.call_tool("link", {})
        assert linked.structured_content == {"pages": 1}
        assert [each.type for each in linked.content] == ["text", "resource_link"]


@BOTH
async def test_what_goes_wrong_in_a_tool_is_its_result(mode: str):
    async with used(add, fail, mode=mode) as client:
        broken = await client.call_tool("fail", {})
        assert (broken.is_error, "it broke" in words(broken)) == (True, True)
        misfit = await client.call_tool("add", {"a": "x"})
        assert misfit.is_error
        assert isinstance(misfit.structured_content, dict)
        assert misfit.structured_content["error"] == "invalid_arguments"
        with pytest.raises(MCPError, match="unknown tool: gone"):
            await client.call_tool("gone", {})


async def test_progress_is_passed_on_in_order():
    seen: list[Any] = []

    async def show(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with used(count, mode="legacy") as client:
        assert words(await client.call_tool("count", {}, progress_callback=show)) == "counted"
    assert seen == [(1, 3, "at 1"), (2, 3, "at 2"), (3, 3, "at 3"), (4, None, "last words")]


@BOTH
async def test_a_tool_that_asks_is_answered_by_a_person_at_the_client(mode: str):
    NOTED.clear()
    person = Person({"count": 0}, {"count": 2}, {"answer": "true"})
    async with used(order, person=person, mode=mode) as client:
        result = await client.call_tool("order", {"dish": "soup"})
    assert words(result) == "2 soup, True, noted 1"
    assert person.asked == [
        "how many soup?",
        "how many soup? (the answer does not fit: order at least one)",
        "are you sure?",
    ]


@BOTH
@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([{"approve": True}], "deleted a.txt"),
        ([{"approve": False}], "a person did not allow this call"),
        ([None], "the person gave no answer"),
    ],
)
async def test_a_tool_that_needs_approval_is_run_only_with_it(mode: str, answers: list[Any], told: str):
    person = Person(*answers)
    async with used(delete, person=person, mode=mode) as client:
        assert told in words(await client.call_tool("delete", {"name": "a.txt"}))
    assert person.asked == ["allow delete with {'name': 'a.txt'}?"]


async def test_nobody_is_asked_to_allow_a_call_that_cannot_run():
    person = Person()
    async with used(delete, person=person) as client:
        result = await client.call_tool("delete", {"name": 5})
    assert (result.is_error, "invalid_arguments" in words(result), person.asked) == (True, True, [])


async def test_a_client_that_cannot_ask_is_told_so():
    told = "delete has to ask a person, and this client cannot"
    async with used(delete, mode="legacy") as client:
        assert told in words(await client.call_tool("delete", {"name": "a.txt"}))
    async with used(delete) as client:
        with pytest.raises(MCPError, match=told) as refused:
            await client.call_tool("delete", {"name": "a.txt"})
    error = refused.value.error
    assert (error.code, error.data) == (-32021, {"requiredCapabilities": {"elicitation": {}}})


async def test_a_tool_that_asks_without_end_is_ended():
    @tool
    def nag(ctx: ToolContext) -> str:
        """Ask on and on."""
        return str([ctx.ask("again?", key=str(number)) for number in range(100)])

    person = Person(*[{"answer": "yes"}] * 100)
    async with used(nag, person=person, mode="legacy") as client:
        assert "it asked more than 20 times" in words(await client.call_tool("nag", {}))


def test_what_a_call_remembers_is_bounded():
    questions = Questions()
    questions.once("big", lambda: "x" * MAX_STATE)
    with pytest.raises(StateTooLargeError, match="remembers more than 262144 characters; ask earlier"):
        questions.state()
    assert Questions(Questions().state()).once("n", lambda: 1) == 1


async def test_a_call_that_remembers_too_much_to_ask_is_ended():
    @tool
    async def hoard(ctx: ToolContext) -> str:
        """Remember a lot and then ask."""
        await ctx.aonce("big", _big)
        return str(ctx.ask({"not": "words"}))

    async with used(hoard, person=Person()) as client:
        assert "the call remembers more than" in words(await client.call_tool("hoard", {}))


async def _big() -> str:
    return "x" * MAX_STATE


class State(TypedDict):
    question: str
    answer: str


def _ask_node(ctx: NodeContext) -> dict[str, object]:
    reply = ctx.interrupt({"message": f"{ctx.state['question']}?"})
    return {"answer": f"{reply}!"}


def asking_graph(*, stored: bool) -> Any:
    builder = GraphBuilder("oracle", State)
    builder.add_node("ask", _ask_node)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    return builder.build(store=MemoryCheckpointStore()) if stored else builder.build()


@BOTH
async def test_a_graph_is_a_tool_and_its_questions_are_asked_at_the_client(mode: str):
    oracle = GraphTool(asking_graph(stored=True), description="Ask it.", gives="answer")
    person = Person({"answer": "42"})
    seen: list[Any] = []

    async def show(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, message))

    async with used(oracle, person=person, mode=mode) as client:
        listed = (await client.list_tools()).tools[0]
        assert listed.input_schema == {
            "type": "object",
            "properties": {"question": {}, "answer": {}},
            "additionalProperties": False,
        }
        result = await client.call_tool("oracle", {"question": "how many"}, progress_callback=show)
    assert (words(result), person.asked) == ("42!", ["how many?"])
    if mode == "legacy":
        assert seen == [(1, "ask")]


async def test_a_graph_that_cannot_wait_or_fails_says_so():
    waits = GraphTool(asking_graph(stored=False), description="Ask it.", name="waits")
    builder = GraphBuilder("broken", State)
    builder.add_node("fail", _raise)
    builder.add_edge(START, "fail")
    builder.add_edge("fail", END)
    takes = {"type": "object", "properties": {"question": {"type": "string"}}}
    broken = GraphTool(builder.build(), description="Fail.", takes=takes)
    async with used(waits, broken, person=Person()) as client:
        assert "has no store to wait in" in words(await client.call_tool("waits", {"question": "x"}))
        assert "it broke" in words(await client.call_tool("broken", {"question": "x"}))


def _raise(ctx: NodeContext) -> dict[str, object]:
    raise ValueError("it broke")


async def test_a_graph_without_a_named_result_gives_its_whole_state():
    builder = GraphBuilder("echo", State)
    builder.add_node("say", lambda ctx: {"answer": ctx.state["question"]})
    builder.add_edge(START, "say")
    builder.add_edge("say", END)
    async with used(GraphTool(builder.build(), description="Say it.")) as client:
        result = await client.call_tool("echo", {"question": "hi"})
    assert result.structured_content == {"question": "hi", "answer": "hi"}


def test_a_server_that_others_can_reach_needs_a_token():
    with pytest.raises(UsageError, match="an mcp server that others can reach needs a token; give one"):
        HttpAccess(hosts=("tools.example",))
    with pytest.raises(UsageError, match="shorter than 32 bytes"):
        HttpAccess(state_key=b"short")
    for token in ("", "two words", "пароль", "line\n"):
        with pytest.raises(UsageError, match="cannot be sent in a header; use letters and digits"):
            HttpAccess(token=token)
    assert "secret" not in repr(HttpAccess(token="secret", hosts=("tools.example",)))


INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}'
)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Bearer secret"}, 200),
        ({"authorization": "Bearer secret", "host": "evil.example"}, 421),
        ({"authorization": "Bearer secret", "origin": "https://evil.example"}, 403),
    ],
)
async def test_over_http_only_who_may_is_served(headers: dict[str, str], status: int):
    served = Served(tools=ToolRegistry([add]))
    async with asyncio.timeout(60), http_endpoint(served, HttpAccess(token="secret")) as app:
        assert await _status(app, headers) == status


async def _status(app: Any, more: dict[str, str]) -> int:
    headers = {
        "host": "127.0.0.1:80",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        **more,
    }
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": raw, "query_string": b""}
    scope |= {"http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 80), "root_path": ""}
    statuses: list[int] = []
    body = [{"type": "http.request", "body": INITIALIZE, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if body:
            return body.pop()
        return await asyncio.Future()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await app(scope, receive, send)
    return statuses[0]


@pytest.mark.parametrize("missing", ["mcp.server.stdio", "mcp.server.streamable_http_manager"])
async def test_without_the_official_package_the_line_that_installs_it_is_told(
    missing: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, missing, None)
    served = Served(tools=ToolRegistry())
    with pytest.raises(MissingExtraError, match=r'mcp is not installed; run: pip install "dialoom\[mcp\]"'):
        if missing.endswith("stdio"):
            await serve_stdio(served)
        else:
            await http_endpoint(served).__aenter__()
