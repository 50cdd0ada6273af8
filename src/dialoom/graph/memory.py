"""Checkpoints in memory: for tests, for what may end with the process, and as the model of other stores."""

from collections.abc import Iterator
from threading import Lock

import msgspec

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import ConflictError, StoreError
from dialoom.graph.checkpoint import Checkpoint, replay
from dialoom.graph.retention import check_retention, first_kept
from dialoom.graph.state import EMPTY, State


class _Thread:
    """The checkpoints of a thread by their ids, oldest first, and the version of its newest one."""

    __slots__ = ("checkpoints", "version")

    def __init__(self) -> None:
        self.checkpoints: dict[str, Checkpoint] = {}
        self.version = 0


class MemoryCheckpointStore:
    """Keeps of each checkpoint what changed; the state is folded from that when somebody asks.

    So a thread costs memory in proportion to what was written to it, not to its length times its size.
    """

    blocking = False

    def __init__(self, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._lock = Lock()
        self._threads: dict[str, _Thread] = {}

    def save(self, checkpoint: Checkpoint) -> None:
        bare = msgspec.structs.replace(checkpoint, state=EMPTY)
        self._lock.acquire()  # at half the cost of `with`, for what every superstep does
        try:
            held = self._threads.get(checkpoint.thread_id)
            if held is None:
                held = _Thread()
            elif checkpoint.id in held.checkpoints:
                return
            if checkpoint.version != held.version + 1:
                raise ConflictError(
                    f"thread {checkpoint.thread_id!r} is at version {held.version}, so another run was first;"
                    " load it again, then decide"
                )
            if checkpoint.parent_id is not None and checkpoint.parent_id not in held.checkpoints:
                raise StoreError(
                    f"thread {checkpoint.thread_id!r} has no checkpoint {checkpoint.parent_id!r} to follow;"
                    " resume from one of its own"
                )
            held.checkpoints[checkpoint.id] = bare
            held.version = checkpoint.version
            self._threads[checkpoint.thread_id] = held
        finally:
            self._lock.release()

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Checkpoint | None:
        held = self._held(thread_id)
        if not held:
            return None
        found = held.get(next(reversed(held)) if checkpoint_id is None else checkpoint_id)
        if found is None:
            return None
        line = [found]
        while (parent := held.get(line[-1].parent_id or "")) is not None:
            line.append(parent)
        state = _begun(line.pop())
        state = replay(state, (op for checkpoint in reversed(line) for op in checkpoint.ops))
        return msgspec.structs.replace(found, state=state)

    def history(self, thread_id: str) -> Iterator[Checkpoint]:
        return reversed(_with_states(self._held(thread_id)))

    def threads(self) -> Iterator[str]:
        with self._lock:
            return iter(sorted(self._threads))

    def erase_thread(self, thread_id: str) -> None:
        with self._lock:
            self._threads.pop(thread_id, None)

    def prune(
        self, *, keep_last: int | None = None, max_age: float | None = None, thread_id: str | None = None
    ) -> int:
        check_retention(keep_last, max_age)
        since = None if max_age is None else self._clock.now() - max_age
        with self._lock:
            names = [*self._threads] if thread_id is None else [thread_id]
            return sum(self._prune(name, keep_last, since) for name in names)

    def compact(self) -> None:
        """Do nothing: what is forgotten takes no memory."""

    def _prune(self, thread_id: str, keep_last: int | None, since: float | None) -> int:
        thread = self._threads.get(thread_id, _Thread())
        held = thread.checkpoints
        first = first_kept([checkpoint.created for checkpoint in held.values()], keep_last, since)
        if first:
            kept = _with_states(held)[first:]
            ids = {checkpoint.id for checkpoint in kept}
            thread.checkpoints = {
                checkpoint.id: checkpoint
                if checkpoint.parent_id not in ids
                else msgspec.structs.replace(checkpoint, state=EMPTY)
                for checkpoint in kept
            }
        return first

    def _held(self, thread_id: str) -> dict[str, Checkpoint]:
        with self._lock:
            return dict(self._threads.get(thread_id, _Thread()).checkpoints)


def _begun(oldest: Checkpoint) -> State:
    """Return the state of a checkpoint that follows nothing that is held; pruning left it there, if any."""
    return oldest.state or replay(EMPTY, oldest.ops)


def _with_states(held: dict[str, Checkpoint]) -> list[Checkpoint]:
    """Return the checkpoints of a thread, oldest first, each with its state."""
    states: dict[str, State] = {}
    for checkpoint in held.values():
        before = states.get(checkpoint.parent_id or "")
        states[checkpoint.id] = _begun(checkpoint) if before is None else replay(before, checkpoint.ops)
    return [msgspec.structs.replace(checkpoint, state=states[checkpoint.id]) for checkpoint in held.values()]
