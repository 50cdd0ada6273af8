"""Calls that ask a person on their way."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dialoom.base.cancel import CancelScope
from dialoom.base.errors import UsageError
from dialoom.graph.errors import Interrupted
from dialoom.llm.messages import ToolCall
from dialoom.mcp.asking import answer_of, question_of
from dialoom.mcp.tool_sync import add_mcp_tools
from dialoom.tools import ToolRegistry, ToolResult, ToolRun
from tests.mcp import official
from tests.mcp.official import Peer, ours

FORM = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}


class Notebook:
    """What one call remembers and was told, as JSON text: what would be on disk."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}
        self.answers: dict[str, Any] = {}
        self.asked: list[Any] = []

    def once(self, key: str, effect: Callable[[], Any]) -> Any:
        raise NotImplementedError

    async def aonce(self, key: str, effect: Callable[[], Awaitable[Any]]) -> Any:
        if key not in self.notes:
            self.notes[key] = json.dumps(await effect())
        return json.loads(self.notes[key])

    def ask(self, payload: object, *, key: str, refused: str) -> Any:
        if key not in self.answers:
            self.asked.append(payload)
            self.waiting = key
            raise Interrupted(key)
        return self.answers[key]

    def answer(self, answer: object) -> None:
        self.answers[self.waiting] = answer


async def run(registry: ToolRegistry, name: str, notebook: Notebook | None) -> ToolResult | None:
    """Run the tool; None when it stopped to ask."""
    call = ToolCall(id="1", name=name, arguments={"words": "hi"})
    try:
        async with asyncio.timeout(60):
            return await registry.execute(call, ToolRun(journal=notebook))
    except Interrupted:
        return None


async def test_a_question_of_today_pauses_the_call_and_its_answer_takes_it_up_again():
    registry, notebook, peer = ToolRegistry(), Notebook(), Peer(official.tool("ask"))
    async with ours(peer) as client:
        await add_mcp_tools(registry, client, "")
        assert await run(registry, "ask", notebook) is None
        field = {"id": "value", "label": "value", "type": "text", "required": True}
        asked = {"kind": "mcp_elicitation", "server": "peer", "tool": "ask", "title": "your name?"}
        assert notebook.asked == [{**asked, "schema": FORM, "fields": [field]}]
        notebook.answer({"value": "Ann"})
    later = ToolRegistry()
    async with ours(peer) as client:
        await add_mcp_tools(later, client, "")
        assert await run(later, "ask", notebook) is None
        notebook.answer({"action": "accept", "content": {"value": "blue"}})
        assert await run(later, "ask", notebook) == ToolResult(content="Ann likes blue")
    assert len(peer.calls) == 3


async def test_a_question_that_is_declined_is_told_to_the_server():
    registry, notebook = ToolRegistry(), Notebook()
    async with ours(Peer(official.tool("ask"))) as client:
        await add_mcp_tools(registry, client, "")
        await run(registry, "ask", notebook)
        notebook.answer({"action": "decline"})
        assert await run(registry, "ask", notebook) == ToolResult(content="nobody")


async def test_a_question_of_older_servers_is_answered_when_the_call_is_made_again():
    registry, notebook, peer = ToolRegistry(), Notebook(), Peer(official.tool("old_ask"))
    async with ours(peer, mode="legacy") as client:
        await add_mcp_tools(registry, client, "")
        assert await run(registry, "old_ask", notebook) is None
        notebook.answer({"value": "Ann"})
        assert await run(registry, "old_ask", notebook) == ToolResult(content="hello Ann")
    assert len(peer.calls) == 2


@pytest.mark.parametrize(
    ("name", "mode", "told"), [("ask", "auto", "nobody"), ("old_ask", "legacy", "cancel")]
)
async def test_where_nobody_can_be_asked_the_server_is_told_so(name: str, mode: str, told: str):
    registry = ToolRegistry()
    async with ours(Peer(official.tool(name)), mode=mode) as client:
        await add_mcp_tools(registry, client, "")
        assert await run(registry, name, None) == ToolResult(content=told)


async def test_a_server_that_asks_without_end_is_given_up():
    registry, peer = ToolRegistry(), Peer(official.tool("again"))

    async def again(ctx: Any, params: Any) -> Any:
        return official.wants("name", state="again")

    peer.do_again = again  # pyright: ignore[reportAttributeAccessIssue] - found by its name
    async with ours(peer) as client:
        await add_mcp_tools(registry, client, "")
        result = await run(registry, "again", None)
    assert result is not None
    assert result.structured == {
        "error": "tool again asked more than 10 times; call it in another way",
        "tool": "again",
        "kind": "protocol_error",
        "retryable": False,
    }
    assert len(peer.calls) == 10


async def test_what_is_not_for_a_person_is_answered_by_the_client():
    registry, peer = ToolRegistry(), Peer(official.tool("roots"))

    async def roots(ctx: Any, params: Any) -> Any:
        if params.input_responses:
            return f"{len(params.input_responses['r'].roots)} roots"
        request = official.types.ListRootsRequest()
        return official.types.InputRequiredResult(input_requests={"r": request}, request_state="s")

    peer.do_roots = roots  # pyright: ignore[reportAttributeAccessIssue] - found by its name
    async with ours(peer, roots=("/srv", "/tmp")) as client:
        await add_mcp_tools(registry, client, "")
        assert await run(registry, "roots", Notebook()) == ToolResult(content="2 roots")


async def test_progress_is_shown_while_the_call_is_under_way():
    registry, seen = ToolRegistry(), list[object]()
    async with ours(Peer(official.tool("progress")), mode="legacy") as client:
        await add_mcp_tools(registry, client, "")
        call = ToolCall(id="7", name="progress", arguments={})
        await registry.execute(call, ToolRun(on_progress=lambda progress: seen.append(progress.value)))
    assert seen == [{"progress": 1.0, "total": 2.0, "message": "half"}]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_stopping_a_call_stops_it_at_the_server(mode: str):
    registry, peer, scope = ToolRegistry(), Peer(official.tool("wait")), CancelScope()
    async with ours(peer, mode=mode) as client, asyncio.timeout(60):
        await add_mcp_tools(registry, client, "")
        call = ToolCall(id="1", name="wait", arguments={})
        running = asyncio.ensure_future(registry.execute(call, ToolRun(cancel=scope)))
        await peer.waiting.wait()
        scope.cancel()
        assert (await running).cancelled
        await peer.stopped.wait()


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        ({"value": "x"}, {"action": "accept", "content": {"colour": "red", "value": "x"}}),
        ({"value": "x", "colour": None}, {"action": "accept", "content": {"colour": "red", "value": "x"}}),
        (
            {"action": "accept", "content": {"value": "x", "colour": "blue"}},
            {"action": "accept", "content": {"value": "x", "colour": "blue"}},
        ),
        ({"action": "decline"}, {"action": "decline"}),
        ({"action": "cancel"}, {"action": "cancel"}),
    ],
)
def test_an_answer_as_the_server_wants_it(answer: object, sent: object):
    schema = {**FORM, "properties": {**FORM["properties"], "colour": {"type": "string", "default": "red"}}}
    assert answer_of({"requestedSchema": schema}, answer) == sent


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("x", 'it is no answer; give the fields of the form, or {"action": "decline"}'),
        ({"value": 1}, "$.value: expected string, got integer"),
        ({"action": "accept"}, '$: "value" is a required property'),
        ({"action": "fly"}, '$: "value" is a required property'),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(answer: object, told: str):
    with pytest.raises(UsageError) as refused:
        answer_of({"requestedSchema": FORM}, answer)
    assert str(refused.value) == told


def test_a_page_to_open_is_named_with_its_host():
    page = {"mode": "url", "message": "log in", "url": "https://a.example/login?state=1"}
    assert question_of(page, server="s", tool="t") == {
        "kind": "mcp_elicitation",
        "server": "s",
        "tool": "t",
        "title": "log in",
        "url": "https://a.example/login?state=1",
        "host": "https://a.example/login",
        "fields": [
            {"id": "done", "label": "Open https://a.example/login?state=1, then come back", "type": "bool"}
        ],
    }
    assert answer_of(page, {"action": "accept"}) == {"action": "accept"}
    assert answer_of(page, {"done": True}) == {"action": "accept"}
    assert answer_of(page, {"done": False}) == {"action": "decline"}


@pytest.mark.parametrize(
    "params",
    [{}, {"requestedSchema": 1}, {"mode": "url", "url": "file:///etc/passwd"}, {"mode": "url", "url": 1}],
)
def test_what_cannot_be_shown_is_not_asked(params: dict[str, Any]):
    assert question_of(params, server="s", tool="t") is None
