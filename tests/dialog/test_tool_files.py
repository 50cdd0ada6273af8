"""A picture that a tool returns is told of with the call, and kept by whoever keeps files for the log."""

from dialoom.conversation import Append, Conversation, Entry, MemoryConversationStore, TextEntry
from dialoom.dialog import Stores, ToolFinished
from dialoom.graph import MemoryCheckpointStore
from dialoom.llm import FilePart, MockProvider
from dialoom.tools import ToolResult, tool
from tests.dialog.talk import center_of, finished

PICTURE = FilePart(data=b"\x89PNG\x00\xff", media_type="image/png", name="desk.png")
TOO_LARGE = FilePart(data=b"\x89PNG\x00\xff" * 9, media_type="image/png", name="wall.png")
NOTE: dict[str, object] = {"id": "1", "name": "desk.png"}


@tool(idempotent=True)
async def look() -> ToolResult:
    """Look at the desk and the wall."""
    return ToolResult(content="A desk and a wall.", files=(PICTURE, TOO_LARGE))


async def keep(file: FilePart) -> dict[str, object] | None:
    return NOTE if file == PICTURE else None


def looks() -> MockProvider:
    return MockProvider().queue_tool_call("c1", "look", {}).queue_text("I see.")


def seen(**fields: object) -> TextEntry:
    return TextEntry(
        role="tool",
        content="A desk and a wall.",
        tool_call_id="c1",
        tool_name="look",
        meta=dict(fields),
    )


async def test_the_event_of_a_call_brings_the_pictures_and_the_log_keeps_the_words_alone() -> None:
    dialog = center_of(looks(), look).new_dialog()
    handle = dialog.send("Look.")
    events = [event async for event in handle if isinstance(event, ToolFinished)]
    assert [(event.tool, event.files) for event in events] == [("look", (PICTURE, TOO_LARGE))]
    assert dialog.messages[2] == seen()


async def test_the_log_notes_the_files_that_are_kept() -> None:
    store = MemoryConversationStore()
    stores = Stores(store, MemoryCheckpointStore(), keep)
    dialog = center_of(looks(), look, stores=stores).new_dialog()
    await finished(dialog.send("Look."))
    assert dialog.messages[2] == seen(attachments=[NOTE])
    assert (await store.load(dialog.id)).entries[2] == dialog.messages[2]


async def test_files_are_kept_when_what_a_crash_left_unsaid_is_said() -> None:
    store, checkpoints = MemoryConversationStore(), MemoryCheckpointStore()
    dialog = center_of(looks(), look, stores=Stores(store, checkpoints)).new_dialog()
    await finished(dialog.send("Look."))
    whole = await store.load(dialog.id)
    lost = MemoryConversationStore()  # whose server ended before the turn was said
    await lost.create(Conversation(whole.header, [Append(whole.entries[0])]))
    again = await center_of(MockProvider(), stores=Stores(lost, checkpoints, keep)).open(dialog.id)
    said: tuple[Entry, ...] = (whole.entries[0], whole.entries[1], seen(attachments=[NOTE]), whole.entries[3])
    assert again.messages == said
