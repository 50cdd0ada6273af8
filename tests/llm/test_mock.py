"""A scripted model: the provider that tests and examples stand on, and how any stream ends."""

import asyncio

import pytest

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.base.errors import UsageError
from dialoom.llm import (
    Capability,
    ChatOptions,
    Gate,
    MockProvider,
    ProviderError,
    ReasoningDelta,
    RefusalDelta,
    Reply,
    ResponseCompleted,
    ResponseStarted,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallReady,
    ToolCallStarted,
    Usage,
    UsageUpdate,
    Warned,
    assistant,
    chat,
    user,
)
from dialoom.llm.messages import Message, Origin, ReasoningPart, RefusalPart, TextPart, ToolCallPart

HELLO = [user("Hello")]
BY_MOCK = Origin("mock", "mock-model")


async def test_a_queued_text_streams_in_pieces_and_adds_up() -> None:
    mock = MockProvider().queue_text("The sun shines.", chunks=4, usage=Usage(input_tokens=3))
    async with mock.stream(HELLO) as stream:
        events = [event async for event in stream]
    assert events[:-1] == [
        ResponseStarted(model="mock-model"),
        TextDelta("The "),
        TextDelta("sun "),
        TextDelta("shin"),
        TextDelta("es."),
        UsageUpdate(Usage(input_tokens=3)),
    ]
    assert events[-1] == ResponseCompleted(stream.response)
    assert stream.response.message == Message(
        role="assistant",
        parts=(TextPart("The sun shines."),),
        origin=BY_MOCK,
        usage=Usage(input_tokens=3),
    )
    mock.assert_done()


@pytest.mark.promise("llm-004")
async def test_the_blocking_answer_is_the_stream_read_to_its_end() -> None:
    mock = MockProvider().queue_text("").queue_tool_call("c1", "stock", {"sku": "A1"})
    silence = await chat(mock, HELLO)
    assert (silence.text, silence.reasoning, silence.finish_reason) == ("", "", "stop")
    answer = await chat(mock, HELLO)
    assert answer.finish_reason == "tool_calls"
    assert answer.tool_calls == (
        ToolCall(id="c1", name="stock", arguments={"sku": "A1"}, raw='{"sku":"A1"}'),
    )


async def test_the_mock_keeps_what_it_was_asked() -> None:
    mock = MockProvider(id="twin", model="small").queue_text("a").queue_text("b")
    options = ChatOptions(temperature=0)
    await chat(mock, HELLO, options)
    await chat(mock, [*HELLO, assistant("a"), user("More")])
    assert [len(request.messages) for request in mock.requests] == [1, 3]
    assert mock.requests[0].options == options
    (model,) = await mock.models()
    assert (model.id, model.provider) == ("small", "twin")
    assert model.offers(Capability.TEXT | Capability.TOOLS)
    assert not model.offers(Capability.IMAGE_IN)
    await mock.aclose()


async def test_a_mock_without_an_answer_says_so_and_one_with_too_many_too() -> None:
    mock = MockProvider()
    with pytest.raises(UsageError, match="the mock has no answer for request 1; queue one more"):
        await chat(mock, HELLO)
    with pytest.raises(AssertionError, match="1 queued answers were never asked for"):
        mock.queue_text("x").assert_done()


async def test_an_error_in_the_middle_keeps_what_was_said() -> None:
    broken = ProviderError("incomplete_stream", "the line went dead; ask again", reply=Reply(status=200))
    mock = MockProvider().queue_events(TextDelta("Half an "), broken).queue_error(ValueError("odd"))
    async with mock.stream(HELLO) as stream:
        with pytest.raises(ProviderError) as caught:
            async for _ in stream:
                pass
        with pytest.raises(UsageError, match="the answer is not complete; read the stream to its end first"):
            _ = stream.response
    assert caught.value.partial == assistant("Half an ")
    assert stream.partial == assistant("Half an ")
    assert (caught.value.kind, caught.value.retryable, caught.value.status) == (
        "incomplete_stream",
        True,
        200,
    )
    with pytest.raises(ValueError, match="odd"):
        await chat(mock, HELLO)


async def test_an_error_before_the_first_piece_has_no_partial_answer() -> None:
    mock = MockProvider().queue_error(ProviderError("auth", "check the api key", origin=BY_MOCK))
    with pytest.raises(ProviderError) as caught:
        await chat(mock, HELLO)
    error = caught.value
    assert (error.partial, error.retryable, error.retry_after, error.request_id) == (None, False, None, None)
    assert (error.provider, error.model) == ("mock", "mock-model")
    assert repr(error) == "ProviderError(kind='auth', status=None, message='check the api key')"
    assert ProviderError("auth", "x").provider is ProviderError("auth", "x").model is None


async def test_every_event_adds_to_the_partial_message() -> None:
    whole = ToolCall(id="c1", name="a", arguments={}, raw="{}")
    completed = ResponseCompleted(await chat(MockProvider().queue_text("own"), HELLO))
    mock = MockProvider().queue_events(
        ResponseStarted(model="other"),
        ReasoningDelta("hm "),
        ReasoningDelta("yes"),
        TextDelta("I "),
        TextDelta("say"),
        RefusalDelta("no"),
        ToolCallStarted(index=0, id="c1", name="a"),
        ToolCallDelta(index=0, arguments="{}"),
        ToolCallReady(index=0, call=whole),
        ToolCallDelta(index=0, arguments="late"),
        ToolCallStarted(index=1, id="c2", name="b"),
        ToolCallDelta(index=1, arguments='{"x'),
        ToolCallDelta(index=7, arguments="of no call"),
        Warned(code="finish_inferred", message="never said why"),
        completed,
    )
    async with mock.stream(HELLO) as stream:
        events = [event async for event in stream]
    assert stream.response is completed.response
    assert events[0] == ResponseStarted(model="other")
    assert stream.partial == Message(
        role="assistant",
        parts=(
            ReasoningPart("hm yes"),
            TextPart("I say"),
            RefusalPart("no"),
            ToolCallPart(whole),
            ToolCallPart(ToolCall(id="c2", name="b", raw='{"x', problem="truncated")),
        ),
    )


async def test_a_gate_holds_the_answer_until_the_test_has_acted() -> None:
    gate, seen = Gate(), list[str]()
    mock = MockProvider().queue_events(TextDelta("before"), gate, TextDelta(" after"))

    async def read() -> str:
        async with mock.stream(HELLO) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    seen.append(event.text)
            return stream.response.text

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        task = group.create_task(read())
        await gate.reached.wait()
        assert seen == ["before"]
        gate.opened.set()
    assert task.result() == "before after"


@pytest.mark.parametrize("reason", ["cancelled", "timeout"])
async def test_cancelling_ends_a_held_answer_with_what_was_said(reason: str) -> None:
    gate, scope = Gate(), CancelScope()
    mock = MockProvider().queue_events(TextDelta("so far"), gate)

    async def read() -> tuple[str, str]:
        async with mock.stream(HELLO, ChatOptions(cancel=scope)) as stream:
            try:
                async for _ in stream:
                    pass
            except Cancelled as stop:
                return stop.reason, stream.partial.text
        raise AssertionError("it was not cancelled")

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        task = group.create_task(read())
        await gate.reached.wait()
        await asyncio.to_thread(
            scope.cancel, reason
        )  # from another thread, as a signal or a web request does
    assert task.result() == (reason, "so far")
    assert task.cancelling() == 0


async def test_cancelling_between_two_pieces_is_heard_at_the_next() -> None:
    scope = CancelScope()
    mock = MockProvider().queue_text("abcd", chunks=4)
    seen = []
    with pytest.raises(Cancelled):
        async with mock.stream(HELLO, ChatOptions(cancel=scope)) as stream:
            async for event in stream:
                seen.append(event)
                if event == TextDelta("b"):
                    scope.cancel()
    assert seen == [ResponseStarted(model="mock-model"), TextDelta("a"), TextDelta("b")]


async def test_a_task_that_is_cancelled_itself_stays_cancelled() -> None:
    gate = Gate()
    mock = MockProvider().queue_events(gate)
    task = asyncio.create_task(chat(mock, HELLO, ChatOptions(cancel=CancelScope())))
    await asyncio.wait_for(gate.reached.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_task_cancelled_together_with_its_scope_stays_cancelled() -> None:
    gate, scope = Gate(), CancelScope()
    mock = MockProvider().queue_events(gate)
    task = asyncio.create_task(chat(mock, HELLO, ChatOptions(cancel=scope)))
    await asyncio.wait_for(gate.reached.wait(), 60)
    asyncio.get_running_loop().call_soon(task.cancel)
    scope.cancel()
    with pytest.raises((asyncio.CancelledError, Cancelled)):
        await task
    assert task.done()


def test_a_scope_that_outlives_its_loop_can_still_be_cancelled() -> None:
    scope = CancelScope()
    mock = MockProvider().queue_events(Gate())
    loop = asyncio.new_event_loop()
    stream = mock.stream(HELLO, ChatOptions(cancel=scope))
    loop.run_until_complete(stream.__aenter__())
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    scope.cancel()
    assert scope.cancelled
