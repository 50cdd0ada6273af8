"""A stop request: made once, from any thread, seen by all who watch, never taken back."""

from collections.abc import Callable
from threading import Lock
from typing import Literal

CancelReason = Literal["cancelled", "timeout"]


class Cancelled(BaseException):
    """Work ended because its scope was cancelled. Not a failure, so `except Exception` lets it pass."""

    def __init__(self, reason: CancelReason = "cancelled") -> None:
        super().__init__(reason)
        self.reason: CancelReason = reason


class CancelScope:
    """Watches for a stop request; a child stops with its parent, a parent outlives its children.

    Cancelling runs each callback once, on the thread that cancels. A callback must not block.
    """

    def __init__(self, parent: "CancelScope | None" = None) -> None:
        self._lock = Lock()
        self._reason: CancelReason | None = None
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._last_key = 0
        self._parent = parent
        self._key = parent.watch(self._follow) if parent else 0

    @property
    def reason(self) -> CancelReason | None:
        """Why the scope was cancelled, or None while it is not."""
        return self._reason

    @property
    def cancelled(self) -> bool:
        return self._reason is not None

    def cancel(self, reason: CancelReason = "cancelled") -> None:
        """Ask everything under this scope to stop. The first reason stays."""
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            waiting = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in waiting:
            callback()

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` when a stop was asked for."""
        if self._reason is not None:
            raise Cancelled(self._reason)

    def add_callback(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once on cancel, at once if that has happened. Returns what forgets it again."""
        key = self.watch(callback)
        return lambda: self.unwatch(key)

    def watch(self, callback: Callable[[], None]) -> int:
        """`add_callback`, for code that makes many scopes: returns the key that `unwatch` takes."""
        with self._lock:
            if self._reason is None:
                self._last_key += 1
                self._callbacks[self._last_key] = callback
                return self._last_key
        callback()
        return 0

    def unwatch(self, key: int) -> None:
        """Forget the callback `watch` gave `key` for, if it was not called yet."""
        with self._lock:
            self._callbacks.pop(key, None)

    def close(self) -> None:
        """Stop following the parent; a scope that ends before its parent calls this, or it is kept alive."""
        if self._parent is not None:
            self._parent.unwatch(self._key)

    def _follow(self) -> None:
        assert self._parent is not None
        self.cancel(self._parent.reason or "cancelled")
