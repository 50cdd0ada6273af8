"""After a crash at any step nothing is said twice, nothing is lost, and no answer is asked for again."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from dialoom.base.errors import ConflictError, StoreError
from dialoom.conversation import (
    Conversation,
    Header,
    HeaderChange,
    MemoryConversationStore,
    Record,
    Truncate,
)
from dialoom.dialog import Center, Stores
from dialoom.dialog.outbox import outbox
from dialoom.dialog.standing import messages_of, turn_of
from dialoom.graph import GraphBuilder, MemoryCheckpointStore, RunOptions
from dialoom.llm import Gate, MockProvider, TextDelta
from dialoom.testing.conversation_faults import FaultyConversationStore
from dialoom.testing.faults import FAULT_POINTS, FaultPoint, Faults, FaultyCheckpointStore
from tests.crash.dialog_kills import run_kills
from tests.crash.dialog_talk import (
    DIALOG,
    REQUESTS_PER_TURN,
    NotingModel,
    carry_on,
    look,
    pay,
    problems_of,
    read_log,
)
from tests.dialog.talk import add, center_of, finished, refund, said, soon

TURNS = 2


class Desk:
    """Stores that outlive a center, with faults to be planned, and the number of requests to the model."""

    def __init__(self, folder: Path) -> None:
        self.faults = Faults()
        self._conversations = MemoryConversationStore()
        self._checkpoints = MemoryCheckpointStore()
        self._requests = folder / "requests"

    @property
    def requests(self) -> int:
        return self._requests.read_text().count("request")

    def center(self) -> Center:
        """Return the center of a program that has just been started."""
        conversations = FaultyConversationStore(self._conversations, self.faults)
        checkpoints = FaultyCheckpointStore(self._checkpoints, self.faults)
        center = Center(Stores(conversations, checkpoints)).add_provider(NotingModel(self._requests))
        return center.add_tool(look).add_tool(pay)

    async def problems(self, turns: int = TURNS) -> list[str]:
        return problems_of(await read_log(self._conversations), turns=turns)


async def reached_in(folder: Path) -> dict[FaultPoint, int]:
    """Return how often each point is reached when nothing fails."""
    folder.mkdir()
    desk = Desk(folder)
    await soon(carry_on(desk.center(), TURNS))
    assert await desk.problems() == []
    assert desk.requests == TURNS * REQUESTS_PER_TURN
    return {point: desk.faults.reached(point) for point in FAULT_POINTS}


@pytest.mark.parametrize("point", FAULT_POINTS)
async def test_a_crash_after_any_step_says_nothing_twice(tmp_path: Path, point: FaultPoint) -> None:
    times = (await reached_in(tmp_path / "whole"))[point]
    assert times >= 4
    for time in range(1, times + 1):
        folder = tmp_path / f"{point}-{time}"
        folder.mkdir()
        desk = Desk(folder)
        desk.faults.fail(point, time=time)
        with pytest.raises(Exception, match=f"{point} was reached {time} times"):
            await soon(carry_on(desk.center(), TURNS))
        await soon(carry_on(desk.center(), TURNS))
        assert await desk.problems() == [], (point, time)
        assert desk.requests <= TURNS * REQUESTS_PER_TURN + 1, (point, time)


@pytest.mark.parametrize("point", FAULT_POINTS)
async def test_a_step_that_failed_is_gone_on_with_in_the_same_program(
    tmp_path: Path, point: FaultPoint
) -> None:
    times = (await reached_in(tmp_path / "whole"))[point]
    for time in range(1, times + 1):
        folder = tmp_path / f"{point}-{time}"
        folder.mkdir()
        desk = Desk(folder)
        desk.faults.fail(point, time=time)
        center = desk.center()
        with pytest.raises(Exception, match=f"{point} was reached {time} times"):
            await soon(carry_on(center, TURNS))
        if center.dialogs and center.dialogs[0].id == DIALOG:
            await center.dialogs[0].save()
        await soon(carry_on(center, TURNS))
        assert await desk.problems() == [], (point, time)


class Flaky(MemoryConversationStore):
    """A store whose first `create` is carried out, or not, and fails all the same."""

    def __init__(self, *, carries_out: bool) -> None:
        super().__init__()
        self._carries_out = carries_out
        self._fails = True

    async def create(self, conversation: Conversation) -> None:
        if not self._fails or self._carries_out:
            await super().create(conversation)
        if self._fails:
            self._fails = False
            raise StoreError("the disk went away; try again")


@pytest.mark.parametrize("carries_out", [True, False])
async def test_a_dialog_that_could_not_be_stored_for_sure_is_stored_once(carries_out: bool) -> None:
    store = Flaky(carries_out=carries_out)
    dialog = Center(Stores(store, MemoryCheckpointStore())).new_dialog().append_message("user", "hi")
    with pytest.raises(StoreError, match="the disk went away; try again"):
        await dialog.save()
    await dialog.append_message("assistant", "Hello.").save()
    assert (await store.load(dialog.id)).entries == dialog.messages


async def test_a_conversation_that_another_program_shortened_is_not_waited_for() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    dialog = Center(stores).new_dialog()
    for at in range(100):
        dialog.append_message("user", str(at))
    await dialog.save()
    later = await Center(stores).open(dialog.id)
    await stores.conversations.append(dialog.id, [Truncate(10)])
    with pytest.raises(ConflictError, match=r"shortened this conversation; await settle\(\) here"):
        await soon(later.edit(20, "x"))
    await soon(later.load())
    assert said(later) == said(dialog)[:10]


async def test_a_paused_run_is_answered_after_a_restart_and_asked_once() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    mock = MockProvider().queue_tool_call("c1", "refund", {"order": 9}).queue_text("Done.")
    dialog = center_of(mock, refund, stores=stores).new_dialog()
    waiting = (await soon(dialog.send("refund 9"))).waiting
    later = await center_of(mock, refund, stores=stores).open(dialog.id)
    assert (later.waiting, later.is_unfinished, said(later)) == (waiting, True, said(dialog))
    again = await soon(later.resume())
    assert (again.stop_reason, again.waiting) == ("needs_approval", waiting)
    await finished(later.answer(waiting[0], "decide", {"approved": True}))
    assert [role for role, _ in said(later)].count("Approval") == 2
    ended = stores.checkpoints.load(dialog.id)
    assert ended is not None
    assert ended.frontier.is_over  # it stays to be looked at, and nothing goes on with it


async def test_an_answer_given_before_a_crash_is_not_asked_for_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    center = desk.center()
    dialog = center.new_dialog()
    dialog.from_dict({"id": DIALOG})
    (card_id,) = (await soon(dialog.send("turn 1"))).waiting
    desk.faults.fail("before_commit", time=desk.faults.reached("before_commit") + 1)
    await soon(dialog.answer(card_id, "decide", {"approved": True}))
    later = await desk.center().open(DIALOG)
    assert (later.waiting, later.is_unfinished) == ((), True)
    await finished(later.resume())
    assert await desk.problems(turns=1) == []


async def test_a_run_that_the_person_spoke_over_is_forgotten() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    mock = MockProvider().queue_tool_call("c1", "refund", {"order": 9})
    dialog = center_of(mock, refund, stores=stores).new_dialog()
    await soon(dialog.send("refund 9"))
    other = Center(stores)  # a program that knows nothing of the paused run
    twin = await other.open(dialog.id)
    twin.append_message("user", "never mind")
    await twin.save()
    later = await center_of(MockProvider(), stores=stores).open(dialog.id)
    assert (later.waiting, stores.checkpoints.load(dialog.id)) == ((), None)


async def test_a_conversation_cut_by_another_program_forgets_its_run() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    mock = MockProvider().queue_text("a").queue_tool_call("c1", "refund", {"order": 9})
    dialog = center_of(mock, refund, stores=stores).new_dialog()
    await finished(dialog.send("hi"))
    await soon(dialog.send("refund 9"))
    await stores.conversations.append(dialog.id, [Truncate(1)])
    later = await center_of(MockProvider(), stores=stores).open(dialog.id)
    assert (said(later), later.waiting) == ([("user", "hi")], ())
    assert stores.checkpoints.load(dialog.id) is None


async def test_words_nobody_answered_before_a_crash_are_answered_by_resuming() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    dialog = Center(stores).new_dialog().append_message("user", "hi")
    await dialog.save()
    later = await center_of(MockProvider().queue_text("Hello."), stores=stores).open(dialog.id)
    assert later.is_unfinished
    await finished(later.resume())
    assert not later.is_unfinished


async def test_a_delivery_is_the_same_however_often_and_from_where_it_is_made() -> None:
    checkpoints = MemoryCheckpointStore()
    mock = (
        MockProvider()
        .queue_tool_call("c1", "add", {"a": 1, "b": 2})
        .queue_tool_call("c2", "refund", {"order": 1})
    )
    dialog = center_of(mock, add, refund, stores=Stores(MemoryConversationStore(), checkpoints)).new_dialog()
    await soon(dialog.send("go"))
    for checkpoint in checkpoints.history(dialog.id):
        whole = outbox(checkpoint)
        assert outbox(checkpoint) == whole
        assert len({each.key for each in whole}) == len(whole)
        for after in range(len(messages_of(checkpoint)) + 1):
            assert outbox(checkpoint, after=after) == whole[after:]


async def test_a_thread_of_something_else_is_refused() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    dialog = Center(stores).new_dialog().append_message("user", "hi")
    await dialog.save()
    builder = GraphBuilder("other")
    builder.add_channel("n", default=0)
    builder.add_node("a", lambda ctx: {"n": 1})
    builder.add_edge("__start__", "a")
    await builder.build(stores.checkpoints).run({}, RunOptions(thread_id=dialog.id))
    with pytest.raises(
        StoreError, match=f"thread '{dialog.id}' is of no dialog; give dialogs their own store"
    ):
        await Center(stores).open(dialog.id)


async def test_two_programs_in_one_dialog_do_not_mix_their_runs() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    gate = Gate()
    mock = MockProvider().queue_events(TextDelta("Hal"), gate, TextDelta("lo"))
    dialog = center_of(mock, stores=stores).new_dialog()
    first = dialog.send("hi")
    await soon(gate.reached.wait())
    other = await center_of(MockProvider().queue_text("Me too."), stores=stores).open(dialog.id)
    await finished(other.resume())
    gate.opened.set()
    result = await soon(first)
    assert (result.stop_reason, str(result.error)) == (
        "conflict",
        "another program went on with this dialog; look at its messages before you go on",
    )
    assert [words for _, words in said(dialog)] == ["hi", "Me too."]
    entries = (await stores.conversations.load(dialog.id)).entries
    assert [getattr(entry, "content", "") for entry in entries] == ["hi", "Me too."]


@pytest.mark.parametrize("kind", ["sqlite", "yaml"])
def test_a_killed_program_says_nothing_twice(kind: str, tmp_path: Path) -> None:
    tally = run_kills(kind, tmp_path, 12, seed=7)
    assert (tally.kills, tally.problems) == (12, [])


async def test_the_newest_turn_can_be_looked_at_until_the_next_begins() -> None:
    stores = Stores(MemoryConversationStore(), MemoryCheckpointStore())
    mock = MockProvider().queue_text("one").queue_text("two")
    dialog = center_of(mock, stores=stores).new_dialog()
    for question, seen in (("first", 1), ("second", 3)):
        await finished(dialog.send(question))
        assert {turn_of(each).seen for each in stores.checkpoints.history(dialog.id)} == {seen}
    assert not (await center_of(mock, stores=stores).open(dialog.id)).is_unfinished


class Held(MemoryConversationStore):
    """A store that holds an append until it is let go, and fails its first change of a header."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.let_go = asyncio.Event(), asyncio.Event()
        self._updates = 0

    async def append(self, conversation_id: str, records: Sequence[Record]) -> int:
        if records:
            self.reached.set()
            await self.let_go.wait()
        return await super().append(conversation_id, records)

    async def update(self, conversation_id: str, change: HeaderChange) -> Header:
        self._updates += 1
        if self._updates == 1:
            raise StoreError("the disk is full; make room")
        return await super().update(conversation_id, change)


async def test_a_save_that_is_given_up_is_carried_out_once() -> None:
    store = Held()
    dialog = Center(Stores(store, MemoryCheckpointStore())).new_dialog()
    await dialog.save()
    saving = asyncio.create_task(dialog.append_message("assistant", "Hello.").save())
    await soon(store.reached.wait())
    saving.cancel()
    store.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await saving
    await dialog.save()
    assert (await store.load(dialog.id)).entries == dialog.messages


async def test_settings_that_could_not_be_stored_are_stored_by_the_next_save() -> None:
    store = Held()
    store.let_go.set()
    dialog = Center(Stores(store, MemoryCheckpointStore())).new_dialog()
    await dialog.save()
    with pytest.raises(StoreError, match="the disk is full; make room"):
        await dialog.set_model_id("m").save()
    await dialog.save()
    assert (await Center(Stores(store, MemoryCheckpointStore())).open(dialog.id)).model_id == "m"
