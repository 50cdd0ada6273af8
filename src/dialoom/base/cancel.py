"""A stop request: made once, from any thread, seen by all who watch, never taken back."""

from collections.abc import Callable
from itertools import count
from threading import RLock
from typing import Literal

CancelReason = Literal["cancelled", "timeout"]
Callbacks = dict[int, Callable[[], None]]
_KEYS = count(1)
_NOBODY: Callbacks = {}
"""What watches a scope that nobody watches: it stays empty, and spares most scopes a dict."""
_FIRST = RLock()
"""Decides which of two requests came first. One for all scopes, so that a run costs less; reentrant, because
a scope may be cancelled where garbage is collected."""


class Cancelled(BaseException):
    """Work ended because its scope was cancelled. Not a failure, so `except Exception` lets it pass."""

    def __init__(self, reason: CancelReason = "cancelled") -> None:
        super().__init__(reason)
        self.reason: CancelReason = reason


class CancelScope:
    """Watches for a stop request; a child stops with its parent, a parent outlives its children.

    Cancelling runs each callback once, on the thread that cancels. A callback must not block.
    """

    __slots__ = ("_callbacks", "_key", "_parent", "_reason")

    def __init__(self, parent: "CancelScope | None" = None) -> None:
        self._reason: CancelReason | None = None
        self._callbacks = _NOBODY
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
        with _FIRST:
            if self._reason is not None:
                return
            self._reason = reason
        for key in list(self._callbacks):
            self._call(key)

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` when a stop was asked for."""
        if (reason := self.reason) is not None:
            raise Cancelled(reason)

    def add_callback(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once on cancel, at once if that has happened. Returns what forgets it again."""
        key = self.watch(callback)
        return lambda: self.unwatch(key)

    def watch(self, callback: Callable[[], None]) -> int:
        """`add_callback`, for code that makes many scopes: returns the key that `unwatch` takes."""
        if self._callbacks is _NOBODY:
            with _FIRST:
                self._callbacks = {} if self._callbacks is _NOBODY else self._callbacks
        key = next(_KEYS)
        self._callbacks[key] = callback
        if self._reason is not None:
            self._call(key)
        return key

    def unwatch(self, key: int) -> None:
        """Forget the callback `watch` gave `key` for, if it was not called yet."""
        self._callbacks.pop(key, None)

    def close(self) -> None:
        """Stop following the parent; a scope that ends before its parent calls this, or it is kept alive."""
        if self._parent is not None:
            self._parent.unwatch(self._key)

    def _call(self, key: int) -> None:
        """Call the callback of `key` unless another thread, which took it out first, does so."""
        if (callback := self._callbacks.pop(key, None)) is not None:
            callback()

    def _follow(self) -> None:
        assert self._parent is not None
        self.cancel(self._parent.reason or "cancelled")
