"""A conversation: one log, what is visible of it, and who is told of a change."""

import logging
from threading import Barrier, Event, Thread

import pytest

from dialoom.base.errors import UsageError
from dialoom.conversation import (
    Append,
    CardEntry,
    Change,
    Conversation,
    EntriesRemoved,
    EntryAppended,
    Header,
    HeaderChange,
    HeaderChanged,
    MemoryConversationStore,
    TextEntry,
    Truncate,
    prompt,
    screen,
)
from dialoom.dialog import Stores
from dialoom.graph import MemoryCheckpointStore
from dialoom.llm import MockProvider, TextDelta
from dialoom.testing import ManualClock
from tests.dialog.talk import center_of, finished


def said(text: str, role: str = "user") -> TextEntry:
    return TextEntry(role=role, content=text)


def talk(*texts: str) -> Conversation:
    conversation = Conversation(clock=ManualClock())
    for text in texts:
        conversation.append(said(text))
    return conversation


@pytest.mark.promise("conversation-008", "conversation-012", "conversation-013")
def test_texts_and_cards_are_appended_at_the_end() -> None:
    conversation = talk("hi")
    card = CardEntry(type="Table", payload="type: Table\n")
    assert conversation.append(card) == 1
    assert conversation.append(said("there", "assistant")) == 2
    assert conversation.entries == (said("hi"), card, said("there", "assistant"))


@pytest.mark.promise("conversation-037", "conversation-038")
@pytest.mark.parametrize("question", ["Which cell size?", " two\n\nlines \r\n", "井" * 5000, "- a: [list"])
async def test_a_question_and_its_answer_are_one_entry_each(question: str) -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    answer = [TextDelta("25"), TextDelta(" "), TextDelta("m\n\nor less")]
    dialog = center_of(MockProvider().queue_events(*answer).queue_text("Yes."), stores=stores).new_dialog()
    await finished(dialog.send(question))
    expected = (said(question), said("25 m\n\nor less", "assistant"))
    assert (await stores.conversations.load(dialog.id)).entries == expected
    await finished(dialog.send(question))  # said again it is another entry
    again = (await stores.conversations.load(dialog.id)).entries
    assert again == dialog.messages == (*expected, said(question), said("Yes.", "assistant"))


@pytest.mark.promise("conversation-011")
def test_entries_cannot_be_changed_behind_the_log() -> None:
    conversation = talk("a")
    before = conversation.entries
    assert isinstance(before, tuple)
    assert conversation.entries is before
    conversation.append(said("b"))
    assert before == (said("a"),)
    with pytest.raises(AttributeError):
        before[0].content = "changed"


@pytest.mark.promise("conversation-010")
def test_two_conversations_share_no_entry() -> None:
    one, other = talk("a"), talk("b")
    one.append(said("c"))
    assert (one.entries, other.entries) == ((said("a"), said("c")), (said("b"),))
    assert one.id != other.id


@pytest.mark.promise("conversation-014", "conversation-015")
def test_removing_takes_entries_off_the_list_and_loses_nothing() -> None:
    conversation = talk("a", "b", "c", "d")
    assert conversation.remove_last() == said("d")
    assert conversation.entries == (said("a"), said("b"), said("c"))
    assert conversation.truncate_to(2) == 1
    assert conversation.clear() == 2
    assert conversation.entries == ()
    assert conversation.records == (
        *(Append(said(text)) for text in "abcd"),
        Truncate(3),
        Truncate(2),
        Truncate(0),
    )


def test_removing_from_nothing_changes_nothing() -> None:
    conversation = talk("a")
    assert conversation.truncate_to(1) == 0
    assert conversation.truncate_to(7) == 0
    assert conversation.clear() == 1
    assert conversation.clear() == 0
    assert conversation.remove_last() is None
    assert conversation.records == (Append(said("a")), Truncate(0))
    with pytest.raises(UsageError, match="cannot keep -1 entries"):
        conversation.truncate_to(-1)


def test_a_delivery_made_twice_is_there_once() -> None:
    conversation = talk()
    assert conversation.append(said("a"), key="run/1/0") == 0
    assert conversation.append(said("a"), key="run/1/0") is None
    conversation.clear()
    assert conversation.append(said("a"), key="run/1/0") is None
    assert conversation.entries == ()


def test_a_branch_begins_with_what_was_said_and_then_goes_its_own_way() -> None:
    conversation = Conversation(
        Header(id="first", title="Wells", created=1, updated=1, workflow_mode="guided", settings={"m": 1}),
        clock=ManualClock(50.0),
    )
    conversation.append(said("a"), key="run/1/0")
    conversation.append(said("b"))
    branch = conversation.branch(1)
    branch.append(said("c"))
    assert branch.append(said("a"), key="run/1/0") is None
    assert (branch.entries, conversation.entries) == ((said("a"), said("c")), (said("a"), said("b")))
    assert branch.header == Header(
        id=branch.id,
        title="Wells",
        branch_from="first",
        created=50,
        updated=50,
        workflow_mode="guided",
        settings={"m": 1},
    )
    assert conversation.branch().entries == conversation.entries
    assert conversation.branch(0).entries == ()
    for at in (-1, 3):
        with pytest.raises(UsageError, match=f"cannot branch at {at}: conversation first shows 2 entries"):
            conversation.branch(at)


async def test_the_header_tells_when_something_was_said_last() -> None:
    clock = ManualClock(100.0)
    conversation = Conversation(clock=clock)
    assert (conversation.header.created, conversation.header.updated) == (100.0, 100.0)
    await clock.advance(5.0004)
    conversation.append(said("a"))
    assert conversation.header.updated == 105.0
    await clock.advance(5)
    assert conversation.update(HeaderChange(title="Wells")) == conversation.header
    assert (conversation.header.title, conversation.header.updated) == ("Wells", 110.0)


@pytest.mark.promise("conversation-016")
def test_every_change_is_told_with_what_changed() -> None:
    conversation = talk("a")
    told: list[Change] = []
    leave = conversation.subscribe(told.append)
    conversation.append(said("b"), key="k")
    conversation.append(said("b"), key="k")
    conversation.truncate_to(1)
    conversation.remove_last()
    header = conversation.update(HeaderChange(title="t"))
    conversation.load_from_entries([said("x")])
    conversation.clear()
    assert told == [
        EntryAppended(index=1, entry=said("b"), key="k"),
        EntriesRemoved(keep=1, removed=1),
        EntriesRemoved(keep=0, removed=1),
        HeaderChanged(header),
        EntryAppended(index=0, entry=said("x")),
        EntriesRemoved(keep=0, removed=1),
    ]
    leave()
    leave()
    conversation.append(said("unheard"))
    assert len(told) == 6


def test_who_listens_later_hears_later_changes_only_and_who_left_hears_none() -> None:
    conversation = talk()
    late: list[Change] = []
    never: list[Change] = []

    def swap(change: Change) -> None:
        leave_never()
        if change == EntryAppended(index=0, entry=said("a")):
            conversation.append(said("b"))
            conversation.subscribe(late.append)
            conversation.append(said("c"))

    conversation.subscribe(swap)
    leave_never = conversation.subscribe(never.append)
    leave_never()
    conversation.append(said("a"))
    assert late == [EntryAppended(index=2, entry=said("c"))]
    assert never == []


def test_one_function_may_listen_twice_and_leaves_once_at_a_time() -> None:
    conversation = talk()
    told: list[Change] = []
    leave_first = conversation.subscribe(told.append)
    conversation.subscribe(told.append)
    leave_first()
    conversation.append(said("a"))
    assert told == [EntryAppended(index=0, entry=said("a"))]


def test_a_failing_listener_harms_neither_the_log_nor_the_next(caplog: pytest.LogCaptureFixture) -> None:
    conversation = talk()
    told: list[Change] = []

    def fail(_: Change) -> None:
        raise RuntimeError("the page is gone")

    conversation.subscribe(fail)
    conversation.subscribe(told.append)
    with caplog.at_level(logging.ERROR, "dialoom.conversation"):
        assert conversation.append(said("secret words")) == 0
    assert told == [EntryAppended(index=0, entry=said("secret words"))]
    (line,) = caplog.records
    assert line.getMessage() == "conversation listener failed"
    assert "secret words" not in caplog.text


def test_a_listener_may_append_and_notices_stay_in_order() -> None:
    conversation = talk()
    told: list[int] = []

    def answer(change: Change) -> None:
        if isinstance(change, EntryAppended) and change.index < 3:
            conversation.append(said(f"answer {change.index}"))
        told.append(len(told))

    seen: list[Change] = []
    conversation.subscribe(answer)
    conversation.subscribe(seen.append)
    conversation.append(said("a"))
    assert [change.index for change in seen if isinstance(change, EntryAppended)] == [0, 1, 2, 3]


def test_an_interrupted_listener_leaves_the_conversation_able_to_tell() -> None:
    conversation = talk()

    def interrupt(_: Change) -> None:
        raise KeyboardInterrupt

    leave = conversation.subscribe(interrupt)
    with pytest.raises(KeyboardInterrupt):
        conversation.append(said("a"))
    leave()
    told: list[Change] = []
    conversation.subscribe(told.append)
    conversation.append(said("b"))
    assert told == [EntryAppended(index=1, entry=said("b"))]


def test_while_one_thread_tells_another_only_appends() -> None:
    conversation = talk()
    telling, go_on = Event(), Event()
    told: list[str] = []

    def slow(change: Change) -> None:
        telling.set()
        assert go_on.wait(60)
        assert isinstance(change, EntryAppended)
        assert isinstance(change.entry, TextEntry)
        told.append(change.entry.content)

    conversation.subscribe(slow)
    first = Thread(target=conversation.append, args=(said("first"),))
    first.start()
    assert telling.wait(60)
    assert conversation.append(said("second")) == 1
    assert told == []
    go_on.set()
    first.join(60)
    assert told == ["first", "second"]


def test_threads_appending_at_once_lose_nothing_and_keep_their_order() -> None:
    conversation = talk()
    told: list[int] = []
    conversation.subscribe(lambda change: told.append(getattr(change, "index", -1)))
    start = Barrier(8)

    def write(writer: int) -> None:
        start.wait(60)
        for at in range(200):
            conversation.append(said(f"{writer}:{at}"))

    threads = [Thread(target=write, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    texts = [entry.content for entry in conversation.entries if isinstance(entry, TextEntry)]
    for writer in range(8):
        own = [text for text in texts if text.startswith(f"{writer}:")]
        assert own == [f"{writer}:{at}" for at in range(200)]
    assert told == list(range(1600))


@pytest.mark.promise("storage-013")
def test_stored_entries_fill_a_conversation_in_place_of_what_it_showed() -> None:
    conversation = talk("old")
    conversation.load_from_entries(
        [
            {"kind": "Text", "role": "User", "content": "hi"},
            {"kind": "Special", "type": "Table", "payload": "type: Table\n"},
            said("done", "assistant"),
        ]
    )
    assert conversation.entries == (
        said("hi"),
        CardEntry(type="Table", payload="type: Table\n"),
        said("done", "assistant"),
    )
    assert conversation.records[:2] == (Append(said("old")), Truncate(0))


def test_stored_entries_with_one_bad_among_them_change_nothing() -> None:
    conversation = talk("old")
    with pytest.raises(UsageError, match=r"entry 1\[0\]: not an entry of a conversation"):
        conversation.load_from_entries([said("new"), {"kind": "Text"}])
    assert conversation.records == (Append(said("old")),)


@pytest.mark.promise("conversation-017", "storage-015")
def test_a_conversation_builds_no_view_and_stores_none() -> None:
    conversation = talk("hi")
    before = conversation.to_dict()
    assert prompt(conversation.entries, system="guide")
    assert screen(conversation.entries)
    assert conversation.to_dict() == before
    assert [name for name in dir(conversation) if "prompt" in name or "screen" in name] == []
    assert set(before) == {"sessionId", "title", "createdAt", "updatedAt", "workflowMode", "entries"}
