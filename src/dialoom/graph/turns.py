"""Whose turn it is on a thread, among the runs of one graph in this process."""

from threading import Lock
from typing import Literal

from dialoom.base.cancel import CancelScope

OnConflict = Literal["reject", "queue", "cancel_previous"]


class Turn:
    """The place of one run in the line of its thread. `come` is cancelled when it is this run's turn."""

    def __init__(self, thread_id: str, run: CancelScope) -> None:
        self.thread_id = thread_id
        self.run = run
        self.come = CancelScope()


class Turns:
    """The lines before the threads that are running. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._lines: dict[str, list[Turn]] = {}

    def take(self, turn: Turn, on_conflict: OnConflict) -> bool:
        """Join the line, at its head when nobody is there. Returns False when the run is rejected."""
        with self._lock:
            line = self._lines.setdefault(turn.thread_id, [])
            ahead = list(line)
            if ahead and on_conflict == "reject":
                return False
            line.append(turn)
        if not ahead:
            turn.come.cancel()
        if on_conflict == "cancel_previous":
            for other in ahead:
                other.run.cancel()
        return True

    def leave(self, turn: Turn) -> None:
        """Leave the line, wherever in it; the next one's turn comes."""
        with self._lock:
            line = self._lines[turn.thread_id]
            line.remove(turn)
            following = line[0] if line else None
            if following is None:
                del self._lines[turn.thread_id]
        if following is not None:
            following.come.cancel()
