"""What servers of both eras ask while they work: a person's answer, a model's words, our folders."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
from mcp.server.lowlevel.server import Server

from dialoom.llm import MockProvider
from dialoom.llm.messages import system, user
from dialoom.mcp import (
    MCPAnswers,
    MCPClient,
    McpError,
    MCPOptions,
    McpTimeouts,
    Sampling,
    SamplingRequest,
)
from dialoom.mcp.inputs import with_defaults
from tests.mcp.hostile import said, stdio
from tests.mcp.scripted import Scripted

COLOR = {"type": "object", "properties": {"color": {"type": "string", "default": "green"}}}


@asynccontextmanager
async def connected(answers: MCPAnswers, **settings: Any) -> AsyncIterator[MCPClient]:
    async with asyncio.timeout(60), MCPClient(stdio(**settings), MCPOptions(answers=answers)) as client:
        yield client


def answering(reply: Mapping[str, object]) -> Any:
    async def elicit(params: Mapping[str, object]) -> Mapping[str, object]:
        assert (params["message"], params["requestedSchema"]) == ("Which color?", COLOR)
        return reply

    return elicit


@pytest.mark.parametrize(
    ("reply", "sent"),
    [
        (
            {"action": "accept", "content": {"color": "red"}},
            {"action": "accept", "content": {"color": "red"}},
        ),
        ({"action": "accept", "content": {}}, {"action": "accept", "content": {"color": "green"}}),
        ({"action": "decline"}, {"action": "decline"}),
        ({"action": "cancel"}, {"action": "cancel"}),
    ],
    ids=["accepted", "left to the defaults", "declined", "cancelled"],
)
async def test_a_form_is_answered_with_its_defaults_filled_in(
    reply: Mapping[str, object], sent: Mapping[str, object]
) -> None:
    async with connected(MCPAnswers(elicit=answering(reply))) as client:
        assert json.loads(said(await client.call_tool("ask"))) == sent


async def test_an_answer_needs_no_schema_to_be_one() -> None:
    assert with_defaults({"action": "accept", "content": {"a": 1}}, {}) == {
        "action": "accept",
        "content": {"a": 1},
    }
    assert with_defaults({"action": "accept", "content": "?"}, COLOR) == {
        "action": "accept",
        "content": {"color": "green"},
    }
    assert with_defaults({"action": "accept", "content": {"a": 1}}, None) == {"action": "accept"}


async def test_the_call_that_led_to_a_question_is_asked_before_the_client() -> None:
    async with connected(MCPAnswers(elicit=answering({"action": "decline"}))) as client:
        own = answering({"action": "accept", "content": {"color": "blue"}})
        answer = await client.call_tool("ask", on_elicit=own)
        assert json.loads(said(answer)) == {"action": "accept", "content": {"color": "blue"}}


async def test_where_nobody_can_be_asked_the_person_has_cancelled() -> None:
    async with connected(MCPAnswers()) as client:
        assert json.loads(said(await client.call_tool("ask"))) == {"action": "cancel"}


async def test_a_server_is_told_only_of_what_can_be_answered() -> None:
    async with connected(MCPAnswers(interactive=False)) as client:
        facts = await client.initialize()
        assert json.loads(facts.instructions or "") == {}
        refused = json.loads(said(await client.call_tool("ask")))
    assert refused == {"code": -32600, "message": "Elicitation not supported"}


async def test_the_clock_stands_still_while_a_person_thinks() -> None:
    thinking = asyncio.Event()

    async def elicit(_: Mapping[str, object]) -> Mapping[str, object]:
        asyncio.get_running_loop().call_later(2.0, thinking.set)
        await thinking.wait()
        return {"action": "decline"}

    bounds = McpTimeouts(idle=1.5, total=1.5)
    async with connected(MCPAnswers(elicit=elicit), timeouts=bounds) as client:
        assert json.loads(said(await client.call_tool("ask"))) == {"action": "decline"}


async def test_what_asking_raises_reaches_the_caller_and_cancels_the_call() -> None:
    class Paused(BaseException):
        """How a run is interrupted."""

    async def pauses(_: Mapping[str, object]) -> Mapping[str, object]:
        raise Paused

    async with connected(MCPAnswers()) as client:
        with pytest.raises(Paused):
            await client.call_tool("ask", on_elicit=pauses)
        assert said(await client.call_tool("echo")) == "{}"


async def test_with_two_calls_that_could_be_meant_the_client_is_asked() -> None:
    async with connected(MCPAnswers(elicit=answering({"action": "decline"}))) as client:
        own = answering({"action": "accept"})
        other = asyncio.create_task(client.call_tool("slow", on_elicit=own))
        answer = await client.call_tool("ask", on_elicit=own)
        other.cancel()
        assert json.loads(said(answer)) == {"action": "decline"}


async def test_a_model_is_lent_with_consent_only() -> None:
    seen: list[SamplingRequest] = []

    async def consent(request: SamplingRequest) -> bool:
        seen.append(request)
        return len(seen) == 1

    provider = MockProvider().queue_text("Hi there.")
    lent = Sampling(provider=provider, consent=consent, max_tokens=5)
    async with connected(MCPAnswers(sampling=lent)) as client:
        answer = json.loads(said(await client.call_tool("sample")))
        refused = json.loads(said(await client.call_tool("sample")))
        pictures = json.loads(said(await client.call_tool("sample", {"picture": True})))
    assert (answer["role"], answer["content"]["text"], answer["model"]) == (
        "assistant",
        "Hi there.",
        "mock-model",
    )
    assert answer["stopReason"] == "endTurn"
    assert refused["message"] == "the person refused the sampling request"
    assert pictures["message"] == "only text can be sampled here"
    assert seen[0] == SamplingRequest(
        server="hostile", messages=(system("Be kind."), user("Say hi.")), max_tokens=9
    )
    (asked,) = provider.requests
    assert (asked.messages, asked.options.max_tokens) == (seen[0].messages, 5)


async def test_a_model_that_fails_is_an_error_for_the_server() -> None:
    async def consent(_: SamplingRequest) -> bool:
        return True

    async with connected(MCPAnswers(sampling=Sampling(provider=MockProvider(), consent=consent))) as client:
        assert json.loads(said(await client.call_tool("sample")))["message"].startswith("the model failed")


async def test_a_server_learns_which_folders_are_ours() -> None:
    async with connected(MCPAnswers(roots=("/data/my files", "file:///srv"))) as client:
        roots = json.loads(said(await client.call_tool("roots")))["roots"]
    assert roots == [
        {"uri": "file:///data/my%20files", "name": "my files"},
        {"uri": "file:///srv", "name": "srv"},
    ]


async def test_folders_may_change_and_the_server_be_told() -> None:
    folders = ["/old"]
    server = Scripted()
    async with (
        asyncio.timeout(60),
        server.client(MCPOptions(answers=MCPAnswers(roots=lambda: folders))) as client,
    ):
        folders[:] = ["/new"]
        await client.tell_roots_changed()
        await server.until_asked("notifications/roots/list_changed")
        await server.say({"jsonrpc": "2.0", "id": "r", "method": "roots/list"})
        await server.until(lambda: server.heard[-1].get("id") == "r")
    answer = next(each for each in server.heard if each.get("id") == "r")
    assert answer["result"]["roots"] == [{"uri": "file:///new", "name": "new"}]


class Booking:
    """A server of the newest revision: its tool answers with a question, then with what it was told."""

    def __init__(self) -> None:
        self.rounds: list[tuple[Any, Any]] = []
        self.endless = False

    def server(self) -> Server[Any]:
        return Server("booking", on_call_tool=self._book, on_list_tools=self._list)

    async def _list(self, _ctx: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="book", input_schema={"type": "object"})])

    async def _book(
        self, _ctx: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        self.rounds.append((params.input_responses, params.request_state))
        if params.input_responses is None or self.endless:
            question = types.ElicitRequestFormParams(message="Which color?", requested_schema=COLOR)
            return types.InputRequiredResult(
                input_requests={"color": types.ElicitRequest(params=question)}, request_state="room 7"
            )
        answer = params.input_responses["color"]
        words = json.dumps([answer.model_dump(mode="json", exclude_none=True), params.request_state])
        return types.CallToolResult(content=[types.TextContent(type="text", text=words)])


@asynccontextmanager
async def booking(answers: MCPAnswers) -> AsyncIterator[tuple[Booking, MCPClient]]:
    desk = Booking()
    options = MCPOptions(answers=answers)
    async with (
        asyncio.timeout(60),
        MCPClient.in_process(desk.server(), name="booking", options=options) as client,
    ):
        yield desk, client


@pytest.mark.promise("mcp-052")
async def test_a_newer_server_gets_its_answers_in_another_round() -> None:
    async with booking(MCPAnswers()) as (desk, client):
        assert (await client.initialize()).protocol == "2026-07-28"
        own = answering({"action": "accept", "content": {}})
        answer, state = json.loads(said(await client.call_tool("book", on_elicit=own)))
    assert (answer["content"], state) == ({"color": "green"}, "room 7")
    assert len(desk.rounds) == 2


async def test_a_call_that_waits_for_input_is_taken_up_by_another_client() -> None:
    async with booking(MCPAnswers()) as (_, client):
        paused = await client.call_tool("book", pause_for_input=True)
        assert isinstance(paused, types.InputRequiredResult)
        kept = json.dumps(paused.model_dump(mode="json", by_alias=True))
    wanted = json.loads(kept)
    assert wanted["inputRequests"]["color"]["params"]["message"] == "Which color?"
    async with booking(MCPAnswers()) as (_, client):
        done = await client.call_tool(
            "book",
            input_responses={"color": {"action": "accept", "content": {"color": "red"}}},
            request_state=wanted["requestState"],
        )
        answer, state = json.loads(said(done))
    assert (answer["content"], state) == ({"color": "red"}, "room 7")


async def test_an_answer_that_fits_no_question_is_refused_before_it_is_sent() -> None:
    async with booking(MCPAnswers()) as (desk, client):
        with pytest.raises(Exception, match="an answer does not fit the protocol"):
            await client.call_tool("book", input_responses={"color": {"action": "shrug"}})
    assert desk.rounds == []


async def test_a_server_that_only_asks_is_given_up() -> None:
    async with booking(MCPAnswers(elicit=answering({"action": "decline"}))) as (desk, client):
        desk.endless = True
        with pytest.raises(McpError, match="asked for more input 10 times and got no further"):
            await client.call_tool("book")


async def test_a_question_for_a_model_is_answered_by_the_client_s_own_rules() -> None:
    async def consent(_: SamplingRequest) -> bool:
        return True

    lent = Sampling(provider=MockProvider().queue_text("Blue."), consent=consent)
    message = {"role": "user", "content": {"type": "text", "text": "Which color?"}}
    async with booking(MCPAnswers(sampling=lent)) as (_, client):
        answer = await client.answer_input(
            {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 9}}
        )
        assert answer["content"] == {"type": "text", "text": "Blue."}
        with pytest.raises(McpError, match="List roots not supported"):
            await client.answer_input({"method": "roots/list"})
