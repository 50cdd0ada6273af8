"""Conversations as one YAML file each, laid out as seed 003's product does: for people who want files."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self, TypeVar

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import ConflictError, StoreError, UsageError
from dialoom.conversation.conversation import Conversation
from dialoom.conversation.header import Header, HeaderChange, check_id
from dialoom.conversation.records import Log, Record, check_records
from dialoom.conversation.search import SearchQuery, parse_query
from dialoom.conversation.store import (
    ConversationNotFoundError,
    Page,
    Window,
    branches_among,
    check_limit,
    decode_cursor,
    matches,
    page_after,
    window_of,
)
from dialoom.stores.conversation_folder import (
    SUFFIX,
    Signature,
    StoredConversation,
    leftovers,
    parse_file,
    read_or_set_aside,
    remove_file,
    scan_folder,
    translated_os_errors,
    write_conversation,
)
from dialoom.stores.folder_lock import locked
from dialoom.stores.left_out import LeftOut

_T = TypeVar("_T")


class YamlConversationStore:
    """A `ListedConversationStore` of files `{id}.yaml` in one folder.

    A change reads and replaces the whole file under a lock that all processes share, so it costs as much as
    the conversation is long; for long or many ones there is `SqliteConversationStore`. A file that holds no
    conversation is moved to `{id}.yaml.unreadable` and reported: by `UnreadableFileError` where it was
    asked for, in `problems` and the log where a listing met it.
    """

    def __init__(self, folder: str | os.PathLike[str], *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._folder = Path(folder)
        self._clock = clock
        with translated_os_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            if leftovers(self._folder):
                with locked(self._folder):  # so that none of them is being written
                    for path in leftovers(self._folder):
                        path.unlink()
        # one thread, so that changes happen in the order they were asked for
        self._changes = ThreadPoolExecutor(1, thread_name_prefix="dialoom-yaml-writer")
        self._reads = ThreadPoolExecutor(2, thread_name_prefix="dialoom-yaml-reader")
        self._left_out = LeftOut()
        self._guard = Lock()
        self._headers: dict[str, tuple[Signature, Header]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Do what was asked for and end the threads. Blocks; closing twice is no error."""
        self._changes.shutdown()
        self._reads.shutdown()

    @property
    def problems(self) -> Mapping[str, str]:
        """File names that listings of this store left out, each with what is wrong, until it is put right."""
        return self._left_out.known()

    async def create(self, conversation: Conversation) -> None:
        header, records = conversation.header, conversation.records
        path = self._path(header.id)

        def create() -> None:
            if path.exists():
                raise ConflictError(f"conversation {header.id} exists; load it, or create one with a new id")
            write_conversation(path, StoredConversation(header, Log(records)))

        await self._change(create)

    async def append(self, conversation_id: str, records: Sequence[Record]) -> int:
        path, given = self._path(conversation_id), check_records(records)

        def append() -> int:
            header, log = read_or_set_aside(path, self._clock)
            before = len(log.records)
            for record in given:
                log.add(record)
            if len(log.records) > before:
                header = HeaderChange().apply(header, self._clock.now())
                write_conversation(path, StoredConversation(header, log))
            return len(log.records)

        return await self._change(append)

    async def load(self, conversation_id: str) -> Conversation:
        path = self._path(conversation_id)

        def load() -> Conversation:
            header, log = self._read(path)
            return Conversation(header, log.records, clock=self._clock)

        return await self._ask(load)

    async def update(self, conversation_id: str, change: HeaderChange) -> Header:
        path = self._path(conversation_id)

        def update() -> Header:
            before, log = read_or_set_aside(path, self._clock)
            header = change.apply(before, self._clock.now())
            write_conversation(path, StoredConversation(header, log))
            return header

        return await self._change(update)

    async def delete(self, conversation_id: str) -> None:
        path = self._path(conversation_id)
        await self._change(lambda: remove_file(path))

    async def header(self, conversation_id: str) -> Header:
        path = self._path(conversation_id)
        return await self._ask(lambda: self._read(path).header)

    async def branches(self, conversation_id: str) -> tuple[Header, ...]:
        check_id(conversation_id)
        return await self._ask(lambda: branches_among(self._list(None), conversation_id))

    async def page(self, *, query: str = "", cursor: str | None = None, limit: int = 50) -> Page:
        """Return up to `limit` headers, as `ConversationIndex.page` says.

        Reads each file that changed since it was last listed; all of them when there is a `query`.
        """
        check_limit(limit)
        after = None if cursor is None else decode_cursor(cursor)
        search = parse_query(query)
        return await self._ask(lambda: page_after(self._list(search), after, limit))

    async def window(self, conversation_id: str, *, before: int | None = None, limit: int = 60) -> Window:
        path = self._path(conversation_id)
        check_limit(limit)
        return await self._ask(lambda: window_of(self._read(path).log, before, limit))

    def _path(self, conversation_id: str) -> Path:
        return self._folder / f"{check_id(conversation_id)}{SUFFIX}"

    def _read(self, path: Path) -> StoredConversation:
        """Read without a lock: a file is replaced in one step. Only to move it away one is needed."""
        try:
            return parse_file(path, self._clock)
        except UsageError:
            with locked(self._folder):
                return read_or_set_aside(path, self._clock)

    def _list(self, search: SearchQuery | None) -> Iterator[Header]:
        """Yield the headers of files that can be read, and report the others."""
        with self._guard:
            known = self._headers
        listed: dict[str, tuple[Signature, Header]] = {}
        for name, signature in scan_folder(self._folder):
            cached = known.get(name)
            if search is None and cached is not None and cached[0] == signature:
                listed[name] = cached
            elif (stored := self._try_read(name, signature)) is not None:
                assert signature is not None
                if search is None:
                    listed[name] = (signature, stored.header)
                elif matches(search, stored.header, stored.log):
                    yield stored.header
        if search is None:
            with self._guard:
                self._headers = listed
            yield from (header for _, header in listed.values())

    def _try_read(self, name: str, signature: Signature | None) -> StoredConversation | None:
        file_name = f"{name}{SUFFIX}"
        try:
            path = self._path(name)
            if signature is None:
                raise StoreError(f"{path} is not a regular file; move it away")
            stored = self._read(path)
        except ConversationNotFoundError:  # deleted since the folder was read
            return None
        except (StoreError, UsageError) as error:
            self._left_out.report(file_name, str(error))
            return None
        self._left_out.settle(file_name)
        return stored

    async def _change(self, work: Callable[[], _T]) -> _T:
        """Do `work` alone among all threads and processes."""

        def change() -> _T:
            with locked(self._folder):
                return work()

        return await self._run(self._changes, change)

    async def _ask(self, work: Callable[[], _T]) -> _T:
        return await self._run(self._reads, work)

    async def _run(self, threads: ThreadPoolExecutor, work: Callable[[], _T]) -> _T:
        def run() -> _T:
            with translated_os_errors(self._folder):
                return work()

        try:
            future = threads.submit(run)
        except RuntimeError as error:
            raise StoreError(f"the store {self._folder} is closed; open it again") from error
        return await asyncio.wrap_future(future)
