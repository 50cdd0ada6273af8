"""Cancelling: it ends once, what was said is kept and marked, and the next run begins anew."""

import asyncio

import pytest

from dialoom.conversation import TextEntry
from dialoom.dialog import Center, DialogEvent, NoUsableModelError, RunFailed, RunFinished
from dialoom.llm import Gate, MockProvider, Model, TextDelta
from dialoom.tools import tool
from tests.dialog.talk import call, center_of, finished, said, soon


async def test_a_cancelled_answer_keeps_its_words_and_is_marked() -> None:
    gate = Gate()
    mock = MockProvider().queue_events(TextDelta("As I was say"), gate).queue_text("Anew.")
    dialog = center_of(mock).new_dialog()
    events, ended = list[DialogEvent](), list[str]()
    dialog.events.connect(events.append)
    dialog.stream_ended.connect(ended.append)
    handle = dialog.send("tell me")
    await soon(gate.reached.wait())
    handle.cancel()
    handle.cancel()
    result = await soon(handle)
    assert (result.stop_reason, result.text, result.error) == ("cancelled", "As I was say", None)
    assert dialog.last_message == TextEntry(role="assistant", content="As I was say", status="cancelled")
    assert ended == ["As I was say"]
    last = [event for event in events if isinstance(event, RunFinished | RunFailed)]
    assert [(type(event), event.run_id) for event in last] == [(RunFinished, handle.run_id)]
    assert (dialog.is_running, dialog.is_streaming, dialog.is_unfinished) == (False, False, False)
    await finished(dialog.send("go on"))
    assert [words for _, words in said(dialog)] == ["tell me", "As I was say", "go on", "Anew."]
    handle.cancel()


async def test_a_run_cancelled_before_a_word_ends_its_stream_and_leaves_no_message() -> None:
    gate = Gate()
    dialog = center_of(MockProvider().queue_events(gate)).new_dialog()
    ended: list[str] = []
    dialog.stream_ended.connect(ended.append)
    handle = dialog.send("hi")
    await soon(gate.reached.wait())
    dialog.cancel()
    assert (await soon(handle)).stop_reason == "cancelled"
    assert (said(dialog), ended, dialog.is_streaming) == ([("user", "hi")], [""], False)


async def test_calls_that_were_cancelled_are_closed_for_the_next_model() -> None:
    begun = asyncio.Event()

    @tool
    async def slow() -> str:
        """Take long."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    mock = MockProvider().queue_tool_calls(call("c1", "slow")).queue_text("Fine.")
    dialog = center_of(mock, slow).new_dialog()
    handle = dialog.send("go")
    await soon(begun.wait())
    handle.cancel()
    assert (await soon(handle)).stop_reason == "cancelled"
    await finished(dialog.send("never mind"))
    assert [role for role, _ in said(dialog)] == ["user", "assistant", "user", "assistant"]


async def test_a_run_is_cancelled_while_it_still_looks_for_its_model() -> None:
    asked = asyncio.Event()

    class Slow(MockProvider):
        async def models(self) -> tuple[Model, ...]:
            asked.set()
            await asyncio.Event().wait()
            return ()

    dialog = Center().add_provider(Slow()).new_dialog()
    handle = dialog.send("hi")
    await soon(asked.wait())
    handle.cancel()
    assert (await soon(handle)).stop_reason == "cancelled"
    assert dialog.is_unfinished


async def test_who_stops_waiting_for_a_run_leaves_it_going() -> None:
    gate = Gate()
    dialog = center_of(MockProvider().queue_events(gate, TextDelta("Hello."))).new_dialog()
    handle = dialog.send("hi")
    await soon(gate.reached.wait())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await handle
    gate.opened.set()
    async for _ in handle:
        break
    await finished(handle)


@pytest.mark.promise("dialog-006", "dialog-008")
async def test_closing_a_dialog_breaks_its_run_off_and_its_center_still_lists_it() -> None:
    gate = Gate()
    center = center_of(MockProvider().queue_events(TextDelta("Hal"), gate))
    dialog = center.new_dialog()
    handle = dialog.send("hi")
    await soon(gate.reached.wait())
    await soon(dialog.aclose())
    assert (await soon(handle)).stop_reason == "cancelled"
    assert (dialog.is_closed, center.dialogs) == (True, (dialog,))
    await dialog.aclose()
    again = await center.open(dialog.id)
    assert (again is dialog, said(again)) == (False, [("user", "hi"), ("assistant", "Hal")])


async def test_a_task_that_is_cancelled_from_outside_ends_its_run_too() -> None:
    gate = Gate()
    dialog = center_of(MockProvider().queue_events(TextDelta("Hal"), gate)).new_dialog()
    handle = dialog.send("hi")
    await soon(gate.reached.wait())
    ends: list[str] = []
    dialog.run_finished.connect(lambda result: ends.append(result.stop_reason))
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    assert (await soon(handle)).stop_reason == "cancelled"
    assert ends == ["cancelled"]


async def test_without_a_provider_the_words_stay_and_can_be_answered_later() -> None:
    center = Center()
    dialog = center.new_dialog()
    result = await soon(dialog.send("hi"))
    assert isinstance(result.error, NoUsableModelError)
    center.add_provider(MockProvider().queue_text("Hello."))
    await finished(dialog.resume())
    assert said(dialog) == [("user", "hi"), ("assistant", "Hello.")]
