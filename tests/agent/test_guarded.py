"""Guards look at what goes in, comes out, and passes between an agent and its tools."""

from typing import Any

from dialoom.agent import (
    AgentSettings,
    Allow,
    Block,
    Guards,
    ReActAgent,
    Replace,
)
from dialoom.graph import RunOptions
from dialoom.llm import (
    MockProvider,
    ToolCall,
    user,
)
from tests.agent.tools import add, call

THREAD = RunOptions(thread_id="t")


MISFIT = (
    '{"error":"invalid_arguments","tool":"add",'
    '"violations":[{"path":"$.a","message":"expected integer, got string"}]}'
)


def blocks(text: str, *_: object) -> Block:
    return Block(f"no {text}")


async def test_a_guard_keeps_a_question_from_the_model() -> None:
    model = MockProvider()
    agent = ReActAgent(model, settings=AgentSettings(guards=Guards(input=(blocks,))))
    result = await agent.run("secrets", THREAD)
    assert (result.stop_reason, result.error) == ("blocked", "blocked by blocks: no secrets")
    assert (result.thread_id, result.history, model.requests) == ("t", (), [])
    stream = agent.run_stream("secrets")
    assert [event async for event in stream] == []
    assert stream.result.stop_reason == "blocked"


async def test_guards_change_what_goes_in_and_comes_out() -> None:
    def no_names(text: str) -> Replace[str]:
        return Replace(text.replace("Ada", "N."))

    model = MockProvider().queue_text("Hello Ada")
    settings = AgentSettings(guards=Guards(input=(no_names,), output=(no_names,)))
    result = await ReActAgent(model, settings=settings).run("I am Ada")
    assert model.requests[0].messages[0].text == "I am N."
    assert result.answer == "Hello N."
    assert [message.text for message in result.history] == ["I am N.", "Hello N."]


async def test_a_guard_keeps_an_answer_from_the_user() -> None:
    model = MockProvider().queue_text("a secret")
    result = await ReActAgent(model, settings=AgentSettings(guards=Guards(output=(blocks,)))).run("Tell.")
    assert (result.stop_reason, result.answer) == ("blocked", "")
    assert result.error == "blocked by blocks: no a secret"
    assert result.history == (user("Tell."),)


async def test_guards_look_at_calls_and_results_and_the_model_reads_what_they_say() -> None:
    def small(call: ToolCall) -> Any:
        arguments = call.arguments or {}
        return Allow() if arguments["a"] != 13 else Block("not 13")

    def add_one(call: ToolCall) -> Any:
        arguments = call.arguments or {}
        return Replace({**arguments, "a": "x"}) if arguments["a"] == 7 else Allow()

    def hide(text: str, call: ToolCall) -> Any:
        return Block("not this") if text == "9" else Replace(text.replace("5", "five"))

    pairs = enumerate([(13, 1), (7, 1), (4, 5), (2, 3)])
    model = MockProvider().queue_tool_calls(*(call(f"c{at}", "add", a=a, b=b) for at, (a, b) in pairs))
    guards = Guards(before_tool=(small, add_one), after_tool=(hide,))
    result = await ReActAgent(model.queue_text("I see."), [add], settings=AgentSettings(guards=guards)).run(
        "Add."
    )
    contents = [part.content for message in result.history for part in message.tool_results]
    assert contents == [
        '{"error":"blocked","tool":"add","message":"blocked by small: not 13"}',
        MISFIT,
        '{"error":"blocked","tool":"add","message":"blocked by hide: not this"}',
        "five",
    ]


async def test_after_a_handoff_the_first_agent_guards_the_answer_and_each_its_own_calls() -> None:
    guarded = AgentSettings(guards=Guards(output=(blocks,)))
    careful = AgentSettings(guards=Guards(before_tool=(lambda _: Block("not by me"),)))
    expert_model = MockProvider().queue_tool_calls(call("c2", "add", a=2, b=3)).queue_text("5")
    expert = ReActAgent(expert_model, [add], settings=careful, name="expert")
    model = MockProvider().queue_tool_calls(call("c1", "transfer_to_expert"))
    desk = ReActAgent(model, [expert.as_handoff("Knows sums.")], settings=guarded, name="desk")
    result = await desk.run("2 + 3?")
    assert (result.stop_reason, result.error) == ("blocked", "blocked by blocks: no 5")
    assert [part.content for message in result.history for part in message.tool_results] == [
        "expert goes on from here",
        '{"error":"blocked","tool":"add","message":"blocked by <lambda>: not by me"}',
    ]
