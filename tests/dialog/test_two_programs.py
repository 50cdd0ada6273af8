"""Two programs with the same dialog open: each reads what the other said, and one question has one answer."""

import pytest

from dialoom.base.errors import StoreError
from dialoom.conversation import Append, Conversation, MemoryConversationStore, TextEntry
from dialoom.conversation.cards import DEFAULT_CARDS
from dialoom.dialog import Dialog, Stores
from dialoom.graph import MemoryCheckpointStore
from dialoom.llm import Gate, MockProvider, TextDelta
from tests.dialog.talk import call, cards, center_of, finished, kind, refund, said, soon, told

GONE = "another program went on with this dialog; look at its messages before you go on"


def stores() -> Stores:
    return Stores(MemoryConversationStore(), MemoryCheckpointStore())


def asks() -> MockProvider:
    return MockProvider().queue_tool_calls(call("c1", "refund", order=9))


def decided(dialog: Dialog) -> list[str | None]:
    return [DEFAULT_CARDS.decode_entry(entry).status for entry in cards(dialog.messages)]  # type: ignore[union-attr] - a card


async def test_what_another_program_said_is_read_before_the_next_answer() -> None:
    kept = stores()
    mock = MockProvider().queue_text("a").queue_text("c")
    dialog = center_of(mock, stores=kept).new_dialog()
    await finished(dialog.send("one"))
    other = await center_of(MockProvider().queue_text("b").queue_text("d"), stores=kept).open(dialog.id)
    await finished(other.send("two"))
    await finished(dialog.send("three"))
    await finished(other.send("four"))
    everything = ["one", "a", "two", "b", "three", "c", "four", "d"]
    assert [words for _, words in said(other)] == everything
    assert [words for _, words in said(dialog)] == everything[:6]
    assert [message.text for message in mock.requests[1].messages] == everything[:5]
    assert [entry.content for entry in (await kept.conversations.load(dialog.id)).entries] == everything  # type: ignore[union-attr] - texts


async def test_an_answer_that_comes_second_is_not_kept_and_its_dialog_shows_the_first() -> None:
    kept, gate = stores(), Gate()
    dialog = center_of(asks(), refund, stores=kept).new_dialog()
    (card_id,) = (await soon(dialog.send("refund 9"))).waiting
    slow = MockProvider().queue_events(gate, TextDelta("Declined."))
    other = await center_of(slow, refund, stores=kept).open(dialog.id)
    first = other.answer(card_id, "decide", {"approved": False})
    await soon(gate.reached.wait())
    left: list[int] = []
    dialog.messages_removed.connect(left.append)
    handle = dialog.answer(card_id, "decide", {"approved": True})
    events = [kind(event) async for event in handle]
    second = await soon(handle)
    assert (second.stop_reason, str(second.error), events[-1]) == ("conflict", GONE, "run.failed")
    assert left[0] == 3  # the card that was shown as approved is taken back
    assert (decided(dialog), dialog.waiting) == ([None, "declined"], ())
    gate.opened.set()
    await finished(first)
    log = (await kept.conversations.load(dialog.id)).entries
    assert ["refunded" in getattr(entry, "content", "") for entry in log].count(True) == 0


async def test_a_question_that_another_program_spoke_over_takes_no_answer() -> None:
    kept = stores()
    dialog = center_of(asks(), refund, stores=kept).new_dialog()
    (card_id,) = (await soon(dialog.send("refund 9"))).waiting
    other = await center_of(MockProvider().queue_text("Fine."), refund, stores=kept).open(dialog.id)
    await finished(other.send("never mind"))
    refused = await soon(dialog.answer(card_id, "decide", {"approved": True}))
    assert (refused.stop_reason, str(refused.error), dialog.waiting) == ("conflict", GONE, ())
    assert said(dialog)[:5] == said(other)[:5]
    assert "approved" not in decided(dialog)
    assert not dialog.is_unfinished


async def test_resuming_a_run_that_another_program_ended_shows_how_it_ended() -> None:
    kept = stores()
    dialog = center_of(asks(), refund, stores=kept).new_dialog()
    (card_id,) = (await soon(dialog.send("refund 9"))).waiting
    other = await center_of(MockProvider().queue_text("Done."), refund, stores=kept).open(dialog.id)
    await finished(other.answer(card_id, "decide", {"approved": True}))
    result = await finished(dialog.resume())
    assert (result.text, said(dialog)) == ("Done.", said(other))


async def test_who_listens_hears_what_another_program_said_and_where_its_own_words_are() -> None:
    kept = stores()
    dialog = center_of(MockProvider().queue_text("a").queue_text("c"), stores=kept).new_dialog()
    await finished(dialog.send("one"))
    other = await center_of(MockProvider().queue_text("b"), stores=kept).open(dialog.id)
    await finished(other.send("two"))
    shown = [words for _, words in said(dialog)]

    def take(left: int) -> None:
        del shown[left:]

    dialog.messages_removed.connect(take)
    dialog.message_appended.connect(lambda at: shown.append(said(dialog)[at][1]))
    await finished(dialog.send("three"))
    assert shown == [words for _, words in said(dialog)] == ["one", "a", "two", "b", "three", "c"]


async def test_words_that_come_while_a_run_goes_on_stand_before_its_answer() -> None:
    kept, gate = stores(), Gate()
    dialog = center_of(MockProvider().queue_events(gate, TextDelta("a")), stores=kept).new_dialog()
    handle = dialog.send("one")
    await soon(gate.reached.wait())
    added = (Append(TextEntry(role="user", content="two")), Append(TextEntry(role="user", content="three")))
    await kept.conversations.append(dialog.id, added)
    appended: list[int] = []
    dialog.message_appended.connect(appended.append)
    gate.opened.set()
    await finished(handle)
    assert ([words for _, words in said(dialog)], appended) == (["one", "two", "three", "a"], [1, 2, 3])


async def test_what_another_program_chose_is_chosen_here_too() -> None:
    kept = stores()
    mock = MockProvider().queue_text("a").queue_text("b")
    dialog = center_of(mock, stores=kept).new_dialog().add_tool(refund).append_message("user", "one")
    await finished(dialog.run())
    other = await center_of(MockProvider(), stores=kept).open(dialog.id)
    other.set_title("Renamed").set_system_text("Be brief.").append_message("system", "Be kind.")
    await other.save()
    await finished(dialog.append_message("user", "two").run())
    assert (dialog.header.title, dialog.system_text, dialog.tool_names) == (
        "Renamed",
        "Be brief.",
        ("refund",),
    )
    assert mock.requests[1].messages[0].text == "Be brief.\n\nBe kind."


async def test_what_another_program_took_back_is_gone_here_too() -> None:
    kept = stores()
    dialog = center_of(MockProvider().queue_text("a").queue_text("b"), stores=kept).new_dialog()
    await finished(dialog.send("one"))
    other = await center_of(MockProvider(), stores=kept).open(dialog.id)
    await other.clear_messages().append_message("user", "anew").save()
    await finished(dialog.run())
    assert said(dialog) == [("user", "anew"), ("assistant", "b")]


class BusyStore(MemoryConversationStore):
    """Fails to load so many times."""

    failures = 0

    async def load(self, conversation_id: str) -> Conversation:
        if self.failures:
            self.failures -= 1
            raise StoreError("the disk is busy; try again")
        return await super().load(conversation_id)


async def test_what_could_not_be_read_of_another_program_is_read_the_next_time() -> None:
    store = BusyStore()
    kept = Stores(store, MemoryCheckpointStore())
    dialog = center_of(MockProvider().queue_text("a").queue_text("b"), stores=kept).new_dialog()
    await finished(dialog.send("one"))
    await store.append(dialog.id, [Append(TextEntry(role="user", content="two"))])
    store.failures = 1
    with pytest.raises(StoreError, match="the disk is busy; try again"):
        await dialog.append_message("user", "three").save()
    await finished(dialog.run())
    assert [words for _, words in said(dialog)] == ["one", "a", "two", "three", "b"]
    assert [words for _, words in map(told, (await store.load(dialog.id)).entries)] == [
        words for _, words in said(dialog)
    ]
