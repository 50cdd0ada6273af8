"""Where runs without a store stand: their newest checkpoints, for as long as they run."""

from collections import deque
from collections.abc import Iterator
from threading import RLock
from typing import Final

from dialoom.graph.checkpoint import Checkpoint

_MAX_ABANDONED: Final = 1000
"""So many runs may be on their way to an end that nobody waits for."""
_MAX_ANSWERED: Final = 10_000
"""So many answered results are known, so that a second answer to one is refused."""


class NewestOnly:
    """A `CheckpointStore` that remembers of each thread its newest checkpoint, until it is taken out."""

    blocking = False

    def __init__(self) -> None:
        self._lock = RLock()  # reentrant: a stream may be forgotten, and say so, at any moment
        self._newest: dict[str, Checkpoint] = {}
        self._abandoned: deque[str] = deque(maxlen=_MAX_ABANDONED)
        self._answered: deque[str] = deque(maxlen=_MAX_ANSWERED)

    def save(self, checkpoint: Checkpoint) -> None:
        with self._lock:
            if checkpoint.run_id not in self._abandoned:
                self._newest[checkpoint.thread_id] = checkpoint

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Checkpoint | None:
        with self._lock:
            found = self._newest.get(thread_id)
        return found if found is None or checkpoint_id in {None, found.id} else None

    def history(self, thread_id: str) -> Iterator[Checkpoint]:
        found = self.load(thread_id)
        return iter(() if found is None else (found,))

    def threads(self) -> Iterator[str]:
        with self._lock:
            return iter(sorted(self._newest))

    def erase_thread(self, thread_id: str) -> None:
        self.take(thread_id)

    def take(self, thread_id: str) -> Checkpoint | None:
        """Return where a thread stands, and forget it."""
        with self._lock:
            return self._newest.pop(thread_id, None)

    def abandon(self, thread_id: str) -> None:
        """Forget where a run stands that nobody will ask for, and what it still commits on its way out."""
        with self._lock:
            newest = self.take(thread_id)
            if newest is not None:
                self._abandoned.append(newest.run_id)

    def answer(self, checkpoint: Checkpoint) -> None:
        """Note that what `checkpoint` asks has been answered: a call of it may have run."""
        with self._lock:
            self._answered.append(checkpoint.id)

    def is_answered(self, checkpoint: Checkpoint) -> bool:
        """Whether what `checkpoint` asks has been answered by this agent."""
        with self._lock:
            return checkpoint.id in self._answered
