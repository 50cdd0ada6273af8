"""Checkpoints as lines of one JSON file: to be read by people, `jq` and several processes at once."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Final, NamedTuple, Self

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import StoreError
from dialoom.graph.checkpoint import Checkpoint
from dialoom.graph.codec import UnreadableError
from dialoom.graph.codec_types import TypeCodec
from dialoom.graph.retention import check_retention, first_kept
from dialoom.stores.checkpoint_chain import (
    after,
    check_next,
    is_delta,
    missing_parent,
    with_states,
)
from dialoom.stores.file_lock import FileLock
from dialoom.stores.group_commit import GroupCommit
from dialoom.stores.jsonl_lines import LineCodec, checked, summed
from dialoom.stores.jsonl_log import Entry, JsonlLog
from dialoom.stores.sealing import Sealer

_NOT_YET: Final = -1
"""Where a checkpoint is that is about to be appended."""


class Saving(NamedTuple):
    """A checkpoint on its way to the disk, with what changed encoded before any lock is taken."""

    checkpoint: Checkpoint
    line: bytes


class JsonlCheckpointStore:
    """A `PrunableCheckpointStore` in one file of JSON lines, `<file>.lock` beside it.

    A save appends lines and returns when they are on the disk, unless `fsync` is False: then a power cut may
    take the last ones, though `kill -9` does not. A line that a crash cut short is dropped before the next
    save. Any other damage raises UnreadableError, naming the line: for its thread, of which what is before it
    can be loaded by id, or for all, when the line does not say whose it is. A file in the older form, one
    JSON array, is read as it is and rewritten at the first save. The file is rewritten only by `prune`,
    `erase_thread` and `compact`, which copy a damaged thread as it is.
    """

    blocking = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        types: Iterable[type | TypeCodec] = (),
        fsync: bool = True,
        sealer: Sealer | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._path = Path(path)
        self._codec = LineCodec(types, sealer)
        self._clock = clock
        self._pid = os.getpid()
        self._mutex = Lock()
        self._closed = False
        with self._translated():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(self._path)
        self._log = JsonlLog(self._path, fsync=fsync)
        self._commits = GroupCommit(self.commit)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; closing twice is no error."""
        with self._mutex:
            if not self._closed:
                self._closed = True
                self._log.close()
                self._lock.close()

    def save(self, checkpoint: Checkpoint) -> None:
        self._commits.submit(self.prepare(checkpoint))

    def prepare(self, checkpoint: Checkpoint) -> Saving:
        """Return what `commit` writes. Raises StoreError for what cannot be stored."""
        return Saving(checkpoint, self._codec.write(checkpoint, full=False))

    def commit(self, group: Sequence[Saving]) -> Sequence[Exception | None]:
        """Append a group with one sync; one that is refused writes nothing and fails nobody else."""
        try:
            with self._writing():
                lines: list[bytes] = []
                added: dict[str, list[Entry]] = {}
                refusals = [self._attempt(each, added, lines) for each in group]
                if lines:
                    self._log.append(lines)
        except StoreError as error:
            return [error] * len(group)
        return refusals

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Checkpoint | None:
        with self._reading():
            entries = self._log.before_damage(thread_id)
            found = None if checkpoint_id is None else _place_of(entries, checkpoint_id)
            if found is None:
                entries = self._log.entries(thread_id)
                found = len(entries) - 1 if checkpoint_id is None else -1
            return None if found < 0 else self._chain(entries, found)[-1]

    def history(self, thread_id: str) -> Iterator[Checkpoint]:
        upto: int | None = None
        while True:
            with self._reading():
                entries = self._log.entries(thread_id)
                at = sum(1 for entry in entries if upto is None or entry.head.version < upto) - 1
                if at < 0:
                    return
                chain = self._chain(entries, at)
            yield from reversed(chain)
            upto = chain[0].version

    def threads(self) -> Iterator[str]:
        with self._reading():
            return iter(sorted(self._log.threads))

    def erase_thread(self, thread_id: str) -> None:
        """Forget all of a thread, in the file too. Does nothing when there is none."""
        with self._writing():
            if thread_id in self._log.threads:
                self._rewrite(lambda name: () if name == thread_id else self._log.lines(name))

    def prune(
        self, *, keep_last: int | None = None, max_age: float | None = None, thread_id: str | None = None
    ) -> int:
        check_retention(keep_last, max_age)
        since = None if max_age is None else self._clock.now() - max_age
        with self._writing():
            names = self._log.threads if thread_id is None else [thread_id]
            first = {
                name: first_kept([each.created for each in self._log.entries(name)], keep_last, since)
                for name in names
                if self._log.is_whole(name) or thread_id is not None
            }
            if any(first.values()):
                self._rewrite(
                    lambda name: (
                        self._lines_from(self._log.entries(name), first[name])
                        if first.get(name)
                        else self._log.lines(name)
                    )
                )
        return sum(first.values())

    def compact(self) -> None:
        """Write the file anew, with nothing in it but checkpoints and a checksum on each."""
        with self._writing():
            self._rewrite(
                lambda name: (
                    summed(checked(line)) if self._log.is_whole(name) else line
                    for line in self._log.lines(name)
                )
            )

    def _attempt(
        self, saving: Saving, added: dict[str, list[Entry]], lines: list[bytes]
    ) -> StoreError | None:
        """Add the line of one to `lines`, unless it is held; returns why it is refused."""
        try:
            line = self._line_of(saving, added)
        except StoreError as refusal:
            return refusal
        if line is not None:
            lines.append(line)
        return None

    def _line_of(self, saving: Saving, added: dict[str, list[Entry]]) -> bytes | None:
        checkpoint, line = saving
        entries = self._log.entries(checkpoint.thread_id)
        mine = added.setdefault(checkpoint.thread_id, [])
        if _is_held(entries, checkpoint) or _is_held(mine, checkpoint):
            return None
        newest = mine or entries
        head = newest[-1].head if newest else None
        check_next(checkpoint.thread_id, head, checkpoint)
        self._check_parent((mine, entries), checkpoint)
        delta = is_delta(head, checkpoint, len(line))
        if not delta:
            line = self._codec.write(checkpoint, full=True)
        head = after(head, checkpoint, len(line), delta=delta)
        mine.append(Entry(head, checkpoint.created, _NOT_YET, len(line)))
        return line

    def _check_parent(self, known: Iterable[Sequence[Entry]], checkpoint: Checkpoint) -> None:
        parent = checkpoint.parent_id
        if parent is not None and all(_place_of(entries, parent) is None for entries in known):
            raise missing_parent(checkpoint)

    def _chain(self, entries: Sequence[Entry], at: int) -> list[Checkpoint]:
        """Return a checkpoint and those its state is folded from, oldest first."""
        head = entries[at].head
        read: list[Checkpoint] = []
        for entry in entries[at - (head.version - head.base) : at + 1]:
            try:
                read.append(self._codec.read(self._log.line(entry)))
            except UnreadableError as error:
                raise UnreadableError(
                    f"checkpoint {entry.head.version} in {self._path} (byte {entry.start}) cannot be read:"
                    f" {error}; restore the file, or erase its thread"
                ) from error
        return list(with_states(read))

    def _lines_from(self, entries: Sequence[Entry], first: int) -> Iterator[bytes]:
        """Return the lines from the entry at `first` on, which then holds the state it was folded to."""
        if entries[first].head.base != entries[first].head.version:
            yield self._codec.write(self._chain(entries, first)[-1], full=True)
            first += 1
        for entry in entries[first:]:
            yield self._log.line(entry)

    def _rewrite(self, lines_of: Callable[[str], Iterable[bytes]]) -> None:
        names = sorted(self._log.threads)
        self._log.rewrite(line for name in names for line in lines_of(name))

    @contextmanager
    def _reading(self) -> Generator[None]:
        """Hold the file for this thread, with all that other processes have written to it."""
        with self._alone():
            self._log.refresh()
            yield

    @contextmanager
    def _writing(self) -> Generator[None]:
        """Hold the file alone among all processes, with all that they have written to it."""
        with self._alone(), self._lock.held():
            self._log.refresh()
            yield

    @contextmanager
    def _alone(self) -> Generator[None]:
        if os.getpid() != self._pid:
            raise StoreError(
                f"the store {self._path} was opened before a fork; open it again in this process"
            )
        with self._mutex, self._translated():
            if self._closed:
                raise StoreError(f"the store {self._path} is closed; open it again")
            yield

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            reason = (error.strerror or "error").lower()
            raise StoreError(
                f"{self._path} cannot be used ({reason}); choose another path or free it"
            ) from error


def _is_held(entries: Sequence[Entry], checkpoint: Checkpoint) -> bool:
    at = checkpoint.version - entries[0].head.version if entries else -1
    return 0 <= at < len(entries) and entries[at].head.id == checkpoint.id


def _place_of(entries: Sequence[Entry], checkpoint_id: str) -> int | None:
    """Return where a checkpoint stands, looking from the newest back."""
    for at in range(len(entries) - 1, -1, -1):
        if entries[at].head.id == checkpoint_id:
            return at
    return None
