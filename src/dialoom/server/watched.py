"""A store that tells what changes in it: whoever writes through it, every open page sees it at once."""

import asyncio
import logging
from collections.abc import Sequence
from weakref import WeakValueDictionary

from dialoom.conversation.conversation import Conversation
from dialoom.conversation.entries import Entry
from dialoom.conversation.header import Header, HeaderChange
from dialoom.conversation.records import Append, Record, Truncate
from dialoom.conversation.store import MAX_PAGE, ListedConversationStore, Page, Window
from dialoom.server.hub import EVERYONE, Event, EventHub
from dialoom.server.shown import Shelf, Transcript, is_shown

_log = logging.getLogger("dialoom.server")


class WatchedStore:
    """A `ListedConversationStore` over another. A change is told when it is durable, in order.

    What another process changes in the same file is not told at once; a page is had to load again when
    something is written here on top of it.
    """

    def __init__(self, store: ListedConversationStore, hub: EventHub, shelf: Shelf) -> None:
        self._store = store
        self._hub = hub
        self._shelf = shelf
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def create(self, conversation: Conversation) -> None:
        await self._store.create(conversation)
        self.tell_header(conversation.header)

    async def append(self, conversation_id: str, records: Sequence[Record]) -> int:
        if not records:
            return await self._store.append(conversation_id, records)
        turn = self._turns.setdefault(conversation_id, asyncio.Lock())
        async with turn:
            before = (await self._store.window(conversation_id, limit=1)).total
            if self._shelf.has_missed(conversation_id, before):
                self._start_anew(conversation_id)  # of another process: no page was told
            transcript = await self._shelf.transcript(conversation_id, before)
            length = await self._store.append(conversation_id, records)
            try:
                await self._tell(conversation_id, records, transcript)
            except Exception:  # noqa: BLE001 - seam: what is durable does not fail because it cannot be told
                _log.exception("a change could not be told", extra={"conversation": conversation_id})
                self._start_anew(conversation_id)
        return length

    async def load(self, conversation_id: str) -> Conversation:
        return await self._store.load(conversation_id)

    async def update(self, conversation_id: str, change: HeaderChange) -> Header:
        header = await self._store.update(conversation_id, change)
        self.tell_header(header)
        return header

    async def delete(self, conversation_id: str) -> None:
        await self._store.delete(conversation_id)
        self._shelf.forget(conversation_id)
        self._hub.publish(EVERYONE, custom("conversation.deleted", {"id": conversation_id}))

    async def header(self, conversation_id: str) -> Header:
        return await self._store.header(conversation_id)

    async def branches(self, conversation_id: str) -> tuple[Header, ...]:
        return await self._store.branches(conversation_id)

    async def page(self, *, query: str = "", cursor: str | None = None, limit: int = 50) -> Page:
        return await self._store.page(query=query, cursor=cursor, limit=limit)

    async def window(self, conversation_id: str, *, before: int | None = None, limit: int = 60) -> Window:
        return await self._store.window(conversation_id, before=before, limit=limit)

    def tell_header(self, header: Header) -> None:
        """Tell every page how a conversation is listed now."""
        self._hub.publish(EVERYONE, custom("conversation.updated", self._shelf.header(header)))

    async def _tell(self, conversation_id: str, records: Sequence[Record], transcript: Transcript) -> None:
        before = transcript.count
        count, newest = _outcome(before, records)
        after = await self._store.window(conversation_id, limit=max(1, len(newest)))
        self._shelf.was_told(conversation_id, after.total)
        if after.total == count and (not newest or list(after.entries) == newest):
            self._tell_each(conversation_id, records, transcript)
        elif after.total == before:
            return  # keys that were delivered before: nothing changed
        else:  # some of it was there before; which part, a page finds out by loading
            self._start_anew(conversation_id)
        self.tell_header(await self._store.header(conversation_id))

    def _start_anew(self, conversation_id: str) -> None:
        """Have pages load a conversation again."""
        self._shelf.forget(conversation_id)
        self._hub.publish(conversation_id, custom("resync", {}))

    def _tell_each(self, conversation_id: str, records: Sequence[Record], transcript: Transcript) -> None:
        for record in records:
            match record:
                case Append(entry=entry):
                    index = transcript.count
                    first = transcript.add(entry)
                    if not is_shown(entry):
                        continue
                    name = "entry.appended" if first == index else "entry.updated"
                    shown = self._shelf.entry(first, entry, transcript)
                    self._hub.publish(conversation_id, custom(name, {"entry": shown}))
                case Truncate(keep=keep):
                    if keep < transcript.count:
                        transcript.truncate(keep)
                        self._hub.publish(conversation_id, custom("entries.truncated", {"keep": keep}))


def custom(name: str, value: object) -> Event:
    """Return an event of our own, as AG-UI carries it."""
    return {"type": "CUSTOM", "name": name, "value": value}


def _outcome(count: int, records: Sequence[Record]) -> tuple[int, list[Entry]]:
    """Return how many entries are visible once `records` are all kept, and the newest of those they add."""
    added: list[Entry] = []
    for record in records:
        match record:
            case Append(entry=entry):
                added.append(entry)
                count += 1
            case Truncate(keep=keep) if keep < count:
                del added[max(0, len(added) - (count - keep)) :]
                count = keep
            case Truncate():
                pass
    return count, added[-MAX_PAGE:]
