"""What the tasks of the superstep at hand remember, those of them that have said anything."""

from collections.abc import Callable, Iterable
from threading import RLock
from typing import Final

from dialoom.base.cancel import Cancelled
from dialoom.graph.batch import Key
from dialoom.graph.frontier import TaskNote
from dialoom.graph.memo import Memo

Keep = Callable[[Iterable[TaskNote]], None]


class Memos:
    """The memos of one run, whose path is `ns`. Safe to use from any thread."""

    __slots__ = ("_lock", "_ns", "_over", "open")

    def __init__(self, ns: tuple[str, ...]) -> None:
        self.open: dict[Key, Memo] = {}
        self._ns = ns
        self._over = False
        self._lock = RLock()  # reentrant because an effect of `once` may have effects of its own

    def of(self, key: Key, notes: Iterable[TaskNote], keep: Keep, *, blocking: bool) -> Memo:
        """Return what the task `key` remembers, of `notes` to begin with. Raises Cancelled after the run.

        `keep` makes what all of them note durable, `blocking` says that it may wait. It is called by one
        thread at a time, and no more once the run is over.
        """
        with self._lock:
            if self._over:
                raise Cancelled
            if key not in self.open:
                node, item = key
                held = {(note.node, note.item): note for note in notes}
                note = held.get(key) or TaskNote(node=node, item=item)
                self.open[key] = Memo(note, ns=self._ns, keep=lambda: self._keep_all(keep), blocking=blocking)
            return self.open[key]

    def close(self) -> list[TaskNote]:
        """Return what the tasks of this superstep have noted; they can note no more."""
        with self._lock:
            for memo in self.open.values():
                memo.close()
            notes = [memo.note() for memo in self.open.values()]
            self.open = {}
        return notes

    def end(self) -> None:
        """Say that the run is over, and wait for what is being made durable."""
        self._over = True
        with self._lock:
            pass

    def _keep_all(self, keep: Keep) -> None:
        with self._lock:
            if self.open and not self._over:
                keep(memo.note() for memo in self.open.values())


def _ended() -> Memos:
    memos = Memos(())
    memos.end()
    return memos


ENDED: Final = _ended()
"""Those of every run that is over and remembered nothing."""
