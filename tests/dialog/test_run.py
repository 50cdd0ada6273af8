"""Runs: the messages are answered, tools run by themselves, one run at a time, one end each."""

import asyncio

import pytest

from dialoom.agent import AgentLimits
from dialoom.base.errors import UsageError
from dialoom.conversation import TextEntry
from dialoom.conversation.cards import DEFAULT_CARDS, Table, TableColumn
from dialoom.dialog import (
    Center,
    Dialog,
    DialogEvent,
    DialogResult,
    RunFailed,
    RunFinished,
    RunInProgressError,
    RunPolicy,
    Skill,
    TurnFailedError,
)
from dialoom.llm import (
    ErrorKind,
    Gate,
    MockProvider,
    Model,
    ProviderError,
    Retrying,
    TextDelta,
    Usage,
    UsageUpdate,
)
from dialoom.tools import ToolContext, ToolResult, tool
from tests.dialog.talk import add, call, calling, center_of, finished, kind, said, soon


def events_of(dialog: Dialog) -> list[DialogEvent]:
    events: list[DialogEvent] = []
    dialog.events.connect(events.append)
    return events


@pytest.mark.promise("dialog-074", "conversation-044")
async def test_a_run_sends_system_text_messages_and_tools_and_writes_the_log() -> None:
    mock = MockProvider().queue_text("Hello.")
    center = center_of(mock, add).add_skill(
        Skill(name="s", description="d", instructions="Obey.", mode="always")
    )
    dialog = center.new_dialog().set_system_text("Be brief.").append_message("system", "Be kind.")
    dialog.append_message("user", "one").append_message("assistant", "two").append_message("user", "three")
    result = await finished(dialog.run())
    assert result == DialogResult(run_id=result.run_id, stop_reason="finished", text="Hello.")
    (request,) = mock.requests
    assert [(message.role, message.text) for message in request.messages] == [
        ("system", 'Be brief.\n\nBe kind.\n\n<skill name="s">\nObey.\n</skill>'),
        ("user", "one"),
        ("assistant", "two"),
        ("user", "three"),
    ]
    assert [spec.name for spec in request.options.tools] == ["add"]
    assert request.options.model == "mock-model"
    assert said(dialog)[-1] == ("assistant", "Hello.")
    stored = await center.open(dialog.id)
    assert stored is dialog


@pytest.mark.promise("dialog-077", "dialog-078", "dialog-079")
async def test_tools_run_at_once_and_their_results_stand_in_the_order_of_the_calls() -> None:
    started: list[int] = []
    both, first_goes_on = asyncio.Event(), asyncio.Event()

    @tool
    async def wait(number: int) -> str:
        """Wait for the others."""
        started.append(number)
        if len(started) == 2:
            both.set()
        await both.wait()
        if number == 1:
            await first_goes_on.wait()
        first_goes_on.set()
        return f"result {number}"

    mock = MockProvider().queue_tool_calls(call("c1", "wait", number=1), call("c2", "wait", number=2))
    mock.queue_tool_call("c3", "wait", {"number": 3}).queue_text("done")
    dialog = center_of(mock, wait).new_dialog()
    await finished(dialog.send("go"))
    assert [(entry.role, entry.content) for entry in dialog.messages if isinstance(entry, TextEntry)] == [
        ("user", "go"),
        ("assistant", ""),
        ("tool", "result 1"),
        ("tool", "result 2"),
        ("assistant", ""),
        ("tool", "result 3"),
        ("assistant", "done"),
    ]
    mock.assert_done()


@pytest.mark.promise("dialog-081")
async def test_run_returns_before_the_model_was_asked() -> None:
    mock = MockProvider().queue_text("Hello.")
    dialog = center_of(mock).new_dialog().append_message("user", "hi")
    handle = dialog.run()
    assert (mock.requests, handle.done, dialog.is_running) == ([], False, True)
    await finished(handle)
    assert (len(mock.requests), handle.done, dialog.is_running) == (1, True, False)


@pytest.mark.promise("dialog-083", "dialog-084", "dialog-085")
async def test_a_run_that_fails_tells_why_and_keeps_what_had_come() -> None:
    broken = ProviderError("connection", "the server mock went away; ask again")
    mock = MockProvider().queue_events(TextDelta("Half an ans"), broken)
    dialog = center_of(mock).new_dialog()
    told: list[str] = []
    dialog.stream_ended.connect(lambda text: told.append(f"ended {text}"))
    dialog.run_failed.connect(told.append)
    result = await soon(dialog.send("hi"))
    assert told == ["the server mock went away; ask again"]
    assert (result.stop_reason, result.finished) == ("error", False)
    with pytest.raises(TurnFailedError, match="the server mock went away; ask again"):
        result.raise_for_error()
    assert dialog.last_message == TextEntry(role="assistant", content="Half an ans", status="incomplete")
    assert not dialog.is_streaming
    assert dialog.is_unfinished
    mock.queue_text("A whole answer.")
    await finished(dialog.resume())
    assert said(dialog) == [("user", "hi"), ("assistant", "Half an ans"), ("assistant", "A whole answer.")]


@pytest.mark.parametrize(("why", "reason"), [("auth", "auth"), ("overloaded", "provider")])
async def test_a_model_that_does_not_answer_is_told_by_a_word_of_its_own(why: ErrorKind, reason: str) -> None:
    words = "HTTP 401: no such key; check the api key"
    refused = ProviderError(why, words)
    dialog = center_of(MockProvider().queue_events(refused)).new_dialog()
    handle = dialog.send("hi")
    events = [event async for event in handle]
    assert events[-1] == RunFailed(
        run_id=handle.run_id,
        seq=events[-1].seq,
        code=reason,
        message="HTTP 401: no such key; check the api key",
    )
    with pytest.raises(TurnFailedError) as failed:
        (await soon(handle)).raise_for_error()
    assert (failed.value.reason, failed.value.__cause__) == (reason, refused)


@pytest.mark.promise("dialog-086", "dialog-087", "dialog-088")
async def test_a_second_run_is_refused_at_once_and_the_first_goes_on() -> None:
    gate = Gate()
    mock = MockProvider().queue_events(TextDelta("Hel"), gate, TextDelta("lo")).queue_text("again")
    dialog = center_of(mock).new_dialog()
    events, failures = events_of(dialog), list[str]()
    dialog.run_failed.connect(failures.append)
    first = dialog.send("hi")
    await soon(gate.reached.wait())
    with pytest.raises(RunInProgressError) as refusal:
        dialog.run()
    assert refusal.value.run_id == first.run_id
    with pytest.raises(RunInProgressError):
        dialog.send("more")
    with pytest.raises(RunInProgressError):
        dialog.resume()
    refused = [event for event in events if isinstance(event, RunFailed)]
    assert failures == ["this dialog is answering; wait for it or cancel it"] * 3
    assert {(event.code, event.seq) for event in refused} == {("run_in_progress", 1)}
    assert first.run_id not in {event.run_id for event in refused}
    gate.opened.set()
    await finished(first)
    assert said(dialog) == [("user", "hi"), ("assistant", "Hello")]
    own = [event for event in events if event.run_id == first.run_id]
    assert [event.seq for event in own] == list(range(1, len(own) + 1))
    assert [type(event) for event in own if isinstance(event, RunFinished | RunFailed)] == [RunFinished]
    await finished(dialog.send("and now"))


async def test_the_events_of_a_run_can_be_read_as_they_come() -> None:
    dialog = center_of(MockProvider().queue_text("Hello there.", chunks=3)).new_dialog()
    heard = events_of(dialog)
    handle = dialog.send("hi")
    read = [event async for event in handle]
    assert read == heard
    assert [kind(event) for event in read] == [
        "run.started",
        "stream.began",
        "stream.delta",
        "stream.delta",
        "stream.delta",
        "message.appended",
        "stream.ended",
        "run.finished",
    ]
    assert [event async for event in handle] == read[-1:]


async def test_a_listener_may_start_the_next_run_when_one_has_ended() -> None:
    mock = MockProvider().queue_text("one").queue_text("two")
    dialog = center_of(mock).new_dialog()
    handles = []
    connection = dialog.run_finished.connect(lambda _: handles.append(dialog.send("next")))
    first = dialog.send("first")
    await finished(first)
    connection.disconnect()
    await finished(handles[0])
    assert [words for _, words in said(dialog)] == ["first", "one", "next", "two"]


async def test_a_listener_that_fails_breaks_no_run(caplog: pytest.LogCaptureFixture) -> None:
    dialog = center_of(MockProvider().queue_text("Hello.")).new_dialog()
    for signal in (dialog.stream_delta, dialog.message_appended, dialog.run_finished, dialog.events):
        signal.connect(lambda _: 1 / 0)
    await finished(dialog.send("hi"))
    assert said(dialog) == [("user", "hi"), ("assistant", "Hello.")]


@pytest.mark.promise("conversation-034", "conversation-035", "conversation-036")
async def test_a_model_reads_the_prompt_view_however_it_is_asked() -> None:
    mock = MockProvider().queue_text("a").queue_text("b")
    dialog = center_of(mock).new_dialog()
    rows = tuple((str(at), "x" * 40) for at in range(200))
    table = Table(title="Wells", columns=(TableColumn(name="id"), TableColumn(name="text")), rows=rows)
    dialog.append_message(DEFAULT_CARDS.encode(table)).append_message("user", "Which?")
    await finished(dialog.run())
    assert kind([event async for event in dialog.send("Sure?")][-1]) == "run.finished"
    views = [[(message.role, message.text) for message in request.messages] for request in mock.requests]
    assert views[0] == [("assistant", views[0][0][1]), ("user", "Which?")]
    assert views[1] == [*views[0], ("assistant", "a"), ("user", "Sure?")]
    assert views[0][0][1].startswith("[shown table: Wells")
    assert all("\n" not in words and len(words) <= 200 for view in views for _, words in view)


async def test_a_tool_shows_its_progress_and_a_card_behind_its_result() -> None:
    @tool
    async def measure(ctx: ToolContext) -> ToolResult:
        """Measure."""
        ctx.emit({"done": 1})
        card = DEFAULT_CARDS.encode(Table(title="Depths", rows=(("1",),)))
        return ToolResult(content="measured", card=card)

    mock = MockProvider().queue_events(*calling(call("c1", "measure"))).queue_text("done")
    dialog = center_of(mock, measure).new_dialog()
    events = events_of(dialog)
    await finished(dialog.send("go"))
    assert [role for role, _ in said(dialog)] == ["user", "assistant", "tool", "Table", "assistant"]
    tools = [event for event in events if kind(event).startswith("tool.")]
    assert [kind(event) for event in tools] == ["tool.started", "tool.progressed", "tool.finished"]
    assert [message.role for message in mock.requests[1].messages] == ["user", "assistant", "tool"]
    mock.queue_text("fine")
    await finished(dialog.send("and?"))  # in the next turn the card is one note behind the results
    assert [message.role for message in mock.requests[-1].messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "assistant",
        "user",
    ]


async def test_a_run_that_reaches_its_limits_says_which() -> None:
    mock = MockProvider()
    for at in range(3):
        mock.queue_tool_call(f"c{at}", "add", {"a": 1, "b": at})
    policy = RunPolicy(limits=AgentLimits(iterations=2))
    center = Center(policy=policy).add_provider(mock).add_tool(add)
    result = await soon(center.new_dialog().send("go"))
    assert isinstance(result.error, TurnFailedError)
    assert (result.stop_reason, result.error.reason) == ("max_iterations", "max_iterations")


async def test_a_retried_round_takes_its_words_back_and_says_so() -> None:
    again = Retrying(attempt=2, wait=0.0, kind="overloaded", message="busy; asked again", restarts=True)
    mock = MockProvider().queue_events(TextDelta("Hal"), again, TextDelta("Hello"))
    dialog = center_of(mock).new_dialog()
    told: list[str] = []
    dialog.stream_began.connect(lambda: told.append("began"))
    dialog.stream_delta.connect(told.append)
    dialog.events.connect(lambda event: told.append(getattr(event, "message", "")))
    handle = dialog.send("hi")
    await soon(handle)
    assert [each for each in told if each] == ["began", "Hal", "began", "busy; asked again", "Hello"]


async def test_what_a_run_used_is_told_with_its_result() -> None:
    usage = Usage(input_tokens=10, output_tokens=2)
    mock = MockProvider().queue_events(TextDelta("Hello."), UsageUpdate(usage))
    result = await finished(center_of(mock).new_dialog().send("hi"))
    assert (result.usage.input_tokens, result.usage.output_tokens) == (10, 2)


async def test_a_provider_with_a_bug_fails_the_run_and_not_the_program(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(settings: object) -> Model:
        raise RuntimeError("no idea")

    mock = MockProvider()
    mock.models = broken  # type: ignore[method-assign,assignment] - a provider with a bug
    result = await soon(center_of(mock).new_dialog().send("hi"))
    assert result.error is not None
    assert str(result.error).startswith("the run failed: TypeError: ")


def test_a_run_needs_an_event_loop() -> None:
    dialog = Center().new_dialog().append_message("user", "hi")
    with pytest.raises(UsageError, match="a dialog runs on an event loop; call this in async code"):
        dialog.run()
