"""Questions that nobody waits for any more: shown as expired by a new state of the card, answered by none."""

import pytest

from dialoom.base.errors import UsageError
from dialoom.conversation import MemoryConversationStore, TextEntry
from dialoom.conversation.cards import DEFAULT_CARDS, Approval, Form
from dialoom.dialog import AlreadyAnsweredError, Center, Dialog, RunPolicy, Stores
from dialoom.graph import MemoryCheckpointStore
from dialoom.llm import MockProvider
from dialoom.testing.clock import ManualClock
from tests.dialog.talk import add, call, cards, center_of, finished, refund, said, soon


def stores() -> Stores:
    return Stores(MemoryConversationStore(), MemoryCheckpointStore())


def asks_refund() -> MockProvider:
    return MockProvider().queue_tool_call("c1", "refund", {"order": 9}).queue_text("Done.")


def statuses(dialog: Dialog) -> list[tuple[str | None, str | None]]:
    """Return id and status of every state of every card."""
    decoded = [DEFAULT_CARDS.decode_entry(each) for each in cards(dialog.messages)]
    return [(card.id, card.status) for card in decoded if isinstance(card, Approval | Form)]


async def test_cancelling_a_paused_run_expires_its_question() -> None:
    kept = stores()
    dialog = center_of(asks_refund(), refund, stores=kept).new_dialog()
    (card_id,) = (await soon(dialog.send("refund 9"))).waiting
    dialog.cancel()
    dialog.cancel()
    assert (dialog.waiting, statuses(dialog)) == ((), [(card_id, None), (card_id, "expired")])
    with pytest.raises(AlreadyAnsweredError, match="this approval is expired; it takes no other answer"):
        dialog.answer(card_id, "decide", {"approved": True})
    await dialog.save()
    again = await center_of(MockProvider(), refund, stores=kept).open(dialog.id)
    assert (again.waiting, again.is_unfinished, statuses(again)) == ((), False, statuses(dialog))
    assert kept.checkpoints.load(dialog.id) is None


async def test_closing_a_dialog_leaves_its_question_open() -> None:
    kept = stores()
    dialog = center_of(asks_refund(), refund, stores=kept).new_dialog()
    paused = await soon(dialog.send("refund 9"))
    await dialog.aclose()
    assert (await center_of(asks_refund(), refund, stores=kept).open(dialog.id)).waiting == paused.waiting


async def test_a_question_that_stays_when_later_messages_are_taken_back_expires() -> None:
    dialog = center_of(asks_refund(), refund).new_dialog()
    (card_id,) = (await soon(dialog.send("refund 9"))).waiting
    dialog.append_message(TextEntry(role="assistant", content="By the way."))
    told: list[int] = []
    dialog.message_appended.connect(told.append)
    dialog.truncate_to(3)
    assert statuses(dialog) == [(card_id, None), (card_id, "expired")]
    assert (told, dialog.waiting) == ([3], ())


@pytest.mark.parametrize("goes", ["while it is open", "before it is opened"])
async def test_a_question_whose_checkpoints_are_gone_expires(goes: str) -> None:
    kept = stores()
    center = center_of(asks_refund(), refund, stores=kept)
    dialog = center.new_dialog()
    (card_id,) = (await soon(dialog.send("refund 9"))).waiting
    dialog.append_message(DEFAULT_CARDS.encode(Approval(id="mine", title="Of no run")))
    await dialog.save()
    kept.checkpoints.erase_thread(dialog.id)
    if goes == "before it is opened":
        dialog = await center_of(asks_refund(), refund, stores=kept).open(dialog.id)
    told: list[int] = []
    dialog.message_appended.connect(told.append)
    await dialog.settle()
    await dialog.settle()
    assert statuses(dialog) == [(card_id, None), ("mine", None), (card_id, "expired")]
    assert told == ([4] if goes == "while it is open" else [])
    assert len((await kept.conversations.load(dialog.id)).entries) == 5


async def test_what_another_program_went_on_with_is_waited_for_as_it_now_stands() -> None:
    kept = stores()
    mock = MockProvider().queue_tool_calls(call("c1", "refund", order=1), call("c2", "refund", order=2))
    dialog = center_of(mock, refund, stores=kept).new_dialog()
    first, second = (await soon(dialog.send("both"))).waiting
    other = await center_of(MockProvider(), refund, stores=kept).open(dialog.id)
    half = await soon(other.answer(first, "decide", {"approved": True}))
    assert half.waiting == (second,)
    await dialog.settle()
    assert second in dialog.waiting
    assert "expired" not in {status for _, status in statuses(dialog)}


async def test_a_question_left_by_a_run_that_was_gone_past_expires_when_the_dialog_is_opened() -> None:
    kept = stores()
    dialog = center_of(asks_refund(), refund, stores=kept).new_dialog()
    (card_id,) = (await soon(dialog.send("refund 9"))).waiting
    dialog.append_message("user", "never mind")
    await dialog.save()  # and here the program dies
    again = await center_of(MockProvider().queue_text("Fine."), refund, stores=kept).open(dialog.id)
    assert (again.waiting, statuses(again)[-1]) == ((), (card_id, "expired"))
    assert (await finished(again.run())).text == "Fine."


async def test_an_approval_expires_at_the_moment_its_card_tells() -> None:
    clock = ManualClock()
    center = Center(policy=RunPolicy(approval_seconds=60), clock=clock).add_provider(asks_refund())
    dialog = center.add_tool(refund).add_tool(add).new_dialog()
    assert dialog.waits_until is None
    (card_id,) = (await soon(dialog.send("refund 9"))).waiting
    assert dialog.waits_until == clock.now() + 60
    await clock.advance(59.9)
    await dialog.settle()
    assert dialog.waiting == (card_id,)
    await clock.advance(0.1)
    with pytest.raises(AlreadyAnsweredError, match="this approval is expired"):
        dialog.answer(card_id, "decide", {"approved": True})
    assert (dialog.waiting, dialog.waits_until) == ((), None)
    assert (await finished(dialog.send("then not"))).text == "Done."
    assert [role for role, _ in said(dialog)] == [
        "user", "assistant", "Approval", "Approval", "user", "assistant",
    ]  # fmt: skip


async def test_a_moment_that_cannot_be_read_is_none() -> None:
    dialog = center_of(asks_refund(), refund).new_dialog()
    (card_id,) = (await soon(dialog.send("refund 9"))).waiting
    dialog.append_message(DEFAULT_CARDS.encode(Approval(id=card_id, title="x", expires_at="soon")))
    assert (dialog.waits_until, dialog.waiting) == (None, (card_id,))


async def test_settling_changes_nothing_of_a_run_that_goes_on() -> None:
    dialog = center_of(MockProvider().queue_text("Hi."), refund).new_dialog()
    handle = dialog.send("Hello")
    await dialog.settle()
    assert (await finished(handle)).text == "Hi."


@pytest.mark.parametrize("seconds", [0, -1, 1e12])
def test_a_time_limit_is_more_than_nothing_and_less_than_for_ever(seconds: float) -> None:
    with pytest.raises(UsageError, match="an approval cannot wait"):
        RunPolicy(approval_seconds=seconds)
    with pytest.raises(UsageError, match="an approval cannot wait"):
        center_of(MockProvider()).limit_approvals(seconds)
