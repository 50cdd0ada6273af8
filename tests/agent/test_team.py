"""Agents ask each other, and hand over to each other."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from dialoom.agent import (
    AGENT_TYPES,
    AgentLimits,
    AgentResult,
    AgentSettings,
    Approve,
    Block,
    Guards,
    ReActAgent,
    RoundStarted,
)
from dialoom.base.errors import UsageError
from dialoom.graph import Chunk, RunOptions
from dialoom.llm import (
    ChatOptions,
    Gate,
    Message,
    MockProvider,
    ResponseStream,
    TextDelta,
    Usage,
    UsageLimits,
)
from dialoom.llm.options import DEFAULT_OPTIONS
from dialoom.stores import SqliteCheckpointStore
from dialoom.tools import ToolContext, ToolOptions, ToolRegistry, ToolRun, tool
from tests.agent.tools import add, call, refund


def content_of(result: AgentResult) -> list[str]:
    return [part.content for message in result.history for part in message.tool_results]


def asking(agent: ReActAgent, model: MockProvider, **made: object) -> ReActAgent:
    """An agent that asks another by the tool `expert`."""
    return ReActAgent(model, [agent.as_tool("Knows sums.", name="expert")], name="boss")


async def test_another_agents_answer_is_the_result_of_the_tool_and_its_tokens_count() -> None:
    expert_model = MockProvider().queue_tool_calls(call("x1", "add", a=2, b=3))
    expert_model.queue_text("It is 5.", usage=Usage(input_tokens=30, output_tokens=3))
    expert = ReActAgent(expert_model, [add], system="You know sums.", name="expert")
    model = MockProvider().queue_tool_calls(call("c1", "expert", question="2 + 3?"))
    model.queue_text("Five.", usage=Usage(input_tokens=10, output_tokens=1))
    result = await asking(expert, model).run("Ask somebody: 2 + 3?")
    assert result.answer == "Five."
    assert content_of(result) == ["It is 5."]
    assert result.usage == Usage(input_tokens=40, output_tokens=4)
    texts = [message.text for message in expert_model.requests[0].messages]
    assert texts == ["You know sums.", "2 + 3?"]


async def test_what_the_asked_agent_needs_approved_is_asked_by_the_whole_and_survives_a_restart(
    tmp_path: Path,
) -> None:
    expert_model = MockProvider().queue_tool_calls(call("x1", "refund", order=9, amount=30))
    model = MockProvider().queue_tool_calls(call("c1", "expert", question="Refund order 9."))
    expert = ReActAgent(expert_model, [refund], name="expert")
    path = tmp_path / "threads"
    with SqliteCheckpointStore(path, types=AGENT_TYPES) as store:
        boss = ReActAgent(model, [expert.as_tool("Pays back.")], store=store)
        waiting = await boss.run("Refund order 9.", RunOptions(thread_id="t"))
    assert [(each.id, each.tool, each.question) for each in waiting.pending] == [
        ("x1", "refund", "tools[0]/tools[0]#approval")
    ]
    expert_model.queue_text("Paid back.")
    model.queue_text("It is paid back.")
    with SqliteCheckpointStore(path, types=AGENT_TYPES) as store:
        boss = ReActAgent(model, [expert.as_tool("Pays back.")], store=store)
        done = await boss.resume("t", {"x1": Approve()})
    assert (done.answer, content_of(done)) == ("It is paid back.", ["Paid back."])
    assert len(expert_model.requests) == 2, "what it had done before the question was not done again"


async def test_two_agents_asked_at_once_wait_for_their_approvals_and_each_answer_goes_to_its_own() -> None:
    first_model = (
        MockProvider().queue_tool_calls(call("x1", "refund", order=1, amount=1)).queue_text("First.")
    )
    second_model = (
        MockProvider().queue_tool_calls(call("x1", "refund", order=2, amount=2)).queue_text("Second.")
    )
    first = ReActAgent(first_model, [refund], name="first")
    second = ReActAgent(second_model, [refund], name="second")
    model = MockProvider().queue_tool_calls(
        call("c1", "first", question="order 1"), call("c2", "second", question="order 2")
    )
    model.queue_text("Both.")
    boss = ReActAgent(model, [first.as_tool("One."), second.as_tool("Two.")])
    waiting = await boss.run("Refund both.")
    questions = [each.question for each in waiting.pending]
    assert questions == ["tools[0]/tools[0]#approval", "tools[1]/tools[0]#approval"]
    half = await boss.resume(waiting, {questions[1]: Approve()})
    assert content_of(half) == ["Second."]
    done = await boss.resume(half, {questions[0]: Approve()})
    assert (done.answer, content_of(done)) == ("Both.", ["First.", "Second."])


async def test_an_asked_agent_that_does_not_finish_is_an_error_the_model_reads() -> None:
    expert_model = MockProvider().queue_tool_calls(call("x1", "add", a=1, b=1))
    settings = AgentSettings(limits=AgentLimits(iterations=1))
    expert = ReActAgent(expert_model, [add], settings=settings, name="expert")
    model = MockProvider().queue_tool_calls(call("c1", "expert", question="1 + 1?")).queue_text("I see.")
    result = await asking(expert, model).run("1 + 1?")
    assert result.finished
    (content,) = content_of(result)
    assert content.startswith(
        '{"error":"max_iterations","tool":"expert","message":"the limit of 1 iterations'
    )


async def test_a_value_is_handed_on_as_json() -> None:
    expert = ReActAgent(MockProvider().queue_text('{"sum": 5}'), output=dict[str, int], name="expert")
    model = MockProvider().queue_tool_calls(call("c1", "expert", question="2 + 3?")).queue_text("Five.")
    assert content_of(await asking(expert, model).run("2 + 3?")) == ['{"sum":5}']


async def test_the_pieces_of_an_asked_agent_are_events_of_the_graph_but_not_of_the_answer() -> None:
    expert = ReActAgent(MockProvider().queue_text("It is 5."), name="expert")
    model = MockProvider().queue_tool_calls(call("c1", "expert", question="2 + 3?")).queue_text("Five.")
    heard: list[tuple[tuple[str, ...], str]] = []

    class Pieces:
        def on_event(self, event: object) -> None:
            if isinstance(event, Chunk) and isinstance(event.value, TextDelta):
                heard.append((event.ns, event.value.text))

    stream = asking(expert, model).add_observer(Pieces()).run_stream("2 + 3?")
    told = [event.text async for event in stream if isinstance(event, TextDelta)]
    assert told == ["Five."]
    assert heard == [(("tools[0]",), "It is 5."), ((), "Five.")]


async def test_the_tokens_of_asked_agents_count_for_the_limits_of_the_turn() -> None:
    expert = ReActAgent(MockProvider().queue_text("5", usage=Usage(input_tokens=500)), name="expert")
    model = MockProvider().queue_tool_calls(call("c1", "expert", question="2 + 3?"))
    settings = AgentSettings(limits=AgentLimits(usage=UsageLimits(input_tokens=100)))
    boss = ReActAgent(model, [expert.as_tool("Knows sums.")], settings=settings)
    result = await boss.run("2 + 3?")
    assert (result.stop_reason, result.usage.input_tokens) == ("usage_limit", 500)


async def test_an_agent_as_a_tool_works_without_an_agent_around_it_but_nobody_can_approve() -> None:
    expert = ReActAgent(MockProvider().queue_text("It is 5."), name="expert")
    tools = ToolRegistry([expert.as_tool("Knows sums.", options=ToolOptions(timeout=5))])
    assert (await tools.execute(call("c1", "expert", question="2 + 3?"))).content == "It is 5."
    asks = ReActAgent(
        MockProvider().queue_tool_calls(call("x1", "refund", order=9, amount=30)), [refund], name="expert"
    )
    alone = await ToolRegistry([asks.as_tool("Pays back.")]).execute(call("c1", "expert", question="?"))
    assert alone.content == ('{"error":"needs_approval","tool":"expert","message":"it waits for a person"}')


async def test_an_agent_asked_alone_lends_its_tools_what_the_run_lends_and_stops_with_it() -> None:
    found: list[object] = []

    @tool
    async def look(ctx: ToolContext) -> str:
        found.append(ctx.deps)
        return "seen"

    gate = Gate()
    model = MockProvider().queue_tool_calls(call("x1", "look")).queue_text("Seen.").queue_events(gate)
    tools = ToolRegistry([ReActAgent(model, [look], name="expert").as_tool("Looks.")])
    answered = await tools.execute(call("c1", "expert", question="Is it there?"), ToolRun(deps="the depot"))
    assert (answered.content, found) == ("Seen.", ["the depot"])
    run = ToolRun()
    asked = asyncio.ensure_future(tools.execute(call("c2", "expert", question="And now?"), run))
    await gate.reached.wait()
    run.cancel.cancel()
    assert (await asked).cancelled


def pair() -> tuple[ReActAgent, MockProvider, MockProvider]:
    """A desk that hands over to an expert, who may hand back."""
    desk_model, expert_model = MockProvider(id="desk"), MockProvider(id="expert")
    expert = ReActAgent(expert_model, [add], system="You know sums.", name="expert")
    desk = ReActAgent(
        desk_model, [expert.as_handoff("For sums.")], system="You sit at the desk.", name="desk"
    )
    expert.tools.add(desk.as_handoff("For anything else."))
    return desk, desk_model, expert_model


async def test_the_agent_that_is_handed_over_to_answers_with_its_own_words_and_tools() -> None:
    desk, desk_model, expert_model = pair()
    desk_model.queue_tool_calls(call("c1", "transfer_to_expert"))
    expert_model.queue_tool_calls(call("c2", "add", a=2, b=3)).queue_text("It is 5.")
    stream = desk.run_stream("2 + 3?")
    rounds = [event.agent async for event in stream if isinstance(event, RoundStarted)]
    assert rounds == ["desk", "expert", "expert"]
    result = stream.result
    assert (result.answer, result.agent) == ("It is 5.", "expert")
    assert content_of(result) == ["expert goes on from here", "5"]
    first = expert_model.requests[0].messages
    assert [message.role for message in first] == ["system", "user", "assistant", "tool"]
    assert first[0].text == "You know sums."
    names = [tool.name for tool in expert_model.requests[0].options.tools]
    assert names == ["add", "transfer_to_desk"]


async def test_an_agent_may_hand_back_and_the_next_turn_begins_with_the_one_that_was_asked() -> None:
    desk, desk_model, expert_model = pair()
    desk_model.queue_tool_calls(call("c1", "transfer_to_expert"))
    expert_model.queue_tool_calls(call("c2", "transfer_to_desk"))
    desk_model.queue_text("Back at the desk.")
    result = await desk.run("Hello?")
    assert (result.answer, result.agent) == ("Back at the desk.", "desk")
    desk_model.queue_text("Still here.")
    later = await desk.continue_with(result.history, "And now?")
    assert (later.answer, later.agent) == ("Still here.", "")


async def test_a_turn_that_was_handed_over_goes_on_with_that_agent_after_a_restart() -> None:
    desk, desk_model, expert_model = pair()
    desk_model.queue_tool_calls(call("c1", "transfer_to_expert"))
    settings = AgentSettings(limits=AgentLimits(iterations=1))
    short = ReActAgent(desk_model, desk.tools, settings=settings, name="desk")
    stopped = await short.run("2 + 3?")
    assert stopped.stop_reason == "max_iterations"
    expert_model.queue_text("It is 5.")
    result = await desk.resume(AgentResult.from_json(stopped.to_json()))
    assert (result.answer, result.agent) == ("It is 5.", "expert")


async def test_an_agent_that_is_gone_after_a_restart_is_named() -> None:
    desk, desk_model, _ = pair()
    desk_model.queue_tool_calls(call("c1", "transfer_to_expert"))
    settings = AgentSettings(limits=AgentLimits(iterations=1))
    stopped = await ReActAgent(desk_model, desk.tools, settings=settings, name="desk").run("2 + 3?")
    alone = ReActAgent(desk_model, name="desk")
    result = await alone.resume(stopped)
    assert result.error == (
        "UsageError: agent 'desk' can hand over to no agent 'expert'; give it a handoff to that one"
    )


def test_a_name_that_is_taken_is_refused() -> None:
    desk, _, _ = pair()
    with pytest.raises(UsageError, match="there is already a tool 'transfer_to_expert'"):
        desk.tools.add(ReActAgent(MockProvider(), name="expert").as_handoff("Another."))


async def test_a_call_made_beside_a_handoff_is_run_with_the_tools_of_the_agent_that_made_it() -> None:
    desk, desk_model, expert_model = pair()
    desk.tools.add(refund)
    desk_model.queue_tool_calls(call("c1", "transfer_to_expert"), call("c2", "refund", order=9, amount=30))
    waiting = await desk.run("Refund order 9, then ask the expert.")
    expert_model.queue_text("I go on.")
    done = await desk.resume(waiting, {"c2": Approve()})
    assert content_of(done) == ["expert goes on from here", "refunded 30 for order 9"]
    assert (done.answer, done.agent) == ("I go on.", "expert")


async def test_an_agent_as_a_tool_by_itself_keeps_its_guards() -> None:
    def block(text: str) -> Block:
        return Block(f"no {text}")

    expert = ReActAgent(MockProvider(), settings=AgentSettings(guards=Guards(input=(block,))), name="expert")
    alone = await ToolRegistry([expert.as_tool("Knows.")]).execute(call("c1", "expert", question="secrets"))
    assert alone.content == ('{"error":"blocked","tool":"expert","message":"blocked by block: no secrets"}')


async def test_agents_that_ask_in_a_circle_come_to_an_end() -> None:
    class Asks(MockProvider):
        """Asks again in its first round, and answers in its second."""

        def stream(
            self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
        ) -> AbstractAsyncContextManager[ResponseStream]:
            results = [part.content for message in messages for part in message.tool_results]
            if results:
                self.queue_text(results[0])
            else:
                self.queue_tool_calls(call("c1", "agent", question="And you?"))
            return super().stream(messages, options)

    model = Asks()
    agent = ReActAgent(model)
    agent.tools.add(agent.as_tool("Knows as much as you."))
    result = await agent.run("Who knows?")
    assert result.answer == (
        '{"error":"too_deep","tool":"agent","message":"8 agents wait for one another already, so no other was'
        ' asked; answer with what you have"}'
    )
    assert len(model.requests) == 2 * (1 + 8)
