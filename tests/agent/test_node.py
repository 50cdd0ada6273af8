"""An agent is a node of a graph: it reads and writes channels, and the graph's run is its run."""

import asyncio
from typing import Any

import msgspec
import pytest

from dialoom.agent import (
    AGENT_TYPES,
    AgentLimits,
    AgentNode,
    AgentObserver,
    AgentSettings,
    Approve,
    Question,
    ReActAgent,
    pending_of,
)
from dialoom.base.events import Event
from dialoom.graph import (
    END,
    START,
    CheckpointStore,
    Chunk,
    Graph,
    GraphBuilder,
    MemoryCheckpointStore,
    Reducers,
    ResumeCommand,
    RunControl,
    RunOptions,
    State,
)
from dialoom.llm import Gate, MockProvider, TextDelta, Usage, assistant, user
from dialoom.stores import SqliteCheckpointStore
from tests.agent.tools import add, call, refund

TOLD = ("agent_history", "agent_events", "agent_usage", "agent_stop_reason")


def graph_of(node: AgentNode, *channels: str, store: CheckpointStore | None = None) -> Graph:
    """A graph that asks an agent and then writes its answer in capitals."""
    builder = GraphBuilder("around")
    for name in ("query", "answer", "loud", *channels):
        builder.add_channel(name)
    builder.add_node("chat", node)
    builder.add_node("shout", lambda ctx: {"loud": ctx.state["answer"].upper()})
    builder.add_edge(START, "chat")
    builder.add_edge("chat", "shout")
    builder.add_edge("shout", END)
    return builder.build(store)


@pytest.mark.promise("agent-033", "agent-034", "agent-035")
async def test_the_answer_and_how_it_came_about_are_in_the_channels() -> None:
    model = MockProvider().queue_tool_calls(call("c1", "add", a=2, b=3))
    model.queue_text("It is 5.", usage=Usage(input_tokens=9, output_tokens=4))
    node = AgentNode(ReActAgent(model, [add], system="Be brief."))
    result = await graph_of(node, *TOLD).run({"query": "2 + 3?"})
    assert result.stop_reason == "finished"
    assert result.state["answer"] == "It is 5."
    assert result.state["loud"] == "IT IS 5."
    assert result.state["agent_stop_reason"] == "finished"
    assert result.state["agent_usage"]["input_tokens"] == 9
    assert [message["role"] for message in result.state["agent_history"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert [event["type"] for event in result.state["agent_events"]] == [
        "agent.round_started",
        "agent.tool_started",
        "agent.tool_finished",
        "agent.round_started",
        "agent.finished",
    ]
    assert [message.role for message in model.requests[0].messages] == ["system", "user"]


async def test_channels_may_have_other_names_and_those_that_are_missing_are_not_written() -> None:
    builder = GraphBuilder("renamed")
    builder.add_channel("question")
    builder.add_channel("reply")
    node = AgentNode(ReActAgent(MockProvider().queue_text("Yes.")), query="question", answer="reply")
    builder.add_node("chat", node)
    builder.add_edge(START, "chat")
    builder.add_edge("chat", END)
    result = await builder.build().run({"question": "Is it?"})
    assert dict(result.state) == {"question": "Is it?", "reply": "Yes."}


@pytest.mark.promise("agent-036")
@pytest.mark.parametrize("appends", [True, False])
async def test_a_history_channel_is_continued_and_gets_the_new_messages(appends: bool) -> None:
    model = MockProvider().queue_text("Lyon.").queue_text("On the Rhone.")
    builder = GraphBuilder("talk")
    builder.add_channel("query")
    builder.add_channel("answer")
    builder.add_channel("said", Reducers.append if appends else Reducers.overwrite, default=[])
    builder.add_node("chat", AgentNode(ReActAgent(model), history="said"))
    builder.add_edge(START, "chat")
    builder.add_edge("chat", END)
    graph = builder.build(MemoryCheckpointStore())
    options = RunOptions(thread_id="t")
    await graph.run({"query": "A city?"}, options)
    result = await graph.run({"query": "Where is it?"}, options)
    assert [each.text for each in model.requests[1].messages] == ["A city?", "Lyon.", "Where is it?"]
    texts = [message["parts"][0]["text"] for message in result.state["said"]]
    assert texts == ["A city?", "Lyon.", "Where is it?", "On the Rhone."]


async def test_a_history_may_hold_messages_and_anything_else_in_it_fails_the_node() -> None:
    model = MockProvider().queue_text("On the Rhone.")
    graph = graph_of(AgentNode(ReActAgent(model), history="said"), "said")
    said: list[Any] = [user("A city?"), assistant("Lyon.").to_dict()]
    assert (await graph.run({"query": "Where?", "said": said})).state["answer"] == "On the Rhone."
    for bad in ("A city?", 7, [{"role": "nobody"}]):
        failed = await graph.run({"query": "Where?", "said": bad})
        assert failed.stop_reason == "error"
        assert failed.errors[0].message.startswith("UsageError: ")


@pytest.mark.promise("agent-037")
async def test_streamed_deltas_come_to_the_callback_and_through_the_graphs_events() -> None:
    pieces: list[str] = []
    model = MockProvider().queue_text("one two", chunks=2)
    graph = graph_of(AgentNode(ReActAgent(model), on_delta=pieces.append))
    stream = graph.stream({"query": "Count."})
    events = [event async for event in stream]
    deltas = [
        (event.ns, event.value.text)
        for event in events
        if isinstance(event, Chunk) and isinstance(event.value, TextDelta)
    ]
    assert pieces == ["one ", "two"]
    assert deltas == [(("chat",), "one "), (("chat",), "two")]
    assert [event.seq for event in events] == [*range(1, len(events) + 1)]


@pytest.mark.promise("agent-038")
async def test_a_loop_that_does_not_finish_is_an_error_of_the_node_and_can_be_resumed() -> None:
    model = MockProvider().queue_tool_calls(call("c1", "add", a=1, b=1))
    settings = AgentSettings(limits=AgentLimits(iterations=1))
    store = MemoryCheckpointStore()
    graph = graph_of(AgentNode(ReActAgent(model, [add], settings=settings)), store=store)
    result = await graph.run({"query": "1 + 1?"}, RunOptions(thread_id="t"))
    assert result.stop_reason == "error"
    assert "answer" not in result.state
    (error,) = result.errors
    assert error.node == "chat"
    assert error.message.startswith("max_iterations: the limit of 1 iterations is reached; raise ")
    more = graph_of(AgentNode(ReActAgent(model.queue_text("2"), [add])), store=store)
    assert (await more.resume("t")).state["answer"] == "2"
    assert len(model.requests) == 2


@pytest.mark.promise("agent-039")
@pytest.mark.parametrize("reason", ["cancelled", "timeout"])
async def test_stopping_the_graph_reaches_the_loop_inside(reason: Any) -> None:
    gate, control = Gate(), RunControl()
    model = MockProvider().queue_events(TextDelta("half"), gate, TextDelta(" an answer"))
    running = asyncio.create_task(
        graph_of(AgentNode(ReActAgent(model))).run({"query": "?"}, RunOptions(control=control))
    )
    await gate.reached.wait()
    control.cancel(reason)
    result = await running
    assert result.stop_reason == reason
    assert not gate.opened.is_set()


async def test_what_a_tool_asks_is_asked_by_the_graph_and_survives_a_restart(tmp_path: Any) -> None:
    model = MockProvider().queue_tool_calls(call("c1", "refund", order=9, amount=30)).queue_text("Done.")
    path = tmp_path / "threads"
    with SqliteCheckpointStore(path, types=AGENT_TYPES) as store:
        graph = graph_of(AgentNode(ReActAgent(model, [refund])), store=store)
        waiting = await graph.run({"query": "Refund order 9."}, RunOptions(thread_id="t"))
    assert waiting.stop_reason == "interrupted"
    (asked,) = (pending_of(each) for each in waiting.interrupts)
    assert (asked.id, asked.tool, asked.question) == ("c1", "refund", "chat/tools[0]#approval")
    with SqliteCheckpointStore(path, types=AGENT_TYPES) as store:
        graph = graph_of(AgentNode(ReActAgent(model, [refund])), "agent_history", store=store)
        done = await graph.resume("t", ResumeCommand.for_id(asked.question, Approve()))
    assert done.state["answer"] == "Done."
    assert done.state["agent_history"][2]["parts"][0]["content"] == "refunded 30 for order 9"


class Heard(AgentObserver):
    """Notes everything, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.calls: list[str] = []
        self.finals: list[str] = []

    def on_event(self, event: Event) -> None:
        self.events.append(event)
        super().on_event(event)

    def on_tool_call(self, call: Any) -> None:
        self.calls.append(call.id)

    def on_final(self, answer: str) -> None:
        self.finals.append(answer)


@pytest.mark.promise("agent-043")
async def test_an_observer_of_the_node_hears_its_agent_and_nothing_else() -> None:
    model = MockProvider().queue_tool_calls(call("c1", "add", a=2, b=3)).queue_text("5")
    heard = Heard()
    graph = graph_of(AgentNode(ReActAgent(model, [add])).add_observer(heard))
    await graph.run({"query": "2 + 3?"})
    assert (heard.calls, heard.finals) == (["c1"], ["5"])
    assert all(isinstance(event, Chunk) for event in heard.events)
    assert [event.seq for event in heard.events] == [*range(1, len(heard.events) + 1)]
    assert len({event.run_id for event in heard.events}) == 1


async def test_each_run_of_a_node_is_numbered_by_itself_also_side_by_side() -> None:
    model = MockProvider()
    for text in ("a", "b", "c"):
        model.queue_text(text)
    heard = Heard()
    node = AgentNode(ReActAgent(model), query="query").add_observer(heard)

    async def each(ctx: Any) -> Any:
        return (await node(_asking(ctx))).writes["answer"]

    builder = GraphBuilder("many")
    builder.add_channel("items")
    builder.add_channel("answers")
    builder.add_map("ask", each, over="items", into="answers")
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    result = await builder.build().run({"items": ["one?", "two?", "three?"]})
    assert sorted(result.state["answers"]) == ["a", "b", "c"]
    runs: dict[str, list[int]] = {}
    for event in heard.events:
        runs.setdefault(event.run_id, []).append(event.seq)
    assert len(runs) == 3
    assert all(seqs == [*range(1, len(seqs) + 1)] for seqs in runs.values())


def _asking(ctx: Any) -> Any:
    return msgspec.structs.replace(ctx, state=State({"query": ctx.input}))


async def test_a_listener_that_fails_never_breaks_the_run(caplog: pytest.LogCaptureFixture) -> None:
    def fail(text: str) -> None:
        raise ValueError(text)

    model = MockProvider().queue_text("Still here.")
    result = await graph_of(AgentNode(ReActAgent(model), on_delta=fail)).run({"query": "?"})
    assert result.state["answer"] == "Still here."
    assert "observer failed" in caplog.text


async def test_what_other_nodes_ask_can_be_read_the_same_way() -> None:
    builder = GraphBuilder("asking")
    builder.add_channel("day")
    builder.add_node("ask", lambda ctx: {"day": ctx.interrupt({"question": "which day?"})})
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    waiting = await builder.build().run()
    (asked,) = (pending_of(each) for each in waiting.interrupts)
    assert asked == Question(id="ask#1", tool="ask", payload={"question": "which day?"}, question="ask#1")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("", "UsageError: the question is empty; give some words to answer"),
        (None, "UsageError: None was given as a question; give words, or a message made by user(...)"),
    ],
)
async def test_a_channel_without_a_question_fails_the_node_before_a_model_is_asked(
    query: object, told: str
) -> None:
    model = MockProvider()
    result = await graph_of(AgentNode(ReActAgent(model))).run({"query": query})
    assert [error.message for error in result.errors] == [told]
    assert model.requests == []


async def test_a_question_in_a_channel_may_be_a_message() -> None:
    node = AgentNode(ReActAgent(MockProvider().queue_text("Lyon.")))
    result = await graph_of(node).run({"query": user("A city?")})
    assert result.state["answer"] == "Lyon."
