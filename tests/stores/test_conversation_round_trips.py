"""Whatever was said comes back from every store unchanged, and goes from one to another and back."""

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.base.ids import new_id
from dialoom.conversation import (
    Append,
    CardEntry,
    Conversation,
    MemoryConversationStore,
    TextEntry,
    export_conversation,
    import_conversation,
)
from dialoom.stores import SqliteConversationStore, YamlConversationStore
from tests.conversation.codecs import check_codecs, everything
from tests.conversation.strategies import TEXTS, conversations

CONVERSATIONS = conversations(st.builds(new_id))
MEMORY = Path("/dev/shm")
"""A folder in memory, where there is one: what is written here need not outlive the test."""


class Stores(NamedTuple):
    """The way a conversation goes, with the loop it goes on: from memory to SQLite, to YAML, and back."""

    runner: asyncio.Runner
    memory: MemoryConversationStore
    sqlite: SqliteConversationStore
    yaml: YamlConversationStore
    back: SqliteConversationStore


@contextmanager
def opened() -> Iterator[Stores]:
    place = str(MEMORY) if MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="dialoom-test-", dir=place) as folder,
        asyncio.Runner() as runner,
        SqliteConversationStore(Path(folder, "c.sqlite")) as sqlite,
        YamlConversationStore(Path(folder, "yaml")) as yaml,
        SqliteConversationStore(Path(folder, "back.sqlite")) as back,
    ):
        yield Stores(runner, MemoryConversationStore(), sqlite, yaml, back)


@pytest.fixture(scope="module")
def stores() -> Iterator[Stores]:
    with opened() as made:
        yield made


@pytest.fixture(scope="module")
def searched() -> Iterator[Stores]:
    """Stores in which nothing can be found but what a test has just put there."""
    with opened() as made:
        yield made


def check_round_trip(conversation: Conversation, stores: Stores) -> None:
    """Through every store, each reading the one before: nothing is lost, the export is the same bytes."""
    exported = export_conversation(conversation, "yaml")

    async def go() -> None:
        moving = conversation
        for store in (stores.memory, stores.sqlite, stores.yaml, stores.back):
            await store.create(moving)
            moving = await store.load(conversation.id)
            assert everything(moving) == everything(conversation)
            assert export_conversation(moving, "yaml") == exported
        await stores.memory.delete(conversation.id)  # ten thousand of them would stay to the end

    stores.runner.run(go())


@settings(max_examples=40, deadline=None)
@given(conversation=CONVERSATIONS)
def test_a_conversation_goes_through_the_stores_and_loses_nothing(
    stores: Stores, conversation: Conversation
) -> None:
    check_round_trip(conversation, stores)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=10_000, deadline=None)
@given(conversation=CONVERSATIONS)
def test_ten_thousand_conversations_survive_all_stores_and_readers(
    stores: Stores, conversation: Conversation
) -> None:
    check_codecs(conversation)
    check_round_trip(conversation, stores)


def test_what_is_no_record_is_refused_together_with_its_neighbours(stores: Stores) -> None:
    line = Append(TextEntry(role="user", content="hi"))
    conversation = Conversation(records=[line])

    async def go() -> None:
        for store in (stores.memory, stores.sqlite, stores.yaml):
            await store.create(conversation)
            with pytest.raises(UsageError, match="a log holds Append and Truncate, and this is TextEntry"):
                await store.append(conversation.id, [line, line.entry])  # type: ignore[list-item] - on purpose
            with pytest.raises(UsageError, match="5 cannot name a conversation"):
                await store.append(5, [line])  # type: ignore[arg-type] - on purpose
            assert (await store.load(conversation.id)).records == (line,)

    stores.runner.run(go())


@st.composite
def queries(draw: st.DrawFn, texts: Sequence[str]) -> str:
    """What a person may look for: a part of something said, or anything."""
    text = draw(st.sampled_from(texts) if texts else TEXTS)
    start = draw(st.integers(0, len(text)))
    return text[start : start + draw(st.integers(0, 12))]


@settings(max_examples=40, deadline=None)
@given(conversation=CONVERSATIONS, data=st.data())
def test_every_store_finds_the_same(
    searched: Stores, conversation: Conversation, data: st.DataObject
) -> None:
    texts = [conversation.header.title, *(text for _, text in what_people_see(conversation))]
    query = data.draw(queries(texts))

    async def find() -> list[bool]:
        found: list[bool] = []
        for store in (MemoryConversationStore(), searched.sqlite, searched.yaml):
            await store.create(conversation)
            found.append(bool((await store.page(query=query)).headers))
            await store.delete(conversation.id)
        return found

    assert len(set(searched.runner.run(find()))) == 1


@settings(max_examples=60, deadline=None)
@given(conversation=CONVERSATIONS)
def test_an_export_is_read_back(conversation: Conversation) -> None:
    for kind in ("yaml", "json"):
        text = export_conversation(conversation, kind)
        loaded = import_conversation(text, kind)
        assert (loaded.header, loaded.records) == (conversation.header, conversation.records)
        assert export_conversation(loaded, kind) == text


def what_people_see(conversation: Conversation) -> list[tuple[str, str]]:
    """Return the words that were said, and each card once, where it first stood and as it is now."""
    entries = conversation.entries
    newest = {entry.card_id: entry for entry in entries if isinstance(entry, CardEntry)}
    shown, seen = set[str](), list[tuple[str, str]]()
    for entry in entries:
        if not isinstance(entry, CardEntry):
            if entry.content or not entry.tool_calls:  # what only calls tools says nothing
                seen.append((entry.role, entry.content))
        elif entry.card_id is None:
            seen.append((entry.type, entry.payload))
        elif entry.card_id not in shown:
            shown.add(entry.card_id)
            seen.append((newest[entry.card_id].type, newest[entry.card_id].payload))
    return seen


@settings(max_examples=100, deadline=None)
@given(conversation=CONVERSATIONS)
def test_markdown_holds_what_people_see(conversation: Conversation) -> None:
    text = export_conversation(conversation, "md")
    loaded = import_conversation(text, "md")
    assert what_people_see(loaded) == what_people_see(conversation)
    assert export_conversation(loaded, "md") == text
    assert loaded.header.id == conversation.id


def test_an_import_may_be_a_conversation_of_its_own() -> None:
    conversation = Conversation(records=[Append(TextEntry(role="user", content="hi"), "key")])
    copy = import_conversation(export_conversation(conversation, "json"), "json", fresh_id=True)
    assert copy.id != conversation.id
    assert copy.records == conversation.records
