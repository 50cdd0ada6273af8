"""Faults on demand: a test names the moment, the program fails or dies there."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Final, Literal, TypeVar, get_args

from dialoom.base.errors import UsageError
from dialoom.graph import Checkpoint, CheckpointStore

T = TypeVar("T")
FaultPoint = Literal["before_commit", "after_commit", "before_delivery", "after_delivery"]
FAULT_POINTS: Final[tuple[FaultPoint, ...]] = get_args(FaultPoint)


class InjectedFault(Exception):  # noqa: N818 - what happened, not an error of the program
    """What a test asked for at a fault point."""


class Faults:
    """Counts how often each point is reached and does there what it was told to.

    Safe to share between threads. Without plans it only counts.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._reached: Counter[FaultPoint] = Counter()
        self._plans: dict[tuple[FaultPoint, int], Callable[[], object]] = {}

    @classmethod
    def killing(cls, text: str) -> "Faults":
        """Return faults that kill this process: "after_commit:3" at the third time, several by commas.

        Meant for an environment variable of a child process. Raises UsageError for anything else.
        """
        faults = cls()
        for part in filter(None, text.split(",")):
            point, _, time = part.partition(":")
            if point not in FAULT_POINTS or not time.isdecimal():
                raise UsageError(f"{part!r} is no fault; write one as {FAULT_POINTS[0]}:1")
            faults.at(point, kill, time=int(time))
        return faults

    def at(self, point: FaultPoint, act: Callable[[], object], *, time: int = 1) -> None:
        """Call `act` when `point` is reached for the `time`-th time."""
        self._plans[point, time] = act

    def fail(self, point: FaultPoint, *, time: int = 1) -> None:
        """Raise InjectedFault there."""
        self.at(point, lambda: _raise(f"{point} was reached {time} times"), time=time)

    def reached(self, point: FaultPoint) -> int:
        return self._reached[point]

    def reach(self, point: FaultPoint) -> None:
        """Say that the program is at `point`; raises or does what is planned there."""
        with self._lock:
            self._reached[point] += 1
            act = self._plans.get((point, self._reached[point]))
        if act is not None:
            act()

    def delivery(self, deliver: Callable[[], T]) -> T:
        """Return what `deliver` returns, with a fault point before and after it."""
        self.reach("before_delivery")
        result = deliver()
        self.reach("after_delivery")
        return result


class FaultyCheckpointStore:
    """Any checkpoint store, with a fault point before and after each commit."""

    def __init__(self, store: CheckpointStore, faults: Faults) -> None:
        self._store = store
        self._faults = faults

    @property
    def blocking(self) -> bool:
        return self._store.blocking

    def save(self, checkpoint: Checkpoint) -> None:
        self._faults.reach("before_commit")
        self._store.save(checkpoint)
        self._faults.reach("after_commit")

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Checkpoint | None:
        return self._store.load(thread_id, checkpoint_id)

    def history(self, thread_id: str) -> Iterator[Checkpoint]:
        return self._store.history(thread_id)

    def threads(self) -> Iterator[str]:
        return self._store.threads()

    def erase_thread(self, thread_id: str) -> None:
        self._store.erase_thread(thread_id)


def kill() -> None:
    """End this process as `kill -9` does: nothing is cleaned up, nothing is flushed."""
    os.kill(os.getpid(), signal.SIGKILL)


def _raise(message: str) -> None:
    raise InjectedFault(message)
