"""An agent runs the tools its model calls, and answers."""

import asyncio

import pytest

from dialoom.agent import (
    AgentFinished,
    AgentLimits,
    AgentResult,
    AgentSettings,
    ReActAgent,
    RoundStarted,
    ToolFinished,
    ToolStarted,
)
from dialoom.llm import MockProvider, TextDelta, Usage, assistant, system, tool_result, user
from dialoom.tools import tool
from tests.agent.tools import add, call


@pytest.mark.promise("agent-002", "agent-011")
async def test_the_result_of_a_called_tool_goes_back_to_the_model_which_then_answers() -> None:
    model = MockProvider().queue_tool_calls(call("c1", "add", a=2, b=3)).queue_text("It is 5.")
    result = await ReActAgent(model, [add]).run("What is 2 + 3?")
    asked = assistant("", calls=(call("c1", "add", a=2, b=3),))
    said = [(message.role, message.parts) for message in result.history]
    told = [
        user("What is 2 + 3?"),
        asked,
        tool_result("c1", "5", name="add"),
        assistant("It is 5."),
    ]
    assert said == [(message.role, message.parts) for message in told]
    assert result.answer == "It is 5."
    assert result.finished
    assert (result.stop_reason, result.error, result.pending) == ("finished", None, ())
    assert result.events == (
        RoundStarted(round=1),
        ToolStarted(call=call("c1", "add", a=2, b=3)),
        ToolFinished(call_id="c1", tool="add", content="5"),
        RoundStarted(round=2),
        AgentFinished(answer="It is 5."),
    )
    model.assert_done()


@pytest.mark.promise("agent-009")
async def test_the_system_prompt_stands_before_every_request_and_is_not_part_of_the_history() -> None:
    model = MockProvider().queue_tool_calls(call("c1", "add", a=1, b=1)).queue_text("2")
    result = await ReActAgent(model, [add], system="Be brief.").run("1 + 1?")
    assert [request.messages[0] for request in model.requests] == [system("Be brief.")] * 2
    assert [request.options.tools for request in model.requests] == [
        ReActAgent(model, [add]).tools.specs()
    ] * 2
    assert [message.role for message in result.history] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.promise("agent-010", "agent-012")
async def test_no_more_rounds_are_made_than_allowed_and_the_run_then_ends_unfinished() -> None:
    model = MockProvider()
    for number in range(3):
        model.queue_tool_calls(call(f"c{number}", "add", a=number, b=1))
    settings = AgentSettings(limits=AgentLimits(iterations=2))
    result = await ReActAgent(model, [add], settings=settings).run("Count on.")
    assert len(model.requests) == 2
    assert not result.finished
    assert result.stop_reason == "max_iterations"
    assert result.answer == ""
    assert result.error == (
        "the limit of 2 iterations is reached; raise limits.iterations and resume, or ask anew"
    )
    assert result.history[-1] == tool_result("c1", "2", name="add")


async def test_a_run_at_its_limit_goes_on_when_an_agent_with_a_higher_one_resumes_it() -> None:
    model = MockProvider().queue_tool_calls(call("c1", "add", a=1, b=1)).queue_text("2")
    first = ReActAgent(model, [add], settings=AgentSettings(limits=AgentLimits(iterations=1)))
    stopped = await first.run("1 + 1?")
    assert stopped.stop_reason == "max_iterations"
    result = await ReActAgent(model, [add]).resume(AgentResult.from_json(stopped.to_json()))
    assert (result.answer, result.stop_reason, result.error) == ("2", "finished", None)


@pytest.mark.promise("agent-013")
async def test_the_deltas_of_the_answer_come_as_the_provider_streams_them() -> None:
    model = MockProvider().queue_text("one two", chunks=2)
    stream = ReActAgent(model).run_stream("Count.")
    pieces = [event.text async for event in stream if isinstance(event, TextDelta)]
    assert pieces == ["one ", "two"]
    assert stream.result.answer == "one two"


@pytest.mark.promise("agent-015", "agent-017")
async def test_a_history_that_went_through_json_is_carried_into_the_next_question() -> None:
    model = MockProvider().queue_text("Lyon.").queue_text("On the Rhone.")
    agent = ReActAgent(model)
    first = AgentResult.from_json((await agent.run("A city?")).to_json())
    second = await agent.continue_with(first.history, "Where is it?")
    assert [message.text for message in model.requests[1].messages] == ["A city?", "Lyon.", "Where is it?"]
    assert second.history[:2] == first.history
    assert second.answer == "On the Rhone."


@pytest.mark.promise("agent-026", "agent-027")
async def test_history_and_events_keep_the_order_of_the_calls_whichever_ends_first() -> None:
    first_may_end = asyncio.Event()

    @tool
    async def slow() -> str:
        await first_may_end.wait()
        return "slow"

    @tool
    async def quick() -> str:
        first_may_end.set()
        return "quick"

    model = MockProvider().queue_tool_calls(call("c1", "slow"), call("c2", "quick")).queue_text("done")
    async with asyncio.timeout(60):
        result = await ReActAgent(model, [slow, quick]).run("Both.")
    assert [message.tool_results[0].content for message in result.history[2:4]] == ["slow", "quick"]
    assert result.events == (
        RoundStarted(round=1),
        ToolStarted(call=call("c1", "slow")),
        ToolStarted(call=call("c2", "quick")),
        ToolFinished(call_id="c1", tool="slow", content="slow"),
        ToolFinished(call_id="c2", tool="quick", content="quick"),
        RoundStarted(round=2),
        AgentFinished(answer="done"),
    )


async def test_usage_and_cost_of_all_rounds_are_added_up() -> None:
    model = MockProvider(model="gpt-4o").queue_tool_calls(call("c1", "add", a=1, b=1))
    model.queue_text("2", usage=Usage(input_tokens=100, output_tokens=10))
    result = await ReActAgent(model, [add]).run("1 + 1?")
    assert result.usage == Usage(input_tokens=100, output_tokens=10)
    assert result.cost is None, "the first answer came without counts"
