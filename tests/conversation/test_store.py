"""The memory store keeps the contract every store keeps."""

import asyncio
from threading import Barrier, Thread

import pytest

from dialoom.conversation import Append, Conversation, HeaderChange, MemoryConversationStore, TextEntry
from dialoom.testing.conversation_contract import ConversationStoreContract
from dialoom.testing.conversation_extras_contract import AttachmentStoreContract, DraftStoreContract


class TestMemoryConversationStore(ConversationStoreContract, DraftStoreContract, AttachmentStoreContract):
    @pytest.fixture
    def store(self) -> MemoryConversationStore:
        return MemoryConversationStore()


@pytest.mark.promise("conversation-046")
async def test_the_list_and_an_opened_conversation_agree() -> None:
    store = MemoryConversationStore()
    for title in ("Wells", "Maps"):
        conversation = Conversation()
        conversation.update(HeaderChange(title=title))
        await store.create(conversation)
        await store.append(conversation.id, [Append(TextEntry(role="user", content=f"about {title}"))])
    for listed in (await store.page()).headers:
        opened = await store.load(listed.id)
        assert opened.header == listed
        newest = await store.window(listed.id)
        assert newest.entries == opened.entries == (TextEntry(role="user", content=f"about {listed.title}"),)


def test_threads_with_loops_of_their_own_may_share_a_memory_store() -> None:
    store = MemoryConversationStore()
    conversation = Conversation()
    asyncio.run(store.create(conversation))
    start = Barrier(4)

    async def write(writer: int) -> None:
        for at in range(100):
            entry = TextEntry(role="user", content=f"{writer}:{at}")
            await store.append(conversation.id, [Append(entry)])

    def run(writer: int) -> None:
        start.wait(60)
        asyncio.run(write(writer))

    threads = [Thread(target=run, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    texts = [each.content for each in asyncio.run(store.load(conversation.id)).entries]
    assert sorted(texts) == sorted(f"{writer}:{at}" for writer in range(4) for at in range(100))
