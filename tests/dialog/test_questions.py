"""Questions of a run: cards in the log, answered by people, once; the run goes on with what they said."""

import asyncio

import pytest

from dialoom.base.errors import UsageError
from dialoom.conversation import MemoryConversationStore, TextEntry
from dialoom.conversation.cards import DEFAULT_CARDS, Approval
from dialoom.dialog import AlreadyAnsweredError, Dialog, Stores
from dialoom.graph import MemoryCheckpointStore
from dialoom.llm import Gate, MockProvider, TextDelta
from dialoom.tools import tool
from tests.dialog.talk import call, cards, center_of, finished, refund, said, soon


def asks_refund() -> MockProvider:
    return MockProvider().queue_tool_call("c1", "refund", {"order": 9}).queue_text("Done.")


def card_of(dialog: Dialog) -> Approval:
    card = DEFAULT_CARDS.decode_entry(cards(dialog.messages)[-1])
    assert isinstance(card, Approval)
    return card


async def test_an_approval_is_a_card_and_deciding_it_goes_on() -> None:
    mock = asks_refund()
    dialog = center_of(mock, refund).new_dialog()
    paused = await soon(dialog.send("refund 9"))
    assert (paused.stop_reason, paused.waiting, paused.error) == ("needs_approval", dialog.waiting, None)
    card = card_of(dialog)
    assert (card.id, card.tool_name, card.arguments) == (paused.waiting[0], "refund", {"order": 9})
    await finished(dialog.answer(paused.waiting[0], "decide", {"approved": True}))
    assert [role for role, _ in said(dialog)] == [
        "user",
        "assistant",
        "Approval",
        "Approval",
        "tool",
        "assistant",
    ]
    assert dialog.messages[4].content == "refunded 10 of order 9"
    # between the call and its result stands nothing in what the model reads
    assert [message.role for message in mock.requests[1].messages] == ["user", "assistant", "tool"]
    mock.queue_text("Bye.")
    await finished(dialog.send("thanks"))
    assert [message.role for message in mock.requests[2].messages][:3] == ["user", "assistant", "tool"]


async def test_a_declined_call_is_not_run_and_the_model_reads_why() -> None:
    dialog = center_of(asks_refund(), refund).new_dialog()
    (card_id,) = (await soon(dialog.send("refund 9"))).waiting
    await finished(dialog.answer(card_id, "decide", {"approved": False, "comment": "ask Bob first"}))
    assert "ask Bob first" in said(dialog)[4][1]


async def test_arguments_can_be_edited_and_those_that_do_not_fit_are_refused() -> None:
    dialog = center_of(asks_refund(), refund).new_dialog()
    (card_id,) = (await soon(dialog.send("refund 9"))).waiting
    with pytest.raises(UsageError, match=r"tool refund cannot take these arguments: .*order"):
        dialog.answer(card_id, "decide", {"approved": True, "editedArguments": {"order": "nine"}})
    edited = {"order": 9, "amount": 5}
    await finished(dialog.answer(card_id, "decide", {"approved": True, "editedArguments": edited}))
    assert said(dialog)[4][1].startswith("refunded 5 of order 9")


async def test_a_second_answer_is_refused_with_what_became_of_the_first() -> None:
    mock = MockProvider().queue_tool_call("c1", "refund", {"order": 9})
    gate = Gate()
    dialog = center_of(mock.queue_events(gate, TextDelta("Done.")), refund).new_dialog()
    (card_id,) = (await soon(dialog.send("refund 9"))).waiting
    going = dialog.answer(card_id, "decide", {"approved": True})
    with pytest.raises(
        AlreadyAnsweredError, match="this approval is approved; it takes no other answer"
    ) as no:
        dialog.answer(card_id, "decide", {"approved": False})
    assert no.value.status == "approved"
    await soon(gate.reached.wait())
    with pytest.raises(AlreadyAnsweredError):
        dialog.answer(card_id, "decide", {"approved": False})
    gate.opened.set()
    await finished(going)


async def test_arguments_that_are_too_long_for_a_card_are_not_shown_in_part() -> None:
    @tool(requires_approval=True, idempotent=True)
    async def write(text: str) -> str:
        """Write."""
        return f"wrote {len(text)} characters"

    mock = MockProvider().queue_tool_call("c1", "write", {"text": "x" * 300_000}).queue_text("Done.")
    dialog = center_of(mock, write).new_dialog()
    (card_id,) = (await soon(dialog.send("go"))).waiting
    assert card_of(dialog).arguments == {"too long to be shown": "300011 bytes"}
    await finished(dialog.answer(card_id, "decide", {"approved": True}))
    assert said(dialog)[4][1] == "wrote 300000 characters"


async def test_of_two_questions_each_is_answered_by_itself() -> None:
    mock = MockProvider().queue_tool_calls(call("c1", "refund", order=1), call("c2", "refund", order=2))
    dialog = center_of(mock.queue_text("Done."), refund).new_dialog()
    first, second = (await soon(dialog.send("both"))).waiting
    half = await soon(dialog.answer(second, "decide", {"approved": True}))
    assert (half.stop_reason, half.waiting) == ("needs_approval", (first,))
    await finished(dialog.answer(first, "decide", {"approved": False}))
    results = [entry for entry in dialog.messages if isinstance(entry, TextEntry) and entry.role == "tool"]
    assert [entry.tool_call_id for entry in results] == ["c2", "c1"]
    assert len(cards(dialog.messages)) == 4
    mock.assert_done()


async def test_what_nobody_waits_for_cannot_be_answered() -> None:
    dialog = center_of(asks_refund(), refund).new_dialog()
    dialog.append_message(DEFAULT_CARDS.encode(Approval(id="a1", title="mine")))
    with pytest.raises(UsageError, match="no run waits for card 'a1'; change it with act"):
        dialog.answer("a1", "decide", {"approved": True})
    (card_id,) = (await soon(dialog.send("refund 9"))).waiting
    with pytest.raises(UsageError, match="a run waits for this card; answer it"):
        dialog.act(card_id, "decide", {"approved": True})
    with pytest.raises(UsageError, match="this Approval card has no action 'submit'; it takes decide"):
        dialog.answer(card_id, "submit", {})
    assert dialog.waiting == (card_id,)


async def test_saying_something_else_gives_the_question_up() -> None:
    mock = asks_refund()
    dialog = center_of(mock, refund).new_dialog()
    (card_id,) = (await soon(dialog.send("refund 9"))).waiting
    result = await finished(dialog.send("never mind"))
    assert (result.text, dialog.waiting, card_of(dialog).status) == ("Done.", (), "expired")
    with pytest.raises(AlreadyAnsweredError, match="this approval is expired; it takes no other answer"):
        dialog.answer(card_id, "decide", {"approved": True})


async def test_taking_back_messages_cancels_the_paused_run() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    dialog = center_of(asks_refund(), refund, stores=stores).new_dialog()
    (card_id,) = (await soon(dialog.send("refund 9"))).waiting
    dialog.truncate_to(1)
    assert (dialog.waiting, said(dialog)) == ((), [("user", "refund 9")])
    with pytest.raises(UsageError, match=f"there is no card '{card_id}' to be answered"):
        dialog.answer(card_id, "decide", {"approved": True})
    await dialog.save()
    assert stores.checkpoints.load(dialog.id) is None
    assert (await center_of(MockProvider(), stores=stores).open(dialog.id)).waiting == ()


async def test_cancelling_a_run_that_was_answered_closes_what_else_was_asked() -> None:
    begun = asyncio.Event()

    @tool(requires_approval=True, idempotent=True)
    async def slow(order: int) -> str:
        """Take long."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    mock = MockProvider().queue_tool_calls(call("c1", "slow", order=1), call("c2", "slow", order=2))
    dialog = center_of(mock, slow).new_dialog()
    first, second = (await soon(dialog.send("both"))).waiting
    handle = dialog.answer(first, "decide", {"approved": True})
    await soon(begun.wait())
    dialog.cancel()
    result = await soon(handle)
    assert (result.stop_reason, result.error, dialog.waiting) == ("cancelled", None, ())
    assert card_of(dialog).status == "expired"
    with pytest.raises(AlreadyAnsweredError):
        dialog.answer(second, "decide", {"approved": True})
