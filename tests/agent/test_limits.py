"""How far an agent may go, how much it may use, and how much of its history the model gets."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from dialoom.agent import (
    AgentLimits,
    AgentSettings,
    Compaction,
    HistoryLimits,
    ReActAgent,
)
from dialoom.base.errors import UsageError
from dialoom.llm import (
    ChatResponse,
    MockProvider,
    Price,
    Prices,
    ProviderError,
    ResponseCompleted,
    ToolCall,
    Usage,
    UsageLimits,
    assistant,
    user,
)
from dialoom.tools import ToolExecutionPolicy, tool
from tests.agent.tools import add, call

PRICES = Prices(models={"mock-model": Price(input=Decimal(1), output=Decimal(2))})


@pytest.mark.parametrize(
    ("limits", "reached"),
    [
        (UsageLimits(input_tokens=100), "100 input tokens"),
        (UsageLimits(total_tokens=100), "100 total tokens"),
        (UsageLimits(requests=1), "1 requests"),
        (UsageLimits(cost=Decimal("0.0001")), "0.0001 cost"),
    ],
)
async def test_tokens_and_cost_of_a_turn_are_limited(limits: UsageLimits, reached: str) -> None:
    @tool
    async def look() -> str:
        return "seen"

    asked = ChatResponse(
        message=assistant("", calls=(call("c1", "look"),)),
        finish_reason="tool_calls",
        usage=Usage(input_tokens=100, output_tokens=10),
        model="mock-model",
    )
    model = MockProvider().queue_events(ResponseCompleted(asked))
    settings = AgentSettings(limits=AgentLimits(usage=limits), prices=PRICES)
    agent = ReActAgent(model, [look], settings=settings)
    stopped = await agent.run("Look.")
    assert stopped.stop_reason == "usage_limit"
    assert stopped.error == f"the limit of {reached} is reached; raise the limit, or stop here"
    assert stopped.cost == Decimal("0.00012")
    assert stopped.history[-1].tool_results[0].content == "seen"
    model.queue_text("I saw it.")
    assert (await ReActAgent(model, [look]).resume(stopped)).answer == "I saw it."


async def test_calls_beyond_their_limit_are_answered_with_an_error_and_the_model_can_still_end() -> None:
    model = MockProvider()
    model.queue_tool_calls(*(call(f"c{n}", "add", a=n, b=1) for n in range(3)))
    model.queue_tool_calls(call("c3", "add", a=3, b=1)).queue_text("Enough.")
    settings = AgentSettings(limits=AgentLimits(tool_calls=2))
    result = await ReActAgent(model, [add], settings=settings).run("Add them all.")
    refused = (
        '{"error":"the limit of tool calls is reached, so it was not run; answer with what you have",'
        '"tool":"add"}'
    )
    contents = [part.content for message in result.history for part in message.tool_results]
    assert contents == ["1", "2", refused, refused]
    assert result.answer == "Enough."
    assert [request.options.tool_choice for request in model.requests] == [None, "none", "none"]


async def test_a_model_that_calls_without_end_in_one_answer_is_bounded() -> None:
    model = MockProvider().queue_tool_calls(*(call(f"c{n}", "add", a=n, b=1) for n in range(500)))
    result = await ReActAgent(model.queue_text("Done."), [add]).run("Add them all.")
    parts = [part for message in result.history for part in message.tool_results]
    assert (len(parts), sum(not part.is_error for part in parts)) == (500, 128)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"iterations": 0}, "an agent has 0 iterations; give 1 or more"),
        ({"iterations": "5"}, "an agent has '5' iterations; give 1 or more"),
        ({"tool_calls": 2.5}, "an agent has 2.5 tool calls; give 0 or more, or None for no limit"),
        ({"tool_calls": -1}, "an agent has -1 tool calls; give 0 or more, or None for no limit"),
    ],
)
def test_limits_that_leave_nothing_are_refused(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        AgentLimits(**limits)
    assert str(refused.value) == message


async def test_no_more_calls_run_at_once_than_the_policy_lets() -> None:
    running, most = 0, 0

    @tool
    async def step(n: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running -= 1
        return n

    model = MockProvider().queue_tool_calls(*(call(f"c{n}", "step", n=n) for n in range(9)))
    settings = AgentSettings(policy=ToolExecutionPolicy(max_concurrency=3))
    result = await ReActAgent(model.queue_text("Done."), [step], settings=settings).run("Go.")
    assert most == 3
    assert [part.content for each in result.history for part in each.tool_results] == [
        str(n) for n in range(9)
    ]


async def test_each_call_of_an_agent_is_bounded_as_its_policy_says() -> None:
    tries, kept = 0, dict[str, str]()

    @tool
    async def hang() -> None:
        await asyncio.Event().wait()

    @tool(idempotent=True, timeout=30)
    async def flaky() -> str:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise OSError("not yet")
        return "there"

    @tool(timeout=30)  # its own goes before the policy's, which a busy machine would not keep
    async def long() -> str:
        return "word " * 20

    def spill(call: ToolCall, text: str) -> str:
        kept[call.id] = text
        return f"results/{call.id}"

    policy = ToolExecutionPolicy(
        timeout=2.0, retry_idempotent=1, retry_delay=0, max_result_chars=75, spill=spill
    )
    calls = (call("c1", "hang"), call("c2", "flaky"), call("c3", "long"))
    model = MockProvider().queue_tool_calls(*calls).queue_text("Done.")
    settings = AgentSettings(policy=policy)
    result = await ReActAgent(model, [hang, flaky, long], settings=settings).run("Go.")
    assert [part.content for each in result.history for part in each.tool_results] == [
        '{"error":"the tool took longer than 2 s","timeout":true,"tool":"hang"}',
        "there",
        "word " * 15 + "\n[cut: the first 75 of 100 characters; all of it is kept as results/c3]",
    ]
    assert kept["c3"] == "word " * 20
    assert result.finished


@pytest.mark.promise("agent-023")
async def test_the_model_gets_the_newest_turns_and_the_result_holds_everything() -> None:
    model = MockProvider()
    for n in range(4):
        model.queue_text(f"answer {n}")
    settings = AgentSettings(history=HistoryLimits(messages=4))
    agent = ReActAgent(model, system="Be brief.", settings=settings)
    result = await agent.run("question 0")
    for n in range(1, 4):
        result = await agent.continue_with(result.history, f"question {n}")
    assert [message.text for message in model.requests[3].messages] == [
        "Be brief.",
        "question 2",
        "answer 2",
        "question 3",
    ]
    assert len(result.history) == 8


async def test_the_older_part_of_a_long_history_is_told_in_short() -> None:
    history = [
        message
        for n in range(20)
        for message in (user(f"question {n} " + "word " * 50), assistant(f"answer {n} " + "word " * 50))
    ]
    model = MockProvider().queue_text("They talked a lot.", usage=Usage(input_tokens=7)).queue_text("Yes.")
    settings = AgentSettings(compaction=Compaction(above=1_000, keep=300, summary=50))
    result = await ReActAgent(model, settings=settings).continue_with(history, "And?")
    sent = model.requests[1].messages
    assert len(sent) < 12
    assert any("They talked a lot." in message.text for message in sent)
    assert len(result.history) == 42
    assert result.usage == Usage(input_tokens=7)


async def test_the_oldest_messages_are_told_in_short_before_limits_could_cut_them() -> None:
    history = [message for n in range(6) for message in (user(f"q{n}"), assistant(f"a{n}"))]
    model = MockProvider().queue_text("SHORT").queue_text("done")
    compaction = Compaction(above=6, keep=3, summary=1, count_tokens=lambda _: 1)
    settings = AgentSettings(history=HistoryLimits(messages=9), compaction=compaction)
    await ReActAgent(model, settings=settings).continue_with(history, "q6")
    folded, sent = (request.messages for request in model.requests)
    assert all(f"q{n}" in folded[1].text for n in range(5))
    assert [message.text.rpartition("\n")[2] for message in sent] == ["SHORT", "q5", "a5", "q6"]


async def test_calls_run_one_after_another_do_not_use_up_the_rounds() -> None:
    model = MockProvider().queue_tool_calls(*(call(f"c{n}", "add", a=n, b=1) for n in range(128)))
    settings = AgentSettings(limits=AgentLimits(iterations=2), policy=ToolExecutionPolicy(parallel=False))
    result = await ReActAgent(model.queue_text("Done."), [add], settings=settings).run("Go.")
    assert (result.answer, result.error) == ("Done.", None)


async def test_a_request_of_which_nothing_came_costs_nothing() -> None:
    model = MockProvider(model="mock-model").queue_error(ProviderError("overloaded", "try again later"))
    agent = ReActAgent(model, settings=AgentSettings(prices=PRICES))
    failed = await agent.run("Hello?")
    assert failed.cost == 0
    model.queue_text("Hello.", usage=Usage(input_tokens=1_000_000))
    assert (await agent.resume(failed)).cost == 1
