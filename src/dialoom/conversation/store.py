"""Where conversations are kept: what a store promises, and the twin that keeps them in memory."""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Protocol

import msgspec

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import ConflictError, StoreError, UsageError
from dialoom.base.text import one_line
from dialoom.conversation.attachments import (
    Attachment,
    AttachmentNotFoundError,
    check_hash,
    describe_attachment,
)
from dialoom.conversation.conversation import Conversation
from dialoom.conversation.drafts import check_draft, check_draft_count
from dialoom.conversation.entries import Entry, TextEntry
from dialoom.conversation.header import Header, HeaderChange, check_id
from dialoom.conversation.records import Log, Record, check_records
from dialoom.conversation.search import SearchQuery, parse_query

MAX_PAGE = 200


class ConversationNotFoundError(StoreError):
    """No conversation has this id; it was never created, or it was deleted."""

    code = "conversation_not_found"

    def __init__(self, conversation_id: str) -> None:
        super().__init__(f"there is no conversation {one_line(conversation_id, 80)!r}; list those there are")


class Page(msgspec.Struct, frozen=True):
    """Some headers of a listing, newest change first; `cursor` asks for the next, None at the end."""

    headers: tuple[Header, ...]
    cursor: str | None = None


class Window(msgspec.Struct, frozen=True):
    """The visible entries from `start` on, of `total` there are."""

    start: int
    total: int
    entries: tuple[Entry, ...]


class ConversationStore(Protocol):
    """Keeps conversations. What a call has done is durable before it returns.

    Calls may come from several tasks, and stores on disk are opened by several processes. An unknown id is a
    `ConversationNotFoundError`, one that cannot name a conversation a `UsageError`, and a store that cannot
    be read or written a `StoreError` after which everything acknowledged is still there.
    """

    async def create(self, conversation: Conversation) -> None:
        """Keep a new conversation, header and whole log. Raises `ConflictError` when its id is taken."""
        ...

    async def append(self, conversation_id: str, records: Sequence[Record]) -> int:
        """Add `records` behind all there are, all or none; return how long the log then is.

        A record that changes nothing is not kept: an append under a known key, a truncation that keeps all.
        Two writers' records never mix within one call, and each writer's keep their order.
        """
        ...

    async def load(self, conversation_id: str) -> Conversation:
        """Return the conversation with its whole log; a new object at every call."""
        ...

    async def update(self, conversation_id: str, change: HeaderChange) -> Header:
        """Change title, mode or settings; return the header as it then is."""
        ...

    async def delete(self, conversation_id: str) -> None:
        """Forget the conversation for good."""
        ...


class ConversationIndex(Protocol):
    """What lists and screens read: never more than they show."""

    async def header(self, conversation_id: str) -> Header:
        """Return a conversation's header."""
        ...

    async def branches(self, conversation_id: str) -> tuple[Header, ...]:
        """Return the headers of those that branched from this one, also when it is gone; oldest first."""
        ...

    async def page(self, *, query: str = "", cursor: str | None = None, limit: int = 50) -> Page:
        """Return up to `limit` headers (1 to 200), newest change first.

        With a `query`, those whose title or one of whose visible texts has every word of it, in any case and
        order; the beginning of a word will do, and any part of a Chinese, Japanese or Korean text. A
        conversation changed between two pages may be missed by the second, none is listed twice. Raises
        `UsageError` for a cursor that is not from here and for a query of over 1,000 characters or 32 words.
        """
        ...

    async def window(self, conversation_id: str, *, before: int | None = None, limit: int = 60) -> Window:
        """Return the last `limit` visible entries (1 to 200) before index `before`, the newest when None."""
        ...


class ListedConversationStore(ConversationStore, ConversationIndex, Protocol):
    """A store that can also list what it keeps; every store of dialoom's own can."""


class MemoryConversationStore:
    """Keeps conversations while the process lives; any thread and any event loop may use it."""

    def __init__(self, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._lock = Lock()
        self._kept: dict[str, _Kept] = {}

    async def create(self, conversation: Conversation) -> None:
        header, log = conversation.header, Log(conversation.records)
        with self._lock:
            if header.id in self._kept:
                raise ConflictError(f"conversation {header.id} exists; load it, or create one with a new id")
            self._kept[header.id] = _Kept(header, log)

    async def append(self, conversation_id: str, records: Sequence[Record]) -> int:
        given = check_records(records)
        with self._lock:
            kept = self._find(conversation_id)
            before = len(kept.log.records)
            for record in given:
                kept.log.add(record)
            if len(kept.log.records) > before:
                kept.header = HeaderChange().apply(kept.header, self._clock.now())
            return len(kept.log.records)

    async def load(self, conversation_id: str) -> Conversation:
        with self._lock:
            kept = self._find(conversation_id)
            return Conversation(kept.header, kept.log.records, clock=self._clock)

    async def update(self, conversation_id: str, change: HeaderChange) -> Header:
        with self._lock:
            kept = self._find(conversation_id)
            kept.header = change.apply(kept.header, self._clock.now())
            return kept.header

    async def delete(self, conversation_id: str) -> None:
        with self._lock:
            self._find(conversation_id)
            del self._kept[conversation_id]

    async def header(self, conversation_id: str) -> Header:
        with self._lock:
            return self._find(conversation_id).header

    async def branches(self, conversation_id: str) -> tuple[Header, ...]:
        check_id(conversation_id)
        with self._lock:
            return branches_among((kept.header for kept in self._kept.values()), conversation_id)

    async def page(self, *, query: str = "", cursor: str | None = None, limit: int = 50) -> Page:
        check_limit(limit)
        after = None if cursor is None else decode_cursor(cursor)
        search = parse_query(query)
        with self._lock:
            headers = [
                kept.header
                for kept in self._kept.values()
                if search is None or matches(search, kept.header, kept.log)
            ]
        return page_after(headers, after, limit)

    async def window(self, conversation_id: str, *, before: int | None = None, limit: int = 60) -> Window:
        check_limit(limit)
        with self._lock:
            return window_of(self._find(conversation_id).log, before, limit)

    async def save_draft(self, conversation_id: str, text: str, *, slot: str = "") -> None:
        text, slot = check_draft(text, slot)
        with self._lock:
            drafts = self._find(conversation_id).drafts
            if text:
                check_draft_count(len(drafts.keys() - {slot}))
                drafts[slot] = text
            else:
                drafts.pop(slot, None)

    async def drafts(self, conversation_id: str) -> Mapping[str, str]:
        with self._lock:
            return dict(sorted(self._find(conversation_id).drafts.items()))

    async def attach(self, conversation_id: str, content: bytes, *, name: str, mime: str) -> Attachment:
        attachment = describe_attachment(content, name, mime)
        with self._lock:
            self._find(conversation_id).attachments[attachment.hash] = (attachment, content)
        return attachment

    async def attachments(self, conversation_id: str) -> tuple[Attachment, ...]:
        with self._lock:
            kept = self._find(conversation_id).attachments
            return tuple(attachment for _, (attachment, _) in sorted(kept.items()))

    async def read_attachment(self, conversation_id: str, content_hash: str) -> bytes:
        with self._lock:
            kept = self._find(conversation_id).attachments.get(check_hash(content_hash))
        if kept is None:
            raise AttachmentNotFoundError(content_hash)
        return kept[1]

    def _find(self, conversation_id: str) -> "_Kept":
        kept = self._kept.get(check_id(conversation_id))
        if kept is None:
            raise ConversationNotFoundError(conversation_id)
        return kept


class _Kept:
    """One conversation of the memory store."""

    def __init__(self, header: Header, log: Log) -> None:
        self.header = header
        self.log = log
        self.drafts: dict[str, str] = {}
        self.attachments: dict[str, tuple[Attachment, bytes]] = {}


def matches(search: SearchQuery, header: Header, log: Log) -> bool:
    """Tell whether a listing for `search` has this conversation; stores share this and what follows."""
    return search.matches(header.title) or any(
        search.matches(record.entry.content) for record in log.visible if isinstance(record.entry, TextEntry)
    )


def window_of(log: Log, before: int | None, limit: int) -> Window:
    """Return the last `limit` visible entries before index `before`."""
    end = len(log.visible) if before is None else max(0, min(before, len(log.visible)))
    start = max(0, end - limit)
    return Window(start, len(log.visible), tuple(record.entry for record in log.visible[start:end]))


def branches_among(headers: Iterable[Header], conversation_id: str) -> tuple[Header, ...]:
    """Return those of `headers` that branched from `conversation_id`, oldest first."""
    found = (header for header in headers if header.branch_from == conversation_id)
    return tuple(sorted(found, key=lambda header: (header.created, header.id)))


def check_limit(limit: int) -> None:
    """Raise `UsageError` unless 1 to 200 items are asked for."""
    if not 1 <= limit <= MAX_PAGE:
        raise UsageError(f"a limit of {limit} is not allowed; ask for 1 to {MAX_PAGE}")


def page_after(headers: Iterable[Header], after: tuple[float, str] | None, limit: int) -> Page:
    """Return the page of all `headers` that starts behind `after`."""
    ordered = sorted(headers, key=_newest_first)
    if after is not None:
        ordered = [header for header in ordered if _newest_first(header) > (-after[0], after[1])]
    return page_of(ordered[: limit + 1], limit)


def page_of(headers: Sequence[Header], limit: int) -> Page:
    """Return the page of a listing's next `limit` + 1 headers; the extra one tells that there is more."""
    if len(headers) <= limit:
        return Page(tuple(headers))
    last = headers[limit - 1]
    position = msgspec.json.encode((last.updated, last.id))
    return Page(tuple(headers[:limit]), base64.urlsafe_b64encode(position).decode())


def decode_cursor(cursor: str) -> tuple[float, str]:
    """Return the (`updated`, `id`) behind which a page starts. Raises `UsageError`."""
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(cursor), type=tuple[float, str])
    except (msgspec.DecodeError, binascii.Error, ValueError) as error:
        raise UsageError("this cursor is not from a listing; start again without one") from error


def _newest_first(header: Header) -> tuple[float, str]:
    return (-header.updated, header.id)
