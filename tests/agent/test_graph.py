"""The agent's graph by itself, as a conversation that keeps its own log uses it."""

import asyncio
from typing import Any

import msgspec
import pytest

from dialoom.agent import (
    AgentLimits,
    AgentNode,
    AgentSettings,
    AgentSpec,
    Allow,
    Block,
    Edit,
    Guards,
    HistoryLimits,
    ReActAgent,
    ToolProgress,
    agent_graph,
    begin,
    result_of,
)
from dialoom.agent.standing import NewestOnly
from dialoom.graph import (
    END,
    START,
    Chunk,
    GraphBuilder,
    MemoryCheckpointStore,
    RunOptions,
    State,
)
from dialoom.llm import Gate, Message, MockProvider, TextDelta, Usage, UsageLimits, assistant, system, user
from dialoom.tools import ToolContext, ToolRegistry, ToolResult, tool
from tests.agent.tools import add, call, refund

THREAD = RunOptions(thread_id="t")


async def test_a_context_that_is_a_function_is_asked_each_time_and_never_stored() -> None:
    log = [user("A city?"), assistant("Lyon."), user("Where is it?")]
    asked: list[int] = []

    def context(state: State) -> list[Message]:
        asked.append(state["seen"])
        return [system("Be brief."), *log[: state["seen"]]]

    model = MockProvider().queue_tool_calls(call("c1", "add", a=2, b=3)).queue_text("On the Rhone.")
    spec = AgentSpec(provider=model, tools=ToolRegistry([add]), context=context)
    store = MemoryCheckpointStore()
    run = await agent_graph(spec, store).run(begin([], seen=3), THREAD)
    assert asked == [3, 3]
    assert [message.text for message in model.requests[0].messages] == [
        "Be brief.",
        "A city?",
        "Lyon.",
        "Where is it?",
    ]
    assert [message.role for message in run.state["turn"]] == ["assistant", "tool", "assistant"]
    kept = store.load("t")
    assert kept is not None
    assert kept.state["turn"] == run.state["turn"]
    assert result_of(run, spec).answer == "On the Rhone."


class Card(msgspec.Struct):
    title: str


def nested(depth: int) -> list[Any]:
    return [nested(depth - 1)] if depth else []


async def test_what_a_tool_shows_to_people_is_kept_beside_what_it_tells_the_model(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cards: dict[str, object] = {
        "a map": Card("a map"),
        "nothing": object(),
        "too much": Card("x" * 300_000),
        "too deep": nested(150),
        "half": Card("a plan \ud83d"),
    }

    @tool
    async def draw(what: str) -> ToolResult:
        return ToolResult(content="drawn", card=cards[what])

    drawn = (call(f"c{at}", "draw", what=what) for at, what in enumerate(cards))
    model = MockProvider().queue_tool_calls(*drawn)
    spec = AgentSpec(provider=model.queue_text("Here."), tools=ToolRegistry([draw]))
    run = await agent_graph(spec).run(begin([user("Draw.")]))
    assert list(run.state["cards"]) == [
        {"call_id": "c0", "card": {"title": "a map"}},
        {"call_id": "c4", "card": {"title": "a plan \ufffd"}},
    ]
    told = [record.message for record in caplog.records]
    assert told == ["card of a tool cannot be kept"] * 3


async def test_a_task_that_is_cancelled_itself_hears_of_it() -> None:
    gate = Gate()
    model = MockProvider().queue_events(TextDelta("half"), gate)
    running = asyncio.create_task(agent_graph(AgentSpec(provider=model)).run(begin([user("?")])))
    await gate.reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_run_whose_supersteps_are_fewer_than_its_rounds_need_ends_unfinished() -> None:
    model = MockProvider().queue_tool_calls(call("c1", "add", a=2, b=3))
    spec = AgentSpec(provider=model, tools=ToolRegistry([add]))
    run = await agent_graph(spec).run(begin([user("2 + 3?")]), RunOptions(max_steps=1))
    result = result_of(run, spec)
    assert (result.stop_reason, result.error) == (
        "max_iterations",
        "the run took more supersteps than max_steps of its RunOptions; raise that and resume",
    )


async def test_hundreds_of_runs_at_once_each_get_their_own_newest_turn() -> None:
    runs = 300
    together = asyncio.Barrier(runs)

    @tool
    async def wait() -> str:
        await together.wait()
        return "done"

    model = MockProvider()
    for _ in range(runs):
        model.queue_tool_calls(call("c1", "wait"))
    for _ in range(runs):
        model.queue_text("Done.")
    settings = AgentSettings(history=HistoryLimits(messages=4))
    graph = agent_graph(AgentSpec(provider=model, tools=ToolRegistry([wait]), settings=settings))

    async def one(number: int) -> None:
        await graph.run(begin([user("old"), assistant("older"), user(f"question {number}")]))

    async with asyncio.TaskGroup() as group:
        for number in range(runs):
            group.create_task(one(number))
    sent = [request.messages for request in model.requests[runs:]]
    assert {len(messages) for messages in sent} == {3}
    assert {messages[0].text for messages in sent} == {f"question {number}" for number in range(runs)}


async def test_a_guard_sees_the_edited_call_too() -> None:
    def at_most_20(each: Any) -> Any:
        return Block("too much") if each.arguments["amount"] == 99 else Allow()

    model = MockProvider().queue_tool_calls(call("c1", "refund", order=9, amount=30)).queue_text("I see.")
    settings = AgentSettings(guards=Guards(before_tool=(at_most_20,)))
    agent = ReActAgent(model, [refund], settings=settings)
    waiting = await agent.run("Refund order 9.")
    done = await agent.resume(waiting, {"c1": Edit({"order": 9, "amount": 99})})
    (content,) = [part.content for message in done.history for part in message.tool_results]
    assert content == '{"error":"blocked","tool":"refund","message":"blocked by at_most_20: too much"}'


async def test_an_input_guard_of_a_nested_agent_fails_its_node() -> None:
    def block(text: str) -> Block:
        return Block(f"no {text}")

    agent = ReActAgent(MockProvider(), settings=AgentSettings(guards=Guards(input=(block,))))
    shown: list[Any] = []
    builder = GraphBuilder("guarded")
    builder.add_channel("query")
    builder.add_channel("answer")
    builder.add_node("chat", AgentNode(agent, on_delta=shown.append))
    builder.add_edge(START, "chat")
    builder.add_edge("chat", END)
    failed = await builder.build().run({"query": "secrets"})
    assert failed.errors[0].message == "blocked: blocked by block: no secrets"


async def test_progress_inside_a_node_reaches_its_own_listener() -> None:
    @tool
    async def count(ctx: ToolContext) -> str:
        ctx.emit("half way")
        return "done"

    class Values:
        def __init__(self) -> None:
            self.seen: list[object] = []

        def on_event(self, event: object) -> None:
            if isinstance(event, Chunk):
                self.seen.append(event.value)

    values = Values()
    model = MockProvider().queue_tool_calls(call("c1", "count")).queue_text("Counted.")
    builder = GraphBuilder("counting")
    builder.add_channel("query")
    builder.add_channel("answer")
    builder.add_node("chat", AgentNode(ReActAgent(model, [count])).add_observer(values))
    builder.add_edge(START, "chat")
    builder.add_edge("chat", END)
    await builder.build().run({"query": "Count."})
    assert ToolProgress(call_id="c1", tool="count", value="half way") in values.seen


async def test_a_limit_reached_by_the_words_keeps_the_value_from_being_asked_for() -> None:
    model = MockProvider().queue_text("Five.", usage=Usage(input_tokens=100))
    settings = AgentSettings(limits=AgentLimits(usage=UsageLimits(input_tokens=50)))
    result = await ReActAgent(model, output=dict[str, int], settings=settings).run("2 + 3?")
    assert (result.stop_reason, result.output) == ("usage_limit", None)


async def test_where_runs_without_a_store_stand_is_forgotten_when_they_end() -> None:
    standing = NewestOnly()
    model = MockProvider().queue_text("Yes.")
    await agent_graph(AgentSpec(provider=model), standing).run(begin([user("Is it?")]), THREAD)
    newest = standing.load("t")
    assert newest is not None
    assert list(standing.threads()) == ["t"]
    assert list(standing.history("t")) == [newest]
    assert standing.load("t", newest.id) == newest
    assert standing.load("t", "another") is None
    assert standing.take("t") == newest
    standing.erase_thread("t")
    assert list(standing.history("t")) == []
