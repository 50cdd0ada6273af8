"""Forks: a dialog that goes on from where a run of another stood, which stays as it is."""

import pytest

from dialoom.base.errors import UsageError
from dialoom.conversation import MemoryConversationStore
from dialoom.dialog import Stores
from dialoom.graph import Checkpoint, MemoryCheckpointStore
from dialoom.llm import MockProvider
from tests.dialog.talk import call, center_of, finished, refund, said, soon


async def test_of_two_questions_a_fork_asks_the_one_that_was_open() -> None:
    mock = MockProvider().queue_tool_calls(call("c1", "refund", order=1), call("c2", "refund", order=2))
    mock.queue_text("Done.").queue_text("Done, too.")
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    dialog = center_of(mock, refund, stores=stores).new_dialog()
    asked = await soon(dialog.send("refund 1 and 2"))
    still = await soon(dialog.answer(asked.waiting[0], "decide", {"approved": True}))
    between = newest(stores, dialog.id)
    await finished(dialog.answer(still.waiting[0], "decide", {"approved": True}))
    whole = said(dialog)

    fork = await dialog.fork(between)
    assert (fork.branch_from_id, fork.waiting) == (dialog.id, still.waiting)
    await finished(fork.answer(still.waiting[0], "decide", {"approved": False}))
    results = [text for role, text in said(fork) if role == "tool"]
    assert results[0] == "refunded 10 of order 1"
    assert '"denied"' in results[1]
    assert (said(fork)[-1], said(dialog)) == (("assistant", "Done, too."), whole)


async def test_a_fork_can_be_forked_and_is_answered_anew() -> None:
    mock = (
        MockProvider().queue_tool_calls(call("c1", "refund", order=1)).queue_text("One.").queue_text("Two.")
    )
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    dialog = center_of(mock, refund, stores=stores).new_dialog()
    await soon(dialog.send("refund 1"))
    fork = await dialog.fork(newest(stores, dialog.id))
    twin = await fork.fork(newest(stores, fork.id))
    for each, words in ((fork, "One."), (twin, "Two.")):
        await finished(each.answer(each.waiting[0], "decide", {"approved": True}))
        assert said(each)[-2:] == [("tool", "refunded 10 of order 1"), ("assistant", words)]
    assert len(dialog.waiting) == 1


@pytest.mark.parametrize("answered", [{"approved": True}, {"approved": False}], ids=["allowed", "declined"])
async def test_a_fork_of_a_fork_keeps_the_answer_that_its_call_has_not_had_yet(
    answered: dict[str, bool],
) -> None:
    mock = MockProvider().queue_tool_calls(call("c1", "refund", order=1))
    for words in ("One.", "Two.", "Three.", "Four.", "Five."):
        mock.queue_text(words)
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    dialog = center_of(mock, refund, stores=stores).new_dialog()
    asked = await soon(dialog.send("refund 1"))
    await finished(dialog.answer(asked.waiting[0], "decide", answered))
    (between,) = [each for each in stores.checkpoints.history(dialog.id) if each.frontier.notes][:1]

    fork = await dialog.fork(between)
    decided = said(fork)
    await finished(fork.resume())
    first = list(stores.checkpoints.history(fork.id))[-1]
    twin = await fork.fork(first)
    assert said(twin) == decided == said(fork)[:-2]
    assert twin.waiting == ()
    await finished(twin.resume())
    assert said(twin)[:-1] == said(fork)[:-1]  # the model says other words
    third = await twin.fork(list(stores.checkpoints.history(twin.id))[-1])
    assert said(third) == decided

    await finished(third.resume())
    third.truncate_to(0)
    await finished(third.send("Something else"))
    later = await third.fork(list(stores.checkpoints.history(third.id))[-1])
    assert said(later) == [("user", "Something else")]


async def test_a_checkpoint_of_another_dialog_is_refused() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    center = center_of(MockProvider().queue_text("Hello."), stores=stores)
    dialog = center.new_dialog()
    await finished(dialog.send("Hi"))
    with pytest.raises(UsageError, match="of another thread; open the dialog that it is of"):
        await center.new_dialog().fork(newest(stores, dialog.id))


def newest(stores: Stores, thread_id: str) -> Checkpoint:
    found = stores.checkpoints.load(thread_id)
    assert found is not None
    return found
