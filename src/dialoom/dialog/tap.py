"""A checkpoint store that remembers what was saved last, so that nobody has to read it back."""

from collections.abc import Iterator

from dialoom.graph import Checkpoint, CheckpointStore


class Tap:
    """Passes everything on to `store`. `newest` is the last checkpoint that is durable, None before one."""

    def __init__(self, store: CheckpointStore, newest: Checkpoint | None = None) -> None:
        self._store = store
        self.newest = newest

    @property
    def blocking(self) -> bool:
        return self._store.blocking

    def save(self, checkpoint: Checkpoint) -> None:
        self._store.save(checkpoint)
        self.newest = checkpoint

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Checkpoint | None:
        return self._store.load(thread_id, checkpoint_id)

    def history(self, thread_id: str) -> Iterator[Checkpoint]:
        return self._store.history(thread_id)

    def threads(self) -> Iterator[str]:
        return self._store.threads()

    def erase_thread(self, thread_id: str) -> None:
        self._store.erase_thread(thread_id)
