"""Checkpoints in memory: for tests, for what may end with the process, and as the model of other stores."""

from collections.abc import Iterator
from threading import Lock

import msgspec

from dialoom.base.errors import ConflictError, StoreError
from dialoom.graph.checkpoint import Checkpoint, replay
from dialoom.graph.state import EMPTY, State


class MemoryCheckpointStore:
    """Keeps of each checkpoint what changed; the state is folded from that when somebody asks.

    So a thread costs memory in proportion to what was written to it, not to its length times its size.
    """

    blocking = False

    def __init__(self) -> None:
        self._lock = Lock()
        self._threads: dict[str, dict[str, Checkpoint]] = {}

    def save(self, checkpoint: Checkpoint) -> None:
        with self._lock:
            held = self._threads.get(checkpoint.thread_id, {})
            if checkpoint.id in held:
                return
            if checkpoint.version != len(held) + 1:
                raise ConflictError(
                    f"thread {checkpoint.thread_id!r} is at version {len(held)}, so another run was first;"
                    " load it again, then decide"
                )
            if checkpoint.parent_id is not None and checkpoint.parent_id not in held:
                raise StoreError(
                    f"thread {checkpoint.thread_id!r} has no checkpoint {checkpoint.parent_id!r} to follow;"
                    " resume from one of its own"
                )
            held[checkpoint.id] = msgspec.structs.replace(checkpoint, state=EMPTY)
            self._threads[checkpoint.thread_id] = held

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Checkpoint | None:
        held = self._held(thread_id)
        if not held:
            return None
        found = held.get(next(reversed(held)) if checkpoint_id is None else checkpoint_id)
        if found is None:
            return None
        line = [found]
        while (parent_id := line[-1].parent_id) is not None:
            line.append(held[parent_id])
        state = replay(EMPTY, (op for checkpoint in reversed(line) for op in checkpoint.ops))
        return msgspec.structs.replace(found, state=state)

    def history(self, thread_id: str) -> Iterator[Checkpoint]:
        held = self._held(thread_id)
        states: dict[str | None, State] = {None: EMPTY}
        for checkpoint in held.values():
            states[checkpoint.id] = replay(states[checkpoint.parent_id], checkpoint.ops)
        return (
            msgspec.structs.replace(checkpoint, state=states[checkpoint.id])
            for checkpoint in reversed(held.values())
        )

    def threads(self) -> Iterator[str]:
        with self._lock:
            return iter(sorted(self._threads))

    def erase_thread(self, thread_id: str) -> None:
        with self._lock:
            self._threads.pop(thread_id, None)

    def _held(self, thread_id: str) -> dict[str, Checkpoint]:
        with self._lock:
            return dict(self._threads.get(thread_id, {}))
