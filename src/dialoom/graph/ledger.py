"""Where a run stands, and the checkpoints that keep it."""

from collections.abc import Iterable
from typing import Protocol

from dialoom.graph.checkpoint import Checkpoint
from dialoom.graph.commit import Step
from dialoom.graph.frontier import AT_ENTRY, Frontier, TaskNote
from dialoom.graph.note_changes import following
from dialoom.graph.position import Position
from dialoom.graph.setup import Setup
from dialoom.graph.state import EMPTY, State


class Saver(Protocol):
    """Where the checkpoints of a run go: a store, or the task of the run around it."""

    @property
    def blocking(self) -> bool: ...
    def save(self, checkpoint: Checkpoint) -> None: ...


class Ledger:
    """Where a run stands after `steps` supersteps, and how that becomes durable if there is a `store`.

    `state` and `frontier` are those of the newest of them, `version` and `checkpoint_id` of its checkpoint.
    """

    __slots__ = (
        "_kept", "_run_id", "_setup", "_thread_id", "_unsure",
        "checkpoint_id", "frontier", "state", "steps", "store", "version",
    )  # fmt: skip

    def __init__(self, setup: Setup, store: Saver | None, *, run_id: str, thread_id: str) -> None:
        self.state: State = EMPTY
        self.frontier: Frontier = AT_ENTRY
        self.version = 0
        self.checkpoint_id: str | None = None
        self.steps = 0
        self.store = store
        self._setup = setup
        self._run_id = run_id
        self._thread_id = thread_id
        self._kept = 0
        self._unsure: Checkpoint | None = None

    @property
    def blocking(self) -> bool:
        return self.store is not None and self.store.blocking

    def begin_at(self, position: Position) -> None:
        """Stand where a thread or a checkpoint stands already."""
        self.state, self.frontier = position.state, position.frontier
        self.version, self.checkpoint_id = position.version, position.checkpoint_id

    def put(self, step: Step, number: int, part: str = "") -> Checkpoint | None:
        """Make `step` durable, on whatever thread; None without a store. Raises what the store raises.

        What it raised for an earlier part of this superstep may have been no more than a lost answer: that
        one is saved again first, which does nothing when it is held, or no later one could follow.
        """
        store = self.store
        if store is None:
            return None
        if self._unsure is not None:
            store.save(self._unsure)
            kept = self._unsure
            self.frontier, self.version, self.checkpoint_id = kept.frontier, kept.version, kept.id
        self._unsure = checkpoint = self._checkpoint(step, number, part)
        store.save(checkpoint)
        self._unsure = None
        return checkpoint

    def stand_on(self, step: Step, number: int, checkpoint: Checkpoint | None) -> None:
        """Go on from `step`, which `checkpoint` keeps."""
        self.state = step.state
        self.frontier = step.frontier
        self.steps = number
        if checkpoint is not None:
            self.version = checkpoint.version
            self.checkpoint_id = checkpoint.id

    def keep(self, notes: Iterable[TaskNote]) -> None:
        """Make durable what the running tasks have noted so far. Raises what the store raises."""
        if self.store is not None:
            self._kept += 1
            step = Step(self.state, self.frontier.noted(notes))
            self.stand_on(step, self.steps, self.put(step, self.steps, f".{self._kept}"))

    def _checkpoint(self, step: Step, number: int, part: str) -> Checkpoint:
        setup = self._setup
        return Checkpoint(
            id=f"{self._run_id}:{number}{part}",
            thread_id=self._thread_id,
            version=self.version + 1,
            parent_id=self.checkpoint_id,
            run_id=self._run_id,
            step=number,
            created=setup.clock.now(),
            fingerprint=setup.fingerprint,
            frontier=following(self.frontier, step.frontier),
            ops=step.ops,
            state=step.state,
            interrupts=step.frontier.interrupts if step.frontier.notes else (),
            state_version=setup.state_version,
        )
