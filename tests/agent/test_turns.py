"""Streams, threads, endings and blocking calls of an agent's turns."""

import asyncio
import gc
from collections.abc import Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dialoom.agent import (
    AgentFinished,
    AgentLimits,
    AgentSettings,
    Allow,
    Guards,
    ReActAgent,
    ToolFinished,
    ToolStarted,
)
from dialoom.base.errors import UsageError
from dialoom.graph import MemoryCheckpointStore, RunOptions
from dialoom.llm import (
    Assembly,
    ChatOptions,
    ChatResponse,
    Gate,
    Message,
    MockProvider,
    RefusalDelta,
    ResponseCompleted,
    ResponseStream,
    Retrying,
    TextDelta,
    assistant,
)
from dialoom.llm.options import DEFAULT_OPTIONS
from dialoom.tools import ToolContext, tool
from tests.agent.tools import add, call

THREAD = RunOptions(thread_id="t")


class Whole(MockProvider):
    """A provider whose answers come in one piece, without deltas."""

    @asynccontextmanager
    async def stream(self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS) -> Any:
        async def events() -> Any:
            message = assistant("All at once.")
            yield ResponseCompleted(ChatResponse(message=message, finish_reason="stop"))

        yield ResponseStream(events(), Assembly())


@pytest.mark.promise("agent-014")
async def test_an_answer_of_a_provider_that_does_not_stream_comes_in_one_piece() -> None:
    stream = ReActAgent(Whole()).run_stream("Well?")
    assert [event.text async for event in stream if isinstance(event, TextDelta)] == ["All at once."]
    assert stream.result.answer == "All at once."


@pytest.mark.promise("agent-016")
async def test_a_continued_turn_streams_its_deltas_behind_the_history() -> None:
    model = MockProvider().queue_text("Lyon.").queue_text("On the Rhone.", chunks=3)
    agent = ReActAgent(model)
    first = await agent.run("A city?")
    stream = agent.continue_with_stream(first.history, "Where is it?")
    pieces = [event.text async for event in stream if isinstance(event, TextDelta)]
    assert (len(pieces), "".join(pieces)) == (3, "On the Rhone.")
    assert [message.text for message in stream.result.history] == [
        "A city?",
        "Lyon.",
        "Where is it?",
        "On the Rhone.",
    ]


async def test_the_result_of_a_stream_is_there_when_it_was_read_to_its_end() -> None:
    stream = ReActAgent(MockProvider().queue_text("Yes.")).run_stream("Is it?")
    with pytest.raises(UsageError, match="read its stream to the end before asking for its result"):
        _ = stream.result
    events = [event async for event in stream]
    assert events[-1] == AgentFinished(answer="Yes.")
    assert [event async for event in stream] == []
    await stream.aclose()
    assert stream.result.finished


async def test_a_stream_that_was_never_begun_is_closed_without_a_run() -> None:
    model = MockProvider()
    async with ReActAgent(model).run_stream("Is it?"):
        pass
    assert model.requests == []


async def test_a_stream_that_was_closed_begins_nothing_any_more() -> None:
    gate, entered, model = asyncio.Event(), asyncio.Event(), MockProvider().queue_text("Never.")

    async def wait(text: str) -> Allow:
        entered.set()
        await gate.wait()
        return Allow()

    agent = ReActAgent(model, settings=AgentSettings(guards=Guards(input=(wait,))))
    closed = agent.run_stream("Is it?")
    await closed.aclose()
    assert [event async for event in closed] == []
    guarded = agent.run_stream("Is it?")
    reader = asyncio.ensure_future(anext(guarded, None))
    await entered.wait()
    await guarded.aclose()
    gate.set()
    assert await reader is None
    assert model.requests == []


async def test_two_readers_of_one_stream_read_one_run() -> None:
    async def wait(text: str) -> Allow:
        await asyncio.sleep(0)
        return Allow()

    model = MockProvider().queue_text("Yes.")
    agent = ReActAgent(model, settings=AgentSettings(guards=Guards(input=(wait,))))
    stream = agent.run_stream("Is it?")
    both = await asyncio.gather(anext(stream), anext(stream))
    rest = [event async for event in stream]
    assert sum(event == AgentFinished(answer="Yes.") for event in (*both, *rest)) == 1
    assert len(model.requests) == 1


async def test_a_stream_that_is_closed_while_somebody_reads_keeps_where_it_stands() -> None:
    gate = Gate()
    stream = ReActAgent(MockProvider().queue_events(gate, TextDelta("never"))).run_stream("Well?")

    async def read() -> None:
        async for _ in stream:
            pass

    reader = asyncio.ensure_future(read())
    await gate.reached.wait()
    await asyncio.gather(stream.aclose(), reader)
    assert (stream.result.stop_reason, stream.result.standing is not None) == ("cancelled", True)


async def test_a_thread_of_a_store_is_continued_by_the_next_question() -> None:
    model = MockProvider().queue_text("Lyon.").queue_text("On the Rhone.")
    agent = ReActAgent(model, store=MemoryCheckpointStore())
    await agent.run("A city?", THREAD)
    result = await agent.run("Where is it?", THREAD)
    assert [message.text for message in model.requests[1].messages] == ["A city?", "Lyon.", "Where is it?"]
    assert result.events == (result.events[0], AgentFinished(answer="On the Rhone."))


async def test_a_thread_of_a_store_that_is_over_gives_its_result_again() -> None:
    model = MockProvider().queue_text("Lyon.")
    agent = ReActAgent(model, store=MemoryCheckpointStore())
    over = await agent.run("A city?", THREAD)
    assert await agent.resume("t") == over
    assert len(model.requests) == 1


async def test_a_second_run_on_a_thread_is_refused_while_the_first_goes_on() -> None:
    release = asyncio.Event()

    @tool
    async def wait() -> str:
        await release.wait()
        return "done"

    model = MockProvider().queue_tool_calls(call("c1", "wait")).queue_text("First.")
    agent = ReActAgent(model, [wait], store=MemoryCheckpointStore())
    stream = agent.run_stream("One.", THREAD)
    async for event in stream:
        if isinstance(event, ToolStarted):
            break
    second = await agent.run("Two.", THREAD)
    assert second.stop_reason == "conflict"
    assert second.error is not None
    assert second.error.startswith("thread 't' is running already")
    release.set()
    async for _ in stream:
        pass
    assert stream.result.answer == "First."


def test_the_same_agent_works_without_an_event_loop() -> None:
    model = MockProvider().queue_tool_calls(call("c1", "add", a=2, b=3)).queue_text("5").queue_text("Yes, 5.")
    settings = AgentSettings(limits=AgentLimits(iterations=1))
    stopped = ReActAgent(model, [add], settings=settings).run_sync("2 + 3?")
    assert stopped.stop_reason == "max_iterations"
    agent = ReActAgent(model, [add])
    done = agent.resume_sync(stopped)
    assert done.answer == "5"
    assert agent.continue_with_sync(done.history, "Sure?").answer == "Yes, 5."


@pytest.mark.parametrize(
    ("finish", "stop_reason", "answer"),
    [("length", "length", "Half an"), ("content_filter", "refused", "Half an")],
)
async def test_an_answer_that_is_not_whole_does_not_count_as_finished(
    finish: Any, stop_reason: str, answer: str
) -> None:
    message = assistant("Half an")
    model = MockProvider().queue_events(
        ResponseCompleted(ChatResponse(message=message, finish_reason=finish))
    )
    result = await ReActAgent(model).run("Well?")
    assert (result.stop_reason, result.answer, result.finished) == (stop_reason, answer, False)
    assert result.error


async def test_a_refusal_is_told_as_one() -> None:
    model = MockProvider().queue_events(RefusalDelta("I will not."))
    result = await ReActAgent(model).run("Do harm.")
    assert (result.stop_reason, result.answer) == ("refused", "I will not.")


async def test_an_answer_that_only_paused_is_asked_for_again() -> None:
    paused = ChatResponse(message=assistant("Searching"), finish_reason="pause")
    model = MockProvider().queue_events(ResponseCompleted(paused)).queue_text("Found.")
    result = await ReActAgent(model).run("Search.")
    assert result.answer == "Found."
    assert [message.text for message in model.requests[1].messages] == ["Search.", "Searching"]


async def test_a_forced_call_is_forced_in_the_first_round_only() -> None:
    model = MockProvider().queue_tool_calls(call("c1", "add", a=2, b=3)).queue_text("5")
    settings = AgentSettings(options=ChatOptions(tool_choice="required"))
    await ReActAgent(model, [add], settings=settings).run("2 + 3?")
    assert [request.options.tool_choice for request in model.requests] == ["required", None]


async def test_tools_find_what_the_program_lends_them_and_show_how_far_they_are() -> None:
    @tool
    async def count(ctx: ToolContext) -> str:
        for name in ctx.deps:
            ctx.emit(name)
        return f"{len(ctx.deps)} counted"

    model = MockProvider().queue_tool_calls(call("c1", "count")).queue_text("Two.")
    stream = ReActAgent(model, [count]).run_stream("Count.", RunOptions(deps=["north", "south"]))
    events = [event async for event in stream]
    shown = [event.value for event in events if type(event).__name__ == "ToolProgress"]
    assert shown == ["north", "south"]
    assert ToolFinished(call_id="c1", tool="count", content="2 counted") in events


async def test_a_stream_that_is_forgotten_stops_its_turn_and_leaves_nothing_behind() -> None:
    gate = Gate()
    model = MockProvider().queue_events(TextDelta("half"), gate, TextDelta(" an answer"))
    agent = ReActAgent(model)

    async def read_a_little() -> None:
        async for event in agent.run_stream("Well?"):
            if isinstance(event, TextDelta):
                return

    before = asyncio.all_tasks()
    await read_a_little()
    gc.collect()
    async with asyncio.timeout(60):
        await asyncio.gather(*(asyncio.all_tasks() - before))
    assert not gate.opened.is_set()
    assert list(agent._standing.threads()) == []


async def test_an_answer_that_began_anew_is_told_whole_when_its_second_try_is_not_streamed() -> None:
    again = Retrying(attempt=2, wait=0, kind="overloaded", message="once more", restarts=True)
    whole = ResponseCompleted(ChatResponse(message=assistant("All of it."), finish_reason="stop"))
    model = MockProvider().queue_events(TextDelta("Half"), again, whole)
    stream = ReActAgent(model).run_stream("Well?")
    told = [event async for event in stream if isinstance(event, TextDelta | Retrying)]
    assert told == [TextDelta("Half"), again, TextDelta("All of it.")]
