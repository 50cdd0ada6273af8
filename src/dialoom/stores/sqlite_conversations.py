"""Conversations in one SQLite file: appended by one thread for all who wait, read by several."""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import ConflictError, StoreError
from dialoom.conversation.attachments import (
    Attachment,
    AttachmentNotFoundError,
    check_hash,
    describe_attachment,
)
from dialoom.conversation.conversation import Conversation
from dialoom.conversation.drafts import check_draft
from dialoom.conversation.header import Header, HeaderChange, check_id, moment
from dialoom.conversation.records import Record, check_records
from dialoom.conversation.search import parse_query
from dialoom.conversation.store import Page, Window, check_limit, decode_cursor, page_of
from dialoom.stores.conversation_extras import (
    read_attachments,
    read_content,
    read_drafts,
    write_attachment,
    write_draft,
)
from dialoom.stores.conversation_file import CONVERSATIONS
from dialoom.stores.conversation_listing import list_branches, list_headers
from dialoom.stores.conversation_rows import (
    about_text,
    delete_rows,
    exists,
    extend_log,
    find_number,
    find_place,
    insert_header,
    read_header,
    read_records,
    read_visible,
    steps_of,
    update_header,
    write_place,
)
from dialoom.stores.conversation_words import tidy_words
from dialoom.stores.group_writer import GroupWriter, Plan, Work
from dialoom.stores.left_out import LeftOut
from dialoom.stores.reader_pool import ReaderPool

_T = TypeVar("_T")


class SqliteConversationStore:
    """A `ListedConversationStore`, `DraftStore` and `AttachmentStore` in one file.

    A call returns when its transaction is on the disk; calls that wait together share one. Several processes
    may have the file open; one that finds it locked for over 20 seconds raises `ConflictError`. A deleted
    conversation's bytes leave the file too, words in the search index a moment later and before `close`
    returns. A listing leaves out a conversation whose header is damaged, and `problems` and the log name it.
    `read_only` opens a file that must exist and refuses every change.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, read_only: bool = False, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._path = Path(path)
        self._clock = clock
        connection = CONVERSATIONS.open(self._path, read_only=read_only)
        if read_only:
            connection.close()
        self._writer = None if read_only else GroupWriter(connection, self._path, tidy=tidy_words)
        self._connection = connection
        self._readers = ReaderPool(self._path)
        self._left_out = LeftOut()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write what waits, tidy up and let go of the file. Blocks; closing twice is no error."""
        if self._writer is not None:
            self._writer.close()
        self._readers.close()
        self._connection.close()

    @property
    def problems(self) -> Mapping[str, str]:
        """Ids of conversations that listings of this store left out, each with what is wrong."""
        return self._left_out.known()

    async def create(self, conversation: Conversation) -> None:
        header, records = conversation.header, conversation.records
        await self._write(lambda: _creating(header, records))

    async def append(self, conversation_id: str, records: Sequence[Record]) -> int:
        check_id(conversation_id)
        given, now = check_records(records), moment(self._clock.now())
        return await self._write(lambda: _appending(conversation_id, given, now))

    async def load(self, conversation_id: str) -> Conversation:
        check_id(conversation_id)

        def read(connection: sqlite3.Connection) -> Conversation:
            header = read_header(connection, conversation_id)
            records = read_records(connection, find_place(connection, conversation_id))
            return Conversation(header, records, clock=self._clock)

        return await self._read(read)

    async def update(self, conversation_id: str, change: HeaderChange) -> Header:
        check_id(conversation_id)
        now = self._clock.now()

        def work(connection: sqlite3.Connection) -> Header:
            header = change.apply(read_header(connection, conversation_id), now)
            about = about_text(header)
            update_header(connection, find_place(connection, conversation_id).number, header, about)
            return header

        return await self._write(lambda: work)

    async def delete(self, conversation_id: str) -> None:
        check_id(conversation_id)

        def work(connection: sqlite3.Connection) -> None:
            delete_rows(connection, find_number(connection, conversation_id))

        await self._write(lambda: work)
        self._left_out.settle(conversation_id)

    async def header(self, conversation_id: str) -> Header:
        check_id(conversation_id)
        return await self._read(lambda connection: read_header(connection, conversation_id))

    async def branches(self, conversation_id: str) -> tuple[Header, ...]:
        check_id(conversation_id)
        return await self._read(
            lambda connection: tuple(list_branches(connection, conversation_id, self._left_out))
        )

    async def page(self, *, query: str = "", cursor: str | None = None, limit: int = 50) -> Page:
        check_limit(limit)
        after = None if cursor is None else decode_cursor(cursor)
        search = parse_query(query)

        def read(connection: sqlite3.Connection) -> Page:
            headers = list_headers(connection, search, after=after, limit=limit + 1, left_out=self._left_out)
            return page_of(headers, limit)

        return await self._read(read)

    async def window(self, conversation_id: str, *, before: int | None = None, limit: int = 60) -> Window:
        check_id(conversation_id)
        check_limit(limit)

        def read(connection: sqlite3.Connection) -> Window:
            place = find_place(connection, conversation_id)
            end = place.visible if before is None else max(0, min(before, place.visible))
            start = max(0, end - limit)
            entries = read_visible(connection, place, start=start, end=end)
            return Window(start, place.visible, entries)

        return await self._read(read)

    async def save_draft(self, conversation_id: str, text: str, *, slot: str = "") -> None:
        check_id(conversation_id)
        text, slot = check_draft(text, slot)

        def work(connection: sqlite3.Connection) -> None:
            write_draft(connection, find_place(connection, conversation_id).number, slot, text)

        await self._write(lambda: work)

    async def drafts(self, conversation_id: str) -> Mapping[str, str]:
        check_id(conversation_id)
        return await self._read(
            lambda connection: read_drafts(connection, find_place(connection, conversation_id).number)
        )

    async def attach(self, conversation_id: str, content: bytes, *, name: str, mime: str) -> Attachment:
        check_id(conversation_id)

        def plan() -> Work[Attachment]:
            attachment = describe_attachment(content, name, mime)

            def work(connection: sqlite3.Connection) -> Attachment:
                number = find_place(connection, conversation_id).number
                write_attachment(connection, number, attachment, content)
                return attachment

            return work

        return await self._write(plan)

    async def attachments(self, conversation_id: str) -> tuple[Attachment, ...]:
        check_id(conversation_id)
        return await self._read(
            lambda connection: read_attachments(connection, find_place(connection, conversation_id).number)
        )

    async def read_attachment(self, conversation_id: str, content_hash: str) -> bytes:
        check_id(conversation_id)
        check_hash(content_hash)

        def read(connection: sqlite3.Connection) -> bytes:
            content = read_content(connection, find_place(connection, conversation_id).number, content_hash)
            if content is None:
                raise AttachmentNotFoundError(content_hash)
            return content

        return await self._read(read)

    async def _write(self, plan: Plan[_T]) -> _T:
        if self._writer is None:
            raise StoreError(f"{self._path} is open for reading only; open it for writing")
        return await asyncio.wrap_future(self._writer.submit(plan))

    async def _read(self, ask: Callable[[sqlite3.Connection], _T]) -> _T:
        return await asyncio.wrap_future(self._readers.submit(ask))


def _creating(header: Header, records: Sequence[Record]) -> Work[None]:
    steps, about = steps_of(records), about_text(header)

    def work(connection: sqlite3.Connection) -> None:
        if exists(connection, header.id):
            raise ConflictError(f"conversation {header.id} exists; load it, or create one with a new id")
        place = insert_header(connection, header, about)
        write_place(connection, extend_log(connection, place, steps))

    return work


def _appending(conversation_id: str, records: Sequence[Record], now: float) -> Work[int]:
    steps = steps_of(records)

    def work(connection: sqlite3.Connection) -> int:
        before = find_place(connection, conversation_id)
        after = extend_log(connection, before, steps)
        if after.length > before.length:
            write_place(connection, after._replace(updated=max(before.updated, now)))
        return after.length

    return work
