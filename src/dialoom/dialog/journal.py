"""The log of one dialog: its end in memory, all of it in the store; `flush` writes what changed here."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec

from dialoom.base.clock import Clock
from dialoom.base.errors import ConflictError, UsageError
from dialoom.base.ids import new_id
from dialoom.base.text import one_line
from dialoom.conversation import (
    Append,
    Conversation,
    Entry,
    Header,
    HeaderChange,
    ListedConversationStore,
    Record,
    TextEntry,
    Truncate,
    fold,
)
from dialoom.dialog.keyed import KeepFile, KeyedEntry, records_of, words_of
from dialoom.dialog.settings import KEY, MANY_GUIDES, MAX_GUIDES, DialogSettings, is_system_text, settings_in
from dialoom.dialog.transcript import Transcript
from dialoom.graph import Checkpoint, CheckpointStore

T = TypeVar("T")

OPEN_WINDOW = 60
"""So many of the newest entries are read when a dialog is opened."""
READ_AT_ONCE = 200
MAX_TITLE = 80


class Stores(msgspec.Struct, frozen=True):
    """Where dialogs live: what was said, where each stands, and who keeps the files that tools return."""

    conversations: ListedConversationStore
    checkpoints: CheckpointStore
    keep_file: KeepFile | None = None

    async def load_checkpoint(self, thread_id: str) -> Checkpoint | None:
        """Return where a thread stands, None when it stands nowhere."""
        return await self._checkpoints(lambda: self.checkpoints.load(thread_id))

    async def load_history(self, thread_id: str) -> list[Checkpoint]:
        """Return where a thread stood, newest first."""
        return await self._checkpoints(lambda: list(self.checkpoints.history(thread_id)))

    async def erase_thread(self, thread_id: str) -> None:
        """Forget where a thread stands: it has nothing left to do."""
        await self._checkpoints(lambda: self.checkpoints.erase_thread(thread_id))

    async def _checkpoints(self, call: Callable[[], T]) -> T:
        return await asyncio.to_thread(call) if self.checkpoints.blocking else call()


class Journal:
    """What was said in one dialog, and what it is set to.

    Changes are made in memory at once and kept in order until `flush` writes them, one flush at a time. What
    another program wrote meanwhile is read with them: an index is one of the store's once it is written.
    """

    def __init__(
        self,
        stores: Stores,
        header: Header,
        settings: DialogSettings,
        *,
        transcript: Transcript,
        is_stored: bool,
    ) -> None:
        self.transcript = transcript
        self._stores = stores
        self._header = header
        self._settings = settings
        self._is_stored = is_stored
        self._is_header_due = False
        self._due: list[Record] = []
        self._length: int | None = None
        self._in_doubt = 0
        self._attempted: int | None = None
        self._writing = asyncio.Lock()
        self._opened = len(transcript)
        self._has_moved = False
        self.on_moved: Callable[[int, int], object] | None = None
        """Told, when another program's words were read, from where on messages are new, and to where."""

    @property
    def id(self) -> str:
        return self._header.id

    @property
    def header(self) -> Header:
        return self._header

    @property
    def settings(self) -> DialogSettings:
        return self._settings

    @property
    def is_stored(self) -> bool:
        """Whether the store has a conversation of this id, perhaps not with all that is here."""
        return self._is_stored

    def renamed(self, conversation_id: str) -> "Journal":
        """Return an empty journal of another conversation with these settings, stored nowhere yet."""
        header = msgspec.structs.replace(self._header, id=conversation_id, title="")
        journal = Journal(self._stores, header, self._settings, transcript=Transcript(), is_stored=False)
        journal._is_header_due = True
        return journal

    def set(self, settings: DialogSettings) -> None:
        if settings != self._settings:
            self._settings = settings
            self._is_header_due = True

    def set_title(self, title: str) -> None:
        self._header = msgspec.structs.replace(self._header, title=title)
        self._is_header_due = True

    def append(self, entry: Entry, key: str | None = None) -> int:
        """Add `entry` and return its index. The first thing a user says names an unnamed dialog.

        Raises `UsageError` for a system text too many, and then nothing was added.
        """
        guides = tuple(at for at in self._settings.guides if at < len(self.transcript))
        if is_system_text(entry) and len(guides) >= MAX_GUIDES:
            raise UsageError(MANY_GUIDES)
        index = self.transcript.append(entry)
        self._due.append(Append(entry, key))
        if isinstance(entry, TextEntry):
            if entry.role == "user" and not self._header.title:
                self.set_title(one_line(words_of(entry), MAX_TITLE))
            if is_system_text(entry):
                self.set(msgspec.structs.replace(self._settings, guides=(*guides, index)))
        return index

    def withdraw(self, key: str) -> bool:
        """Take the newest entry back, if it was added under `key` and is not written; tell whether it was."""
        newest = self._due[-1] if self._due else None
        if self._writing.locked() or not isinstance(newest, Append) or newest.key != key:
            return False
        self._due.pop()
        self.transcript.truncate(len(self.transcript) - 1)
        return True

    def truncate(self, keep: int) -> int:
        """Keep the first `keep` entries and return how many went."""
        record = Truncate(keep)
        removed = self.transcript.truncate(keep)
        if removed:
            self._due.append(record)
            self.set(self._settings.until(keep))
        return removed

    async def deliver(self, entries: Sequence[KeyedEntry]) -> tuple[int, ...]:
        """Add `entries`, in the store first, those it has not; return the indexes of these.

        One call is kept whole or not at all, and calls come in order: what a crash left out is at the end.
        """
        if not entries:
            return ()
        async with self._writing:
            await self._flush()
            records = await records_of(entries, self._stores.keep_file)
            return await self._write(self._deliver(records))

    async def flush(self) -> None:
        """Write what is due. When this returns the store has all of it; what fails stays due.

        Raises `StoreError`; `ConflictError` when a new dialog's id is taken.
        """
        async with self._writing:
            await self._flush()

    async def flush_changes(self) -> None:
        """Do what `flush` does, but leave no trace of a new dialog in which nothing happened."""
        if self._has_changes():
            await self.flush()

    def index_of(self, entry: Entry) -> int | None:
        """Return where this very entry stands now, None when it is not among those held."""
        return next((at for at, each in self.transcript.newest_first() if each is entry), None)

    async def catch_up(self) -> bool:
        """Write what is due, and read what another program wrote; return whether there was any."""
        async with self._writing:
            is_looked_at = bool(self._due) or not self._is_stored
            if self._has_changes():
                await self._flush()
            if not is_looked_at:
                await self._write(self._catch_up())
            moved, self._has_moved = self._has_moved, False
            return moved

    async def read_again(self) -> None:
        """Write what is due, and hold what the log shows, whatever was held."""
        async with self._writing:
            await self._flush()
            await self._write(self._append(()))
            await self._write(self._read_again(()))

    async def hold(self, start: int) -> None:
        """Read what stands before the entries held, from `start` on at least.

        Raises `ConflictError` when the store has less than that: then another program changed it.
        """
        while self.transcript.start > max(0, start):
            window = await self._stores.conversations.window(
                self.id, before=self.transcript.start, limit=READ_AT_ONCE
            )
            if window.start + len(window.entries) < self.transcript.start:
                raise ConflictError("another program shortened this conversation; await settle() here")
            self.transcript.prepend(window.entries, start=window.start)

    async def guides(self) -> tuple[str, ...]:
        """Return the system texts of the log, also those before the entries held."""
        found: list[str] = []
        for at in self._settings.guides:
            if at >= len(self.transcript):
                continue
            if at >= self.transcript.start:
                entry = self.transcript.entry(at)
            else:
                window = await self._stores.conversations.window(self.id, before=at + 1, limit=1)
                entry = window.entries[-1]
            if isinstance(entry, TextEntry) and entry.role == "system":
                found.append(entry.content)
        return tuple(found)

    def _has_changes(self) -> bool:
        """Tell whether this is anything but a new dialog in which nothing happened."""
        return bool(self._is_stored or self._due or self._is_header_due)

    async def _flush(self) -> None:
        """Write what is due; the lock is held."""
        if not self._is_stored:
            await self._write(self._create())
        if self._is_header_due:
            await self._write(self._update())
        if self._due:
            await self._write(self._append_due())

    def _stored_settings(self) -> dict[str, object]:
        return {**self._header.settings, KEY: self._settings.to_dict()}

    async def _create(self) -> None:
        header = msgspec.structs.replace(
            self._header,
            settings=self._stored_settings(),
            branch_from=self._settings.branch_from_id or self._header.branch_from,
        )
        due = tuple(self._due)
        try:
            await self._stores.conversations.create(Conversation(header, due))
        except ConflictError:
            if self._attempted is None:
                raise
            self._length, self._in_doubt = 0, self._attempted  # the attempt that failed was carried out
        except BaseException:
            self._attempted = len(due)
            raise
        else:
            self._length = len(due)
            del self._due[: len(due)]
        self._is_stored, self._is_header_due = True, False

    async def _update(self) -> None:
        self._is_header_due = False
        change = HeaderChange(title=self._header.title, settings=self._stored_settings())
        try:
            await self._stores.conversations.update(self.id, change)
        except BaseException:
            self._is_header_due = True
            raise

    async def _append_due(self) -> None:
        await self._look_up()
        due = tuple(self._due)
        if not due:
            return
        if any(isinstance(record, Truncate) for record in due):
            # first: a crash between the two must not leave a run to go on behind what was taken back
            await self._stores.erase_thread(self.id)
        self._in_doubt = len(due)
        grown = await self._append(due)
        del self._due[: len(due)]
        self._in_doubt = 0
        if grown != len(due):
            await self._read_again(due)

    async def _catch_up(self) -> None:
        if self._length is None:
            await self._look_up()
        elif await self._append(()):
            await self._read_again(())

    async def _look_up(self) -> None:
        """Find out how long the log is, and whether a write that failed had been carried out all the same."""
        if self._length is None or self._in_doubt:
            before = self._length
            await self._append(())
            if before is not None and await self._holds(self._due[: self._in_doubt], at=before):
                del self._due[: self._in_doubt]
            self._in_doubt = 0
            window = await self._stores.conversations.window(self.id, limit=1)
            if before is None and window.total != self._opened:
                await self._read_again(())

    async def _holds(self, records: Sequence[Record], *, at: int) -> bool:
        """Tell whether the stored log has `records`, behind its first `at` ones."""
        if self._length == at or not records:
            return False
        stored = (await self._stores.conversations.load(self.id)).records[at:]
        return any(
            stored[start : start + len(records)] == tuple(records)
            for start in range(len(stored) - len(records) + 1)
        )

    async def _deliver(self, records: Sequence[Append]) -> tuple[int, ...]:
        """Append under keys, those that are new, and return their indexes."""
        await self._look_up()
        grown = await self._append(records)
        if grown <= len(records):
            return tuple(self.transcript.append(each.entry) for each in records[len(records) - grown :])
        await self._read_again((), delivered=records)
        return tuple(index for each in records if (index := self.index_of(each.entry)) is not None)

    async def _append(self, records: Sequence[Record]) -> int:
        """Append and return by how much the log is longer than it was when it was last looked at."""
        before = self._length
        self._length = await self._stores.conversations.append(self.id, records)
        return self._length - (before or 0)

    async def _read_again(self, own: Sequence[Record], *, delivered: Sequence[Record] = ()) -> None:
        """Hold what the log now shows: other programs wrote in it before `own`, which are its newest.

        Those `delivered` are told by who delivers them.
        """
        newest = (*own, *delivered)
        try:
            conversation = await self._stores.conversations.load(self.id)
        except BaseException:
            self._length, self._opened = None, -1  # what is held is not what is there: to be read next time
            raise
        stored = conversation.records[: self._length]
        others = stored[: len(stored) - len(newest)]
        if stored[len(others) :] == newest:
            stored = (*others, *newest)  # the same objects, so that they are found again
        else:
            delivered = ()
        before, keep = len(self.transcript), self.transcript.replace(fold((*stored, *self._due)))
        self._take_settings(conversation.header)
        if keep < max(before, len(self.transcript)):
            self._has_moved = True
            if self.on_moved is not None:
                self.on_moved(keep, len(self.transcript) - len(delivered))

    def _take_settings(self, header: Header) -> None:
        """Be set to what another program chose, unless there is a choice of this one to be written."""
        tools = self._settings.kit.tools
        if not self._is_header_due:
            self._header, chosen = header, settings_in(header.settings)
            kit = msgspec.structs.replace(chosen.kit, tools=tools)
            self._settings = msgspec.structs.replace(chosen, kit=kit)
        guides = [at for at, entry in enumerate(self.transcript.all()) if is_system_text(entry)]
        settings = self._settings.until(len(self.transcript))
        self.set(msgspec.structs.replace(settings, guides=tuple(guides[:MAX_GUIDES])))

    async def _write(self, work: Coroutine[Any, Any, T]) -> T:
        """Carry out `work` to its end, also when the caller is cancelled: what is written must be known."""
        task = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task})
            raise


async def open_journal(stores: Stores, conversation_id: str) -> Journal:
    """Read the end of a stored conversation. Raises `ConversationNotFoundError` and other `StoreError`s."""
    header = await stores.conversations.header(conversation_id)
    window = await stores.conversations.window(conversation_id, limit=OPEN_WINDOW)
    transcript = Transcript(window.entries, start=window.start)
    return Journal(stores, header, settings_in(header.settings), transcript=transcript, is_stored=True)


def new_journal(stores: Stores, settings: DialogSettings, clock: Clock) -> Journal:
    """Begin a log under a new id; nothing is stored before it is flushed."""
    now = clock.now()
    header = Header(id=new_id(), created=now, updated=now)
    return Journal(stores, header, settings, transcript=Transcript(), is_stored=False)
