"""Older turns told in short: in the model's view only, kept beside the log, made anew when it is time."""

from dialoom.agent import Compaction
from dialoom.conversation import MemoryConversationStore
from dialoom.dialog import Center, Dialog, RunPolicy, Stores
from dialoom.graph import MemoryCheckpointStore
from dialoom.llm import MockProvider, ProviderError
from tests.dialog.talk import finished, said

LONG = "many words about the wells of the field " * 10
COMPACTION = Compaction(above=600, keep=200, summary=100)


def talk(stores: Stores, mock: MockProvider) -> Center:
    return Center(stores, policy=RunPolicy(compaction=COMPACTION)).add_provider(mock)


def long_dialog(center: Center) -> Dialog:
    dialog = center.new_dialog().set_system_text("Be brief.")
    for at in range(6):
        dialog.append_message("user", f"question {at}: {LONG}").append_message("assistant", f"answer {at}")
    return dialog


async def test_older_turns_are_one_summary_in_the_models_view_and_stay_in_the_log() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    mock = MockProvider().queue_text("They spoke of wells.").queue_text("Sixth.").queue_text("Seventh.")
    dialog = long_dialog(talk(stores, mock))
    before = said(dialog)
    await finished(dialog.send("and now?"))
    view = mock.requests[1].messages
    assert [message.mark for message in view] == [None, "summary", *[None] * (len(view) - 2)]
    assert (view[0].text, view[-1].text) == ("Be brief.", "and now?")
    assert view[1].text == "Summary of the conversation so far:\nThey spoke of wells."
    assert 0 < sum(message.role == "user" for message in view[2:]) < 5
    assert said(dialog) == [*before, ("user", "and now?"), ("assistant", "Sixth.")]

    later = await talk(stores, mock).open(dialog.id)
    await finished(later.send("again?"))
    assert mock.requests[2].messages[1] == view[1]
    assert [message.text for message in mock.requests[2].messages][-2:] == ["Sixth.", "again?"]
    mock.assert_done()


async def test_a_summary_of_what_was_taken_back_is_forgotten() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    mock = MockProvider().queue_text("They spoke of wells.").queue_text("a").queue_text("b")
    dialog = long_dialog(talk(stores, mock))
    await finished(dialog.send("and now?"))
    await finished(dialog.truncate_to(2).send("again?"))
    assert [message.mark for message in mock.requests[2].messages] == [None] * 4


async def test_a_summary_that_cannot_be_had_is_said_and_the_answer_comes_all_the_same() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    mock = MockProvider().queue_error(ProviderError("overloaded", "the model is busy")).queue_text("Sixth.")
    dialog = long_dialog(talk(stores, mock))
    notices: list[str] = []
    dialog.events.connect(lambda event: notices.append(getattr(event, "message", "")))
    await finished(dialog.send("and now?"))
    assert [each for each in notices if each] == ["the model is busy"]
    assert [message.mark for message in mock.requests[1].messages] == [None] * 14
    mock.queue_text("Seventh.")
    await finished(dialog.send("and then?"))
    assert len(mock.requests) == 3  # it is not asked for again at once
    for at in range(4):
        dialog.append_message("user", f"more {at}").append_message("assistant", f"more {at}")
    mock.queue_text("They spoke of wells.").queue_text("Eighth.")
    await finished(dialog.send("and again?"))
    assert mock.requests[-1].messages[1].mark == "summary"


async def test_a_short_dialog_is_not_summarised() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    mock = MockProvider().queue_text("Hello.")
    await finished(talk(stores, mock).new_dialog().send("hi"))
    assert [message.text for message in mock.requests[0].messages] == ["hi"]


async def test_a_branch_from_before_the_end_of_a_summary_is_read_as_it_was_said() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    mock = MockProvider().queue_text("They spoke of wells.").queue_text("Sixth.").queue_text("First, anew.")
    dialog = long_dialog(talk(stores, mock))
    await finished(dialog.send("and now?"))
    edited = await dialog.edit(0, "question 0, I mean")
    await finished(edited.run())
    assert [message.text for message in mock.requests[2].messages] == ["Be brief.", "question 0, I mean"]
    later = await dialog.branch()
    mock.queue_text("Seventh.")
    await finished(later.send("again?"))
    assert mock.requests[3].messages[1].mark == "summary"
