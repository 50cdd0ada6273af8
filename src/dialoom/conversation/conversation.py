"""What was said. One append-only log; everything else is a view of it."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Self

import msgspec

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import UsageError
from dialoom.base.ids import new_id
from dialoom.conversation.changes import Change, EntriesRemoved, EntryAppended, HeaderChanged, Listener
from dialoom.conversation.document import entry_list, from_document, read_yaml, to_document
from dialoom.conversation.entries import Entry, decode_object
from dialoom.conversation.header import Header, HeaderChange
from dialoom.conversation.records import Append, Log, Record, Truncate, check_records
from dialoom.conversation.yaml_text import dump_yaml

_log = logging.getLogger("dialoom.conversation")


class Conversation:
    """One log of what was said, what people see of it, and who watches it.

    Entries are only ever added; taking one off the list adds a record that says so, and the log keeps it.
    Any thread may call anything. It holds data and does no work: views build screens and prompts, stores
    keep it, a dialog continues it.
    """

    def __init__(
        self, header: Header | None = None, records: Iterable[Record] = (), *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        now = clock.now()
        self._header = header or Header(id=new_id(), created=now, updated=now)
        self._updated = self._header.updated
        self._history = Log(check_records(records))
        self._clock = clock
        self._lock = Lock()
        self._entries: tuple[Entry, ...] | None = None
        self._listeners: tuple[Listener, ...] = ()
        self._notices: deque[tuple[Change, tuple[Listener, ...]]] = deque()
        self._announcing = False

    @property
    def header(self) -> Header:
        """Id, title, times, mode and settings; `updated` is the moment of the newest change."""
        with self._lock:
            return self._current_header()

    @property
    def id(self) -> str:
        return self._header.id

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What is visible, in order of writing; an entry's place is its index."""
        with self._lock:
            if self._entries is None:
                self._entries = tuple(record.entry for record in self._history.visible)
            return self._entries

    @property
    def records(self) -> tuple[Record, ...]:
        """The whole log, with what is no longer visible: what a store keeps."""
        with self._lock:
            return tuple(self._history.records)

    def append(self, entry: Entry, *, key: str | None = None) -> int | None:
        """Add `entry` at the end and return its index.

        With a `key` that was delivered before, also before a truncation, nothing changes: returns None.
        """
        record = Append(entry, key)
        with self._lock:
            index = len(self._history.visible)
            if not self._history.add(record):
                return None
            self._note(EntryAppended(index=index, entry=entry, key=key))
        self._announce()
        return index

    def truncate_to(self, keep: int) -> int:
        """Keep the first `keep` visible entries; return how many went. More than there are keeps all."""
        record = Truncate(keep)
        with self._lock:
            removed = len(self._history.visible) - keep
            if not self._history.add(record):
                return 0
            self._note(EntriesRemoved(keep=keep, removed=removed))
        self._announce()
        return removed

    def clear(self) -> int:
        """Take every entry off the visible list; return how many went."""
        return self.truncate_to(0)

    def remove_last(self) -> Entry | None:
        """Take the newest entry off the visible list and return it, or None when there is none."""
        with self._lock:
            keep = len(self._history.visible) - 1
            if keep < 0:
                return None
            entry = self._history.visible[keep].entry
            self._history.add(Truncate(keep))
            self._note(EntriesRemoved(keep=keep, removed=1))
        self._announce()
        return entry

    def update(self, change: HeaderChange) -> Header:
        """Change title, mode or settings; return the header as it is now."""
        with self._lock:
            self._header = header = change.apply(self._current_header(), self._clock.now())
            self._updated = header.updated
            self._notices.append((HeaderChanged(header), self._listeners))
        self._announce()
        return header

    def branch(self, at: int | None = None) -> "Conversation":
        """Return a new conversation that begins with the first `at` visible entries, all when None.

        Its `branch_from` is this one's id; title, mode, settings and delivery keys go with it.
        """
        with self._lock:
            count = len(self._history.visible)
            if at is not None and not 0 <= at <= count:
                raise UsageError(f"cannot branch at {at}: conversation {self.id} shows {count} entries")
            now = self._clock.now()
            header = msgspec.structs.replace(
                self._header, id=new_id(), branch_from=self.id, created=now, updated=now
            )
            return Conversation(header, self._history.visible[:at], clock=self._clock)

    def load_from_entries(self, entries: Iterable[Entry | Mapping[str, object]]) -> None:
        """Show `entries`, or their stored forms, in place of what is visible now.

        All are read before anything changes; raises `UsageError` for the first that cannot be.
        """
        items = [
            each if isinstance(each, Entry) else entry_list([each], f"entry {at}")[0].entry
            for at, each in enumerate(entries)
        ]
        with self._lock:
            removed = len(self._history.visible)
            if self._history.add(Truncate(0)):
                self._note(EntriesRemoved(keep=0, removed=removed))
            for index, entry in enumerate(items):
                self._history.add(Append(entry))
                self._note(EntryAppended(index=index, entry=entry))
        self._announce()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` every change from now on; call what is returned to end that.

        Notices come one at a time, in the order of the changes, with no lock held, on a thread that made
        one of them: a call returns while its notice is still due when another thread is announcing. A
        listener that fails is logged and neither the log nor the next listener notices.
        """
        subscription = _Subscription(listener)
        with self._lock:
            self._listeners = (*self._listeners, subscription)
        return lambda: self._unsubscribe(subscription)

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain values, in the layout of the YAML file."""
        return to_document(self.header, self.records)

    @classmethod
    def from_dict(cls, fields: Mapping[str, object], *, clock: Clock = SYSTEM_CLOCK) -> Self:
        """Read `to_dict` back. Raises `UsageError` with the place of what is wrong."""
        header, records = from_document(fields, clock)
        return cls(header, records, clock=clock)

    def to_yaml(self) -> str:
        """Return everything as the text of a `{sessionId}.yaml`."""
        return dump_yaml(self.to_dict())

    @classmethod
    def from_yaml(cls, text: str, *, clock: Clock = SYSTEM_CLOCK) -> Self:
        """Read `to_yaml` back, or a file another product wrote so; at most 32 Mi characters."""
        return cls.from_dict(read_yaml(text), clock=clock)

    def to_json(self) -> str:
        return msgspec.json.encode(self.to_dict()).decode()

    @classmethod
    def from_json(cls, text: str, *, clock: Clock = SYSTEM_CLOCK) -> Self:
        return cls.from_dict(decode_object(text), clock=clock)

    def _note(self, change: Change) -> None:
        """Queue a notice about the log; the lock is held."""
        self._entries = None
        self._updated = max(self._updated, self._clock.now())
        self._notices.append((change, self._listeners))

    def _current_header(self) -> Header:
        """Return the header with its time caught up, which appending leaves undone; the lock is held."""
        if self._header.updated != self._updated:
            self._header = msgspec.structs.replace(self._header, updated=self._updated)
            self._updated = self._header.updated
        return self._header

    def _announce(self) -> None:
        """Deliver what is queued, unless a thread is doing so: it will take these notices too."""
        with self._lock:
            if self._announcing:
                return
            self._announcing = True
        try:
            while (notice := self._next_notice()) is not None:
                change, listeners = notice
                for listener in listeners:
                    _tell(listener, change)
        except BaseException:
            self._announcing = False
            raise

    def _next_notice(self) -> tuple[Change, tuple[Listener, ...]] | None:
        with self._lock:
            if not self._notices:
                self._announcing = False
                return None
            change, listeners = self._notices.popleft()
            return change, tuple(each for each in listeners if each in self._listeners)

    def _unsubscribe(self, subscription: Listener) -> None:
        with self._lock:
            self._listeners = tuple(each for each in self._listeners if each is not subscription)


class _Subscription:
    """One listening, so that a function subscribed twice ends twice."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def __call__(self, change: Change) -> None:
        self._listener(change)


def _tell(listener: Listener, change: Change) -> None:
    try:
        listener(change)
    except Exception:  # noqa: BLE001 - seam: foreign code listens here
        _log.exception("conversation listener failed", extra={"change": type(change).__name__})
