"""Where runs without a store stand: their newest checkpoints, for as long as they run."""

from collections.abc import Iterator
from threading import Lock

from dialoom.graph.checkpoint import Checkpoint


class NewestOnly:
    """A `CheckpointStore` that remembers of each thread its newest checkpoint, until it is taken out."""

    blocking = False

    def __init__(self) -> None:
        self._lock = Lock()
        self._newest: dict[str, Checkpoint] = {}

    def save(self, checkpoint: Checkpoint) -> None:
        with self._lock:
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
