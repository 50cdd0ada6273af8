"""Where a thread stands after a superstep, and the protocol of what keeps it."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import msgspec

from dialoom.graph.frontier import Frontier, Interrupt
from dialoom.graph.ops import Op, fold
from dialoom.graph.state import State


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One committed superstep of one thread; step 0 of a run is its input.

    `version` counts the checkpoints of the thread from 1, whatever branch they are on; `parent_id` is the one
    this follows, None for the first. `ops` is what changed, in commit order, and `state` what that came to.
    `frontier` says what runs next. `created` is in seconds since the Unix epoch. `interrupts` and `outbox`
    are what waits for an answer and what waits to be said. `state_version` is that of the graph's migrations.
    """

    id: str
    thread_id: str
    version: int
    parent_id: str | None
    run_id: str
    step: int
    created: float
    fingerprint: str
    frontier: Frontier
    ops: tuple[Op, ...]
    state: State
    interrupts: tuple[Interrupt, ...] = ()
    outbox: tuple[object, ...] = ()
    state_version: int = 1


class CheckpointStore(Protocol):
    """Keeps the checkpoints of threads. `dialoom.testing` has the contract suite that every store passes.

    Its methods are plain functions, called from any thread and by many at once. `blocking` says that they may
    wait for a disk or a network: then a run on an event loop calls them on a worker thread.
    """

    @property
    def blocking(self) -> bool: ...

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep `checkpoint`, all of it or nothing; once this returns it is durable.

        Its version must be the newest one of its thread plus one, its parent must be in that thread.
        Raises ConflictError when another writer was first. To save what is held already, under the same id,
        does nothing: that is how a writer finds out that a lost answer was a yes.
        """
        ...

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Checkpoint | None:
        """Return the newest checkpoint of a thread, or the one named; None when there is none."""
        ...

    def history(self, thread_id: str) -> Iterator[Checkpoint]:
        """Return the checkpoints of a thread, newest first."""
        ...

    def threads(self) -> Iterator[str]:
        """Return the ids of all threads, sorted."""
        ...

    def erase_thread(self, thread_id: str) -> None:
        """Forget all of a thread. Does nothing when there is none."""
        ...


class PrunableCheckpointStore(CheckpointStore, Protocol):
    """A store that can be kept small while it is in use."""

    def prune(
        self, *, keep_last: int | None = None, max_age: float | None = None, thread_id: str | None = None
    ) -> int:
        """Forget old checkpoints of one thread or of all, and return how many.

        A thread keeps at most its `keep_last` newest ones and none older than `max_age` seconds, but always
        its newest one, which is where it goes on. Raises UsageError when no limit is given.
        """
        ...

    def compact(self) -> None:
        """Give the space of what is gone back. Loses nothing."""
        ...


def replay(state: State, ops: Iterable[Op]) -> State:
    """Return what `ops` make of `state`: the same fold that made the live state."""
    values: dict[str, Any] = dict(state)
    fold(values, ops)
    return State(values)
