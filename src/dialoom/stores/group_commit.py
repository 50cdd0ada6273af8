"""Group commit without a thread of its own: of all who wait, the first writes for all."""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock
from typing import Final, Generic, TypeVar

from dialoom.base.errors import StoreError

T = TypeVar("T")
MAX_GROUP: Final = 256


class GroupCommit(Generic[T]):
    """Calls `write` with what several threads want written, one call at a time.

    A lone caller writes on its own thread, at the cost of a lock. While somebody writes, the others queue;
    the next to come through the lock takes them all along, up to `MAX_GROUP`. `write` returns, in the same
    order, what kept each item from being written.
    """

    def __init__(self, write: Callable[[Sequence[T]], Sequence[Exception | None]]) -> None:
        self._write = write
        self._turn = Lock()
        self._waiting: deque[_Request[T]] = deque()

    def submit(self, item: T) -> None:
        """Return once `item` is written. Raises what kept it from that."""
        if not self._waiting and self._turn.acquire(blocking=False):
            try:
                (error,) = self._write([item])
            finally:
                self._turn.release()
            if error is not None:
                raise error
            return
        self._submit_with_others(_Request(item))

    def _submit_with_others(self, request: "_Request[T]") -> None:
        self._waiting.append(request)
        try:
            with self._turn:
                while not request.done:
                    self._lead()
        finally:
            if not request.done:
                with suppress(ValueError):  # whoever was interrupted no longer wants it written
                    self._waiting.remove(request)
        if request.error is not None:
            raise request.error

    def _lead(self) -> None:
        group = [self._waiting.popleft() for _ in range(min(MAX_GROUP, len(self._waiting)))]
        errors: Sequence[Exception | None] = ()
        try:
            errors = self._write([request.item for request in group])
        finally:
            for request, error in zip(group, errors or [_interrupted()] * len(group), strict=True):
                request.error, request.done = error, True


class _Request(Generic[T]):
    """One item and what became of it."""

    __slots__ = ("done", "error", "item")

    def __init__(self, item: T) -> None:
        self.item = item
        self.error: Exception | None = None
        self.done = False


def _interrupted() -> StoreError:
    return StoreError("the thread that was writing for others was interrupted; save again")
