"""A conversation to be killed in: each turn calls two tools at once, one of which a person has to allow.

The model is scripted by what it reads, so that any process can go on where another was killed; it notes each
request past any buffer.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from dialoom.agent import AGENT_TYPES
from dialoom.conversation import CardEntry, ConversationNotFoundError, Entry, TextEntry
from dialoom.conversation.store import ListedConversationStore
from dialoom.dialog import Center, Dialog, Stores
from dialoom.llm import ChatOptions, Message, MockProvider, ResponseStream, TextDelta, ToolCall
from dialoom.llm.options import DEFAULT_OPTIONS
from dialoom.stores import SqliteCheckpointStore, SqliteConversationStore, YamlConversationStore
from dialoom.tools import tool

TURNS = 3
REQUESTS_PER_TURN = 2
DIALOG = "the-dialog"
TAKES = 0.01
"""Seconds that a model and a tool take, so that a kill can come in the middle of them."""


class NotingModel(MockProvider):
    """Calls two tools when the user spoke last, else says that it is done. Notes each request in a file."""

    def __init__(self, notes: Path) -> None:
        super().__init__()
        self._notes = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ResponseStream]:
        os.write(self._notes, b"request\n")
        turn = sum(message.role == "user" for message in messages)
        if messages[-1].role == "user":
            self.queue_tool_calls(*calls_of(turn))
        else:
            self.queue_events(TextDelta(f"turn {turn} "), TextDelta("is done"))
        async with super().stream(messages, options) as stream:
            await asyncio.sleep(TAKES)
            yield stream


def calls_of(turn: int) -> tuple[ToolCall, ToolCall]:
    look = ToolCall(id=f"look-{turn}", name="look", arguments={"turn": turn})
    return look, ToolCall(id=f"pay-{turn}", name="pay", arguments={"turn": turn})


@tool(idempotent=True)
async def look(turn: int) -> str:
    """Look something up."""
    await asyncio.sleep(TAKES)
    return f"looked in turn {turn}"


@tool(idempotent=True, requires_approval=True)
async def pay(turn: int) -> str:
    """Pay, when a person allows it."""
    await asyncio.sleep(TAKES)
    return f"paid in turn {turn}"


async def talk(kind: str, folder: Path) -> None:
    """Go on with the conversation to its end; every answer is a yes."""
    conversations = open_conversations(kind, folder)
    with conversations, SqliteCheckpointStore(folder / "threads", types=AGENT_TYPES) as checkpoints:
        center = Center(Stores(conversations, checkpoints))
        center.add_provider(NotingModel(folder / "requests")).add_tool(look).add_tool(pay)
        await carry_on(center)


async def carry_on(center: Center, turns: int = TURNS) -> Dialog:
    """Do what is to be done next, until every turn is through."""
    dialog = await open_dialog(center)
    while True:
        await dialog.load()
        said = sum(isinstance(entry, TextEntry) and entry.role == "user" for entry in dialog.messages)
        if dialog.waiting:
            handle = dialog.answer(dialog.waiting[0], "decide", {"approved": True})
        elif dialog.is_unfinished:
            handle = dialog.resume()
        elif said < turns:
            handle = dialog.send(f"turn {said + 1}")
        else:
            return dialog
        (await handle).raise_for_error()


async def open_dialog(center: Center) -> Dialog:
    try:
        return await center.open(DIALOG)
    except ConversationNotFoundError:
        dialog = center.new_dialog()
        dialog.from_dict({"id": DIALOG})
        return dialog


def open_conversations(kind: str, folder: Path) -> SqliteConversationStore | YamlConversationStore:
    if kind == "sqlite":
        return SqliteConversationStore(folder / "conversations.sqlite")
    return YamlConversationStore(folder)


async def read_log(store: ListedConversationStore) -> tuple[Entry, ...]:
    try:
        return (await store.load(DIALOG)).entries
    except ConversationNotFoundError:
        return ()


def problems_of(entries: Sequence[Entry], *, turns: int = TURNS) -> list[str]:
    """Return what the log of a finished conversation has too much, too little or out of order."""
    texts = [(entry.role, entry.content) for entry in entries if isinstance(entry, TextEntry)]
    expected = [text for turn in range(1, turns + 1) for text in texts_of(turn)]
    found = [] if texts == expected else [f"the log says {texts}"]
    cards = [entry for entry in entries if isinstance(entry, CardEntry)]
    asked = [(card.card_id, "approved" if "status: approved" in card.payload else "open") for card in cards]
    ids = list(dict.fromkeys(card_id for card_id, _ in asked))
    if asked != [(card_id, state) for card_id in ids for state in ("open", "approved")] or len(ids) != turns:
        found.append(f"the approvals are {asked}")
    return found


def texts_of(turn: int) -> list[tuple[str, str]]:
    return [
        ("user", f"turn {turn}"),
        ("assistant", ""),
        ("tool", f"looked in turn {turn}"),
        ("tool", f"paid in turn {turn}"),
        ("assistant", f"turn {turn} is done"),
    ]
