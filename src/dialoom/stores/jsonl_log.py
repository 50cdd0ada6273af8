"""One file of lines that several processes append to, and where in it each checkpoint stands."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from dialoom.base.files import PRIVATE, sync_folder, take_mode
from dialoom.graph.codec import MAX_BYTES, UnreadableError
from dialoom.stores.checkpoint_chain import Head
from dialoom.stores.jsonl_lines import Header, checked, lines_of_array, read_header, told_by_damaged

_BLOCK: Final = 1024 * 1024


class Entry(NamedTuple):
    """A checkpoint in the file: what follows it needs to know, when it was made, and its bytes."""

    head: Head
    created: float
    start: int
    length: int


class Damage(NamedTuple):
    """What keeps a thread from being read, and where its lines from there on are: start and length."""

    told: str
    spans: list[tuple[int, int]]


class JsonlLog:
    """The file and an index of it in memory. Not safe for threads: its owner lets one in at a time.

    `refresh` reads what other processes added; everything that writes asks for the lock between processes
    to be held, and for a `refresh` under it.
    """

    def __init__(self, path: Path, *, fsync: bool) -> None:
        self._path = path
        self._fsync = fsync
        self._descriptor: int | None = None
        self._forget()

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._forget()

    @property
    def threads(self) -> Iterable[str]:
        return self._entries.keys() | self._damage.keys()

    def is_whole(self, thread_id: str) -> bool:
        return thread_id not in self._damage

    def entries(self, thread_id: str) -> Sequence[Entry]:
        """Return the checkpoints of a thread, oldest first. Raises UnreadableError when one is damaged."""
        damage = self._damage.get(thread_id)
        if damage is not None:
            raise UnreadableError(damage.told)
        return self.before_damage(thread_id)

    def before_damage(self, thread_id: str) -> Sequence[Entry]:
        """Return what of a thread stands before its first damaged line; all, when there is none."""
        return self._entries.get(thread_id, ())

    def lines(self, thread_id: str) -> Iterator[bytes]:
        """Return the lines of a thread as they are, the damaged ones too."""
        for entry in self.before_damage(thread_id):
            yield self.line(entry)
        damage = self._damage.get(thread_id)
        for start, length in () if damage is None else damage.spans:
            yield self._at(start, length)

    def line(self, entry: Entry) -> bytes:
        """Return the bytes of an entry. Raises UnreadableError when the file no longer has them."""
        return self._at(entry.start, entry.length)

    def _at(self, start: int, length: int) -> bytes:
        if self._older is not None:
            return self._older[start : start + length]
        assert self._descriptor is not None, "what stands there was read from it"
        os.lseek(self._descriptor, start, os.SEEK_SET)
        line = b"".join(self._read(length))
        if len(line) < length:
            raise UnreadableError("the file was cut off")
        return line

    def refresh(self) -> None:
        """See what others wrote. Raises UnreadableError at a damaged line that does not say whose it is."""
        if self._is_other_file():
            self.close()
        if self._descriptor is None:
            if not self._path.exists():
                return
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        if self._older is None and os.fstat(self._descriptor).st_size > self._end:
            self._read_on()

    def append(self, lines: Sequence[bytes]) -> None:
        """Add lines and make them durable, all or none. What a crash left behind the last line goes first."""
        if self._older is not None:
            self.rewrite([self._older])
            self.refresh()
        descriptor = self._opened()
        try:
            if os.fstat(descriptor).st_size > self._end:
                os.ftruncate(descriptor, self._end)
            _write_all(descriptor, b"".join(lines))
            if self._fsync:
                os.fdatasync(descriptor)
        except BaseException:
            os.ftruncate(descriptor, self._end)
            self.close()  # after a failed sync it is never trusted again
            raise
        for line in lines:
            self._index(line)

    def rewrite(self, lines: Iterable[bytes]) -> None:
        """Put these lines in the place of the file, all or nothing."""
        new = self._path.with_name(f"{self._path.name}.new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE)
        try:
            for line in lines:
                _write_all(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        take_mode(new, self._path)
        new.replace(self._path)
        sync_folder(self._path.parent)
        self.close()

    def _opened(self) -> int:
        if self._descriptor is None:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._descriptor = os.open(self._path, flags, PRIVATE)
            sync_folder(self._path.parent)
        return self._descriptor

    def _is_other_file(self) -> bool:
        """Tell whether somebody put another file in the place of the one that is open, or cut it off."""
        if self._descriptor is None:
            return False
        mine = os.fstat(self._descriptor)
        try:
            theirs = self._path.stat()
        except FileNotFoundError:
            return True
        return (mine.st_ino, mine.st_dev) != (theirs.st_ino, theirs.st_dev) or mine.st_size < self._end

    def _read_on(self) -> None:
        assert self._descriptor is not None, "refresh opened it"
        os.lseek(self._descriptor, self._end, os.SEEK_SET)
        rest = b""
        for block in self._read(None):
            if self._end == 0 and (rest + block).lstrip()[:1] == b"[":
                self._read_array(rest + block)
                return
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                self._index(line + b"\n")
            if len(rest) > MAX_BYTES:
                raise self._damaged("it is longer than any checkpoint")

    def _read_array(self, begun: bytes) -> None:
        text = begun + b"".join(self._read(MAX_BYTES))
        try:
            lines = lines_of_array(text)
        except UnreadableError as error:
            raise UnreadableError(f"{self._path} cannot be read: {error}; restore it") from error
        for line in lines:
            self._index(line)
        self._older = b"".join(lines)

    def _index(self, line: bytes) -> None:
        self._count += 1
        if line.strip():
            try:
                header = read_header(checked(line))
            except UnreadableError as error:
                self._add_damaged(told_by_damaged(line), len(line), str(error))
            else:
                self._add(header, len(line))
        self._end += len(line)

    def _add(self, header: Header, length: int) -> None:
        if header.thread_id in self._damage:
            self._damage[header.thread_id].spans.append((self._end, length))
            return
        entries = self._entries.setdefault(header.thread_id, [])
        try:
            head = _next_head(entries, header, length)
        except UnreadableError as error:
            self._end_thread(header.thread_id, length, str(error))
        else:
            entries.append(Entry(head, header.created, self._end, length))

    def _add_damaged(self, told: Header | None, length: int, reason: str) -> None:
        """Let a damaged line end the thread it says it is of, if it follows what is there of that.

        Whose it is may be what is damaged: then a thread would end with an older state, and nobody know.
        """
        if told is None:
            raise self._damaged(reason)
        if told.thread_id in self._damage:
            self._damage[told.thread_id].spans.append((self._end, length))
            return
        entries = self.before_damage(told.thread_id)
        newest = (entries[-1].head.version, entries[-1].head.id) if entries else (0, None)
        if (told.version - 1, told.parent_id) != newest:
            raise self._damaged(reason)
        self._end_thread(told.thread_id, length, reason)

    def _end_thread(self, thread_id: str, length: int, reason: str) -> None:
        entries = self.before_damage(thread_id)
        before = f"; {entries[-1].head.id!r}, the last before it, can be loaded by its id" if entries else ""
        told = (
            f"thread {thread_id!r} cannot be read: line {self._count} of {self._path} (byte {self._end})"
            f" is damaged: {reason}; restore the file, or erase the thread{before}"
        )
        self._damage[thread_id] = Damage(told, [(self._end, length)])

    def _damaged(self, reason: str) -> UnreadableError:
        where = f"line {self._count} of {self._path} (byte {self._end})"
        self.close()
        return UnreadableError(
            f"{where} is damaged: {reason}, and it does not say for sure of which thread it is;"
            " restore the file, or cut it off there: all before is whole"
        )

    def _read(self, limit: int | None) -> Iterator[bytes]:
        assert self._descriptor is not None, "its caller opened it"
        left = limit
        while left is None or left > 0:
            block = os.read(self._descriptor, _BLOCK if left is None else min(left, _BLOCK))
            if not block:
                return
            left = None if left is None else left - len(block)
            yield block

    def _forget(self) -> None:
        self._entries: dict[str, list[Entry]] = {}
        self._damage: dict[str, Damage] = {}
        self._end = 0
        self._count = 0
        self._older: bytes | None = None


def _next_head(entries: Sequence[Entry], header: Header, length: int) -> Head:
    last = entries[-1].head if entries else None
    if last is not None and header.version != last.version + 1:
        raise UnreadableError(
            f"thread {header.thread_id!r} has version {header.version} after {last.version}"
        )
    if header.is_full or header.parent_id is None:
        return Head(header.version, header.id, header.version, length, 0)
    if last is None or last.id != header.parent_id:
        raise UnreadableError(
            f"what version {header.version} of thread {header.thread_id!r} follows is missing"
        )
    return Head(header.version, header.id, last.base, last.size, last.since + length)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
