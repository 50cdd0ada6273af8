"""Checkpoints in one SQLite file: what changed as one row per superstep, the whole state now and then."""

import os
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeVar

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import StoreError, UsageError
from dialoom.graph.checkpoint import Checkpoint
from dialoom.graph.codec import UnreadableError
from dialoom.graph.codec_types import TypeCodec
from dialoom.graph.retention import check_retention
from dialoom.stores.checkpoint_blob import Blob, BlobCodec
from dialoom.stores.checkpoint_chain import (
    Head,
    after,
    check_next,
    is_delta,
    missing_parent,
    with_states,
)
from dialoom.stores.group_commit import GroupCommit
from dialoom.stores.sealing import Sealer
from dialoom.stores.sqlite_checkpoint_file import CHECKPOINTS, open_checkpoints
from dialoom.stores.sqlite_checkpoint_rows import (
    LAST,
    Row,
    Spot,
    add_following,
    add_row,
    add_thread,
    delete_before,
    delete_thread,
    find_number,
    find_spot,
    find_version,
    is_id_of,
    oldest_kept,
    read_chain,
    rebase,
    thread_ids,
)
from dialoom.stores.sqlite_opener import Synchronous

T = TypeVar("T")
_FAILURES: Final = (sqlite3.Error, StoreError, UnicodeEncodeError)
MAX_SPOTS: Final = 10_000
_COLUMNS: Final = frozenset({"id", "thread_id", "version", "created"})
_ROOT: Final = _COLUMNS | {"state"}
_DELTA: Final = _ROOT | {"parent_id"}


class Saving(NamedTuple):
    """A checkpoint on its way to the disk, with what changed encoded outside any transaction."""

    checkpoint: Checkpoint
    blob: Blob


class SqliteCheckpointStore:
    """A `PrunableCheckpointStore` in one file that threads and processes share.

    A save returns when it is on the disk; saves that wait for each other share one transaction. `synchronous`
    is "full", which survives a power cut, or "normal", which after one may lack the last saves but is never
    damaged; `kill -9` loses nothing in either. `types` are the classes whose values the state holds, `sealer`
    encrypts them. Another process may hold the file for 20 seconds before a save raises ConflictError.
    A checkpoint that cannot be read raises UnreadableError and leaves the other threads alone.
    """

    blocking = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        types: Iterable[type | TypeCodec] = (),
        synchronous: Synchronous = "full",
        sealer: Sealer | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._path = Path(path)
        self._codec = BlobCodec(types, sealer)
        self._clock = clock
        self._pid = os.getpid()
        self._writer = open_checkpoints(self._path, synchronous)
        self._reader = CHECKPOINTS.open_reader(self._path)
        self._writing = Lock()
        self._reading = Lock()
        self._closed = False
        self._spots: dict[str, Spot] = {}  # no more than hints: each is checked against the file when used
        self._commits = GroupCommit(self.commit)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; closing twice is no error."""
        with self._writing, self._reading:
            self._closed = True
            self._reader.close()
            self._writer.close()

    def save(self, checkpoint: Checkpoint) -> None:
        self._check_process()
        self._commits.submit(self.prepare(checkpoint))

    def prepare(self, checkpoint: Checkpoint) -> Saving:
        """Return what `commit` writes. Raises StoreError for what cannot be stored."""
        omit = _ROOT if checkpoint.parent_id is None else _DELTA
        return Saving(checkpoint, self._codec.write(checkpoint, omit=omit))

    def commit(self, group: Sequence[Saving]) -> Sequence[Exception | None]:
        """Save a group in one transaction; when that fails, each alone, so that none fails for another."""
        with self._writing:
            try:
                return self._transact(group)
            except _FAILURES as error:
                if len(group) > 1:
                    return [self._commit_alone(each) for each in group]
                return [_told(error, self._path)]

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Checkpoint | None:
        def read(connection: sqlite3.Connection) -> Sequence[Row]:
            if checkpoint_id is None:
                return read_chain(connection, thread_id)
            number = find_number(connection, thread_id)
            version = None if number is None else find_version(connection, number, checkpoint_id)
            return () if version is None else read_chain(connection, thread_id, version)

        chain = self._read(read)
        return self._states(thread_id, chain)[-1] if chain else None

    def history(self, thread_id: str) -> Iterator[Checkpoint]:
        upto = LAST
        while chain := self._read(partial(read_chain, thread_id=thread_id, upto=upto)):
            yield from reversed(self._states(thread_id, chain))
            upto = chain[0].version - 1

    def threads(self) -> Iterator[str]:
        return iter(self._read(thread_ids))

    def erase_thread(self, thread_id: str) -> None:
        """Forget all of a thread, in the file too. Does nothing when there is none."""

        def erase(connection: sqlite3.Connection) -> None:
            number = find_number(connection, thread_id)
            if number is not None:
                delete_thread(connection, number)

        self._change(erase)
        self._empty_log()

    def prune(
        self, *, keep_last: int | None = None, max_age: float | None = None, thread_id: str | None = None
    ) -> int:
        check_retention(keep_last, max_age)
        since = None if max_age is None else self._clock.now() - max_age
        names = [*self.threads()] if thread_id is None else [thread_id]
        return sum(self._prune(name, keep_last, since) for name in names)

    def compact(self) -> None:
        """Give the space of what was pruned and erased back to the file system."""
        with self._writing, self._translated():
            self._writer.execute("VACUUM")
        self._empty_log()

    def _commit_alone(self, saving: Saving) -> Exception | None:
        try:
            return self._transact([saving])[0]
        except _FAILURES as error:
            return _told(error, self._path)

    def _transact(self, group: Sequence[Saving]) -> Sequence[Exception | None]:
        self._check_open()
        if len(group) == 1 and self._follow(group, 0):
            return [None]
        refusals: list[Exception | None] = []
        with _transaction(self._writer):
            while (at := len(refusals)) < len(group):
                followed = self._follow(group, at) if len(group) > 1 else 0
                # or the first of the others; it may have been added just now, which is no reason to refuse it
                refusals += [None] * followed or [self._attempt(group[at])]
        return refusals

    def _follow(self, group: Sequence[Saving], start: int) -> int:
        """Add what changed, in one statement each, which is all most supersteps need.

        Returns how many of `group` from `start` on were added. Not one for which there is more to decide: a
        thread this store has not written to yet, or that another process has; a branch; a due snapshot.
        """
        ahead: dict[str, Spot] = {}
        rows: list[tuple[Spot, Checkpoint, bytes]] = []
        for at in range(start, len(group)):
            checkpoint, blob = group[at]
            thread_id = checkpoint.thread_id
            spot = ahead.get(thread_id) or self._spots.pop(thread_id, None)
            if (
                spot is None
                or checkpoint.version != spot.head.version + 1
                or not is_delta(spot.head, checkpoint, blob.size)
            ):
                break
            ahead[thread_id] = spot = Spot(spot.number, after(spot.head, checkpoint, blob.size, delta=True))
            rows.append((spot, checkpoint, blob.data))
        if not add_following(self._writer, rows):
            return 0
        self._spots |= ahead
        return len(rows)

    def _attempt(self, saving: Saving) -> StoreError | None:
        """Save one within the transaction; returns why it is refused, having written nothing."""
        try:
            self._insert(saving)
        except StoreError as refusal:
            return refusal
        return None

    def _insert(self, saving: Saving) -> None:
        checkpoint, blob = saving
        spot = find_spot(self._writer, checkpoint.thread_id)
        number, head = (None, None) if spot is None else spot
        if number is not None and self._is_held(number, head, checkpoint):
            return
        check_next(checkpoint.thread_id, head, checkpoint)
        self._check_parent(number, head, checkpoint)
        delta = is_delta(head, checkpoint, blob.size)
        if not delta:
            blob = self._codec.write(checkpoint, omit=_COLUMNS)
        if number is None:
            number = add_thread(self._writer, checkpoint.thread_id)
        added = after(head, checkpoint, blob.size, delta=delta)
        add_row(self._writer, number, added, checkpoint.created, blob.data)
        if len(self._spots) >= MAX_SPOTS:
            self._spots.clear()
        self._spots[checkpoint.thread_id] = Spot(number, added)

    def _is_held(self, number: int, head: Head | None, checkpoint: Checkpoint) -> bool:
        if head is None or checkpoint.version > head.version:
            return False
        return is_id_of(self._writer, number, checkpoint.version, checkpoint.id)

    def _check_parent(self, number: int | None, head: Head | None, checkpoint: Checkpoint) -> None:
        parent = checkpoint.parent_id
        if parent is None or (head is not None and parent == head.id):
            return
        if number is None or find_version(self._writer, number, parent) is None:
            raise missing_parent(checkpoint)

    def _prune(self, thread_id: str, keep_last: int | None, since: float | None) -> int:
        def prune(connection: sqlite3.Connection) -> int:
            number = find_number(connection, thread_id)
            if number is None:
                return 0
            kept = oldest_kept(connection, number, keep_last=keep_last, since=since)
            chain = read_chain(connection, thread_id, kept)
            if kept > 1 and chain and chain[0].version < kept:
                blob = self._codec.write(self._states(thread_id, chain)[-1], omit=_COLUMNS)
                rebase(connection, number, kept, blob.data, size=blob.size)
            return delete_before(connection, number, kept)

        return self._change(prune)

    def _states(self, thread_id: str, chain: Sequence[Row]) -> list[Checkpoint]:
        checkpoints: list[Checkpoint] = []
        for at, row in enumerate(chain):
            known = {"id": row.id, "thread_id": thread_id, "version": row.version, "created": row.created}
            if at:
                known["parent_id"] = chain[at - 1].id
            try:
                row.check()
                if row.version != chain[0].base + at:
                    raise UnreadableError("what it follows is missing")
                checkpoints.append(self._codec.read(row.body, known))
            except UnreadableError as error:
                raise UnreadableError(
                    f"checkpoint {row.version} of thread {thread_id!r} in {self._path} cannot be read:"
                    f" {error}; restore the file, or erase the thread"
                ) from error
        return list(with_states(checkpoints))

    def _change(self, work: Callable[[sqlite3.Connection], T]) -> T:
        self._check_process()
        with self._writing, self._translated(), _transaction(self._writer):
            return work(self._writer)

    def _read(self, ask: Callable[[sqlite3.Connection], T]) -> T:
        self._check_process()
        with self._reading, self._translated():
            return ask(self._reader)

    def _empty_log(self) -> None:
        """Move what the write-ahead log holds into the file, so that nothing old stays readable in it."""
        with self._writing, self._translated():
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _translated(self) -> AbstractContextManager[None]:
        self._check_open()
        return CHECKPOINTS.translated(self._path)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"the store {self._path} is closed; open it again")

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise StoreError(
                f"the store {self._path} was opened before a fork; open it again in this process"
            )


def _told(error: Exception, path: Path) -> Exception:
    if isinstance(error, UnicodeEncodeError):
        return UsageError("a thread or checkpoint id holds half a surrogate pair; choose another")
    return CHECKPOINTS.error(error, path) if isinstance(error, sqlite3.Error) else error


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # the first error is the one to tell
            connection.rollback()
        raise
