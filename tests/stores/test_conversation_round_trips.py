"""Whatever was said comes back from every store unchanged, and goes from one to another and back."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.base.ids import new_id
from dialoom.conversation import (
    Append,
    CardEntry,
    Conversation,
    Header,
    MemoryConversationStore,
    TextEntry,
    export_conversation,
    import_conversation,
)
from dialoom.stores import SqliteConversationStore, YamlConversationStore
from tests.conversation.strategies import RECORDS, SCALARS, TEXTS

HEADERS = st.builds(
    Header,
    id=st.builds(new_id),
    title=TEXTS,
    branch_from=st.none() | st.just("parent"),
    created=st.floats(0, 4e9),
    updated=st.floats(0, 4e9),
    workflow_mode=st.none() | st.booleans() | st.integers(0, 9) | TEXTS,
    settings=st.dictionaries(TEXTS, SCALARS, max_size=2),
    meta=st.dictionaries(st.sampled_from(("x", "其他")), SCALARS, max_size=2),
)
CONVERSATIONS = st.builds(Conversation, HEADERS, st.lists(RECORDS, max_size=8))
Stores = tuple[SqliteConversationStore, YamlConversationStore]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    folder: Path = tmp_path_factory.mktemp("stores")
    with SqliteConversationStore(folder / "c.sqlite") as sqlite, YamlConversationStore(folder) as yaml:
        yield sqlite, yaml


async def check_round_trip(conversation: Conversation, stores: Stores) -> None:
    """Through SQLite, from there into YAML, and back: nothing is lost and the export is the same bytes."""
    exported = export_conversation(conversation, "yaml")
    moving = conversation
    for store in (*stores, stores[0]):
        if store is stores[0] and moving is not conversation:
            await store.delete(conversation.id)
        await store.create(moving)
        moving = await store.load(conversation.id)
        assert (moving.header, moving.records) == (conversation.header, conversation.records)
        assert export_conversation(moving, "yaml") == exported
    for store in stores:
        await store.delete(conversation.id)


@settings(max_examples=40, deadline=None)
@given(conversation=CONVERSATIONS)
def test_a_conversation_goes_through_the_stores_and_loses_nothing(
    stores: Stores, conversation: Conversation
) -> None:
    asyncio.run(check_round_trip(conversation, stores))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=10_000, deadline=None)
@given(conversation=CONVERSATIONS)
def test_ten_thousand_conversations_go_through_the_stores(stores: Stores, conversation: Conversation) -> None:
    asyncio.run(check_round_trip(conversation, stores))


@st.composite
def queries(draw: st.DrawFn, texts: Sequence[str]) -> str:
    """What a person may look for: a part of something said, or anything."""
    text = draw(st.sampled_from(texts) if texts else TEXTS)
    start = draw(st.integers(0, len(text)))
    return text[start : start + draw(st.integers(0, 12))]


@settings(max_examples=40, deadline=None)
@given(conversation=CONVERSATIONS, data=st.data())
def test_every_store_finds_the_same(stores: Stores, conversation: Conversation, data: st.DataObject) -> None:
    texts = [conversation.header.title, *(text for _, text in what_people_see(conversation))]
    query = data.draw(queries(texts))

    async def find() -> list[bool]:
        found: list[bool] = []
        for store in (MemoryConversationStore(), *stores):
            await store.create(conversation)
            found.append(bool((await store.page(query=query)).headers))
            await store.delete(conversation.id)
        return found

    assert len(set(asyncio.run(find()))) == 1


@settings(max_examples=200, deadline=None)
@given(conversation=CONVERSATIONS)
def test_an_export_is_read_back(conversation: Conversation) -> None:
    for kind in ("yaml", "json"):
        text = export_conversation(conversation, kind)
        loaded = import_conversation(text, kind)
        assert (loaded.header, loaded.records) == (conversation.header, conversation.records)
        assert export_conversation(loaded, kind) == text


def what_people_see(conversation: Conversation) -> list[tuple[str, str]]:
    return [
        (entry.type, entry.payload) if isinstance(entry, CardEntry) else (entry.role, entry.content)
        for entry in conversation.entries
    ]


@settings(max_examples=200, deadline=None)
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
