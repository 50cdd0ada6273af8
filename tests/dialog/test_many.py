"""Many dialogs and long ones: no cross-talk, little memory, and a cost that does not grow."""

import gc
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

from dialoom.conversation import Conversation, Record, TextEntry, Window
from dialoom.conversation.cards import DEFAULT_CARDS, Form, FormField
from dialoom.dialog import Center, Stores
from dialoom.graph import MemoryCheckpointStore
from dialoom.stores import SqliteConversationStore
from tests.dialog.talk import Echo, add, finished, long_dialog

DIALOGS = 200
IDLE = 50


async def test_two_hundred_dialogs_run_at_once_and_each_hears_its_own() -> None:
    center = Center().add_provider(Echo()).add_tool(add)
    dialogs = [center.new_dialog() for _ in range(DIALOGS)]
    heard: dict[str, list[str]] = {dialog.id: [] for dialog in dialogs}
    for dialog in dialogs:
        dialog.stream_delta.connect(heard[dialog.id].append)
    handles = [dialog.send(str(at)) for at, dialog in enumerate(dialogs)]
    assert all(dialog.is_running for dialog in dialogs)
    for at, (dialog, handle) in enumerate(zip(dialogs, handles, strict=True)):
        result = await finished(handle)
        assert result.text == "".join(heard[dialog.id]) == f"it is {2 * at}"
        assert [entry.content for entry in dialog.messages if isinstance(entry, TextEntry)] == [
            str(at),
            "",
            str(2 * at),
            f"it is {2 * at}",
        ]


async def test_an_idle_dialog_takes_little_memory() -> None:
    center = Center().add_provider(Echo()).add_tool(add)
    await finished(center.new_dialog().send("1"))  # what is loaded on first use is not a dialog's
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for at in range(IDLE):
        await finished(center.new_dialog().send(str(at)))
    gc.collect()
    each = (tracemalloc.get_traced_memory()[0] - before) / IDLE
    tracemalloc.stop()
    assert each < 30_000


class Counting(SqliteConversationStore):
    """Counts the entries that are read and the records that are written; reading a whole log is refused."""

    read = 0
    written = 0

    async def window(self, conversation_id: str, *, before: int | None = None, limit: int = 60) -> Window:
        window = await super().window(conversation_id, before=before, limit=limit)
        self.read += len(window.entries)
        return window

    async def append(self, conversation_id: str, records: Sequence[Record]) -> int:
        self.written += len(records)
        return await super().append(conversation_id, records)

    async def load(self, conversation_id: str) -> Conversation:
        raise AssertionError("a whole log was read")


async def test_a_long_dialog_opens_appends_and_sends_with_the_work_of_a_short_one(tmp_path: Path) -> None:
    work: list[tuple[int, int, int]] = []
    for length in (400, 2000):
        store = Counting(tmp_path / f"{length}.sqlite")
        stores, model = Stores(store, MemoryCheckpointStore()), Echo()
        dialog_id = await long_dialog(stores, length)
        store.written = 0
        dialog = await Center(stores).add_provider(model).add_tool(add).open(dialog_id)
        await dialog.append_message("user", "more").append_message("assistant", "yes").save()
        await finished(dialog.send("21"))
        assert dialog.last_message == TextEntry(role="assistant", content="it is 42")
        work.append((store.read, store.written, model.longest))
        store.close()
    assert work[0] == work[1]
    assert work[1] < (300, 10, 210)


async def test_a_form_that_the_application_shows_costs_no_reading_of_the_whole_log(tmp_path: Path) -> None:
    store = Counting(tmp_path / "talks.sqlite")
    stores = Stores(store, MemoryCheckpointStore())
    dialog = Center(stores).new_dialog().append_message("user", "hi")
    form = Form(id="grid-1", title="Grid", inline=True, fields=(FormField(id="cell", type="number"),))
    await dialog.append_message(DEFAULT_CARDS.encode(form)).save()
    opened = await Center(stores).open(dialog.id)
    await opened.settle()
    assert opened.messages == dialog.messages
    store.close()
