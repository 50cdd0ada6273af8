"""Any conversation store, with a fault point before and after each delivery into a log."""

from collections.abc import Sequence

from dialoom.conversation import (
    Conversation,
    Header,
    HeaderChange,
    ListedConversationStore,
    Page,
    Record,
    Window,
)
from dialoom.testing.faults import Faults


class FaultyConversationStore:
    """Passes everything on to `store`; appending reaches `before_delivery` and `after_delivery`."""

    def __init__(self, store: ListedConversationStore, faults: Faults) -> None:
        self._store = store
        self._faults = faults

    async def create(self, conversation: Conversation) -> None:
        await self._store.create(conversation)

    async def append(self, conversation_id: str, records: Sequence[Record]) -> int:
        self._faults.reach("before_delivery")
        length = await self._store.append(conversation_id, records)
        self._faults.reach("after_delivery")
        return length

    async def load(self, conversation_id: str) -> Conversation:
        return await self._store.load(conversation_id)

    async def update(self, conversation_id: str, change: HeaderChange) -> Header:
        return await self._store.update(conversation_id, change)

    async def delete(self, conversation_id: str) -> None:
        await self._store.delete(conversation_id)

    async def header(self, conversation_id: str) -> Header:
        return await self._store.header(conversation_id)

    async def branches(self, conversation_id: str) -> tuple[Header, ...]:
        return await self._store.branches(conversation_id)

    async def page(self, *, query: str = "", cursor: str | None = None, limit: int = 50) -> Page:
        return await self._store.page(query=query, cursor=cursor, limit=limit)

    async def window(self, conversation_id: str, *, before: int | None = None, limit: int = 60) -> Window:
        return await self._store.window(conversation_id, before=before, limit=limit)
