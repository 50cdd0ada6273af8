"""Saves that do not wait for the disk: in front of a store, for runs that may lose their last steps."""

from collections import deque
from collections.abc import Iterator, Sequence
from threading import Condition, Thread
from types import TracebackType
from typing import Final, Generic, Literal, Protocol, Self, TypeVar

from dialoom.base.errors import StoreError
from dialoom.graph.checkpoint import Checkpoint, CheckpointStore

S = TypeVar("S")
Durability = Literal["async", "exit"]
QUEUE: Final = 64
EXIT_QUEUE: Final = 4096


class TwoStepStore(CheckpointStore, Protocol[S]):
    """A store whose saves can be prepared one by one and committed together."""

    def prepare(self, checkpoint: Checkpoint) -> S:
        """Return what `commit` needs. Raises StoreError for what cannot be stored."""
        ...

    def commit(self, group: Sequence[S]) -> Sequence[Exception | None]:
        """Commit in order, at the price of one; return what kept each from it."""
        ...


class WriteBehindStore(Generic[S]):
    """Commits to `store` later, in order and in groups, on a thread of its own.

    "async" commits at once, at most 64 behind: then a save waits for room. "exit" commits when somebody
    flushes, reads or closes, or when 4,096 wait. A crash loses the last saves, never one in the middle. What
    cannot be stored is refused at once, and so is a second writer of this process. What the disk or another
    process refuses later is raised by the next save of its thread or by `flush`, and nothing that follows it
    is written. Close it to keep the last saves; `store` stays open.
    """

    blocking = True

    def __init__(self, store: TwoStepStore[S], durability: Durability = "async") -> None:
        self._store = store
        self._eager = durability == "async"
        self._room = QUEUE if self._eager else EXIT_QUEUE
        self._changed = Condition()
        self._waiting: deque[tuple[str, S]] = deque()
        self._heads: dict[str, tuple[int, str]] = {}
        self._failed: dict[str, Exception] = {}
        self._wanted = False
        self._begun = 0
        self._ended = 0
        self._closed = False
        # a daemon: a program that forgets to close still ends
        self._thread = Thread(target=self._write_on, name="dialoom-behind", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Commit what waits and end the thread. Raises what kept something from it; twice is no error."""
        with self._changed:
            if self._closed:
                return
            self._drain()
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        self._raise_any()

    def flush(self) -> None:
        """Return once all is committed. Raises what kept something from it."""
        with self._changed:
            self._check_open()
            self._drain()
        self._raise_any()

    def save(self, checkpoint: Checkpoint) -> None:
        item = self._store.prepare(checkpoint)
        thread_id = checkpoint.thread_id
        with self._changed:
            while True:
                # all of it again after a wait: others were let in meanwhile
                self._check_open()
                if self._heads.get(thread_id) != (checkpoint.version - 1, checkpoint.parent_id):
                    self._save_now(checkpoint)
                    return
                if len(self._waiting) < self._room:
                    break
                self._wake()
                self._changed.wait()
            self._waiting.append((thread_id, item))
            self._heads[thread_id] = (checkpoint.version, checkpoint.id)
            if self._eager and self._begun == self._ended:
                self._wake()

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Checkpoint | None:
        self._settle()
        return self._store.load(thread_id, checkpoint_id)

    def history(self, thread_id: str) -> Iterator[Checkpoint]:
        self._settle()
        return self._store.history(thread_id)

    def threads(self) -> Iterator[str]:
        self._settle()
        return self._store.threads()

    def erase_thread(self, thread_id: str) -> None:
        with self._changed:
            self._check_open()
            self._take_head(thread_id)
            self._failed.pop(thread_id, None)
            self._store.erase_thread(thread_id)

    def _save_now(self, checkpoint: Checkpoint) -> None:
        """Let the store decide about the first of a thread, a branch, a repetition and a late writer.

        After a failure too, which takes the head of its thread away, and is told here.
        """
        newest = self._take_head(checkpoint.thread_id)
        self._raise_failure(checkpoint.thread_id)
        self._store.save(checkpoint)
        if checkpoint.version > newest:
            self._heads[checkpoint.thread_id] = (checkpoint.version, checkpoint.id)

    def _take_head(self, thread_id: str) -> int:
        """Wait until nothing of a thread waits, and return the newest version that did or was known.

        A thread without a head is saved to by `_save_now` alone, so nothing of it is queued meanwhile.
        """
        newest = 0
        while True:
            newest = max(newest, self._heads.pop(thread_id, (0, ""))[0])
            self._drain()
            if thread_id not in self._heads:
                return newest

    def _settle(self) -> None:
        with self._changed:
            self._check_open()
            self._drain()

    def _drain(self) -> None:
        """Wait, holding the condition, until what waits now is written, but not what comes later."""
        last = self._begun + bool(self._waiting)  # a group takes all that waits
        while self._ended < last:
            if self._begun < last:
                self._wake()
            self._changed.wait()

    def _wake(self) -> None:
        self._wanted = True
        self._changed.notify_all()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the write-behind store is closed; make a new one over the same store")

    def _raise_failure(self, thread_id: str) -> None:
        error = self._failed.pop(thread_id, None)
        if error is not None:
            raise error

    def _raise_any(self) -> None:
        with self._changed:
            for thread_id in list(self._failed):
                self._raise_failure(thread_id)

    def _write_on(self) -> None:
        while True:
            with self._changed:
                self._ended = self._begun
                self._changed.notify_all()
                while not (self._wanted or self._closed or (self._eager and self._waiting)):
                    self._changed.wait()
                if not (self._waiting or self._wanted):
                    return
                group = [*self._waiting]
                self._waiting.clear()
                self._wanted = False
                self._begun += 1
            self._commit(group)

    def _commit(self, group: Sequence[tuple[str, S]]) -> None:
        try:
            errors = self._store.commit([item for _, item in group]) if group else ()
        except Exception as error:  # noqa: BLE001 - seam: stores are foreign code; the next save tells
            errors = [error] * len(group)
        with self._changed:
            for (thread_id, _), error in zip(group, errors, strict=True):
                if error is not None:
                    self._failed.setdefault(thread_id, error)
                    self._heads.pop(thread_id, None)
            for failed in self._failed:
                self._waiting = deque(each for each in self._waiting if each[0] != failed)
