"""Signals: what a dialog tells those who connected to it, in order, on the thread that makes it happen."""

import inspect
import logging
from collections.abc import Callable
from typing import Generic, ParamSpec

from dialoom.base.errors import UsageError

P = ParamSpec("P")

_log = logging.getLogger("dialoom.dialog")


class Connection:
    """One listening. Called or `disconnect`ed, it ends; doing so twice is no error."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def disconnect(self) -> None:
        self._end()

    def __call__(self) -> None:
        self._end()


class Signal(Generic[P]):
    """Calls plain functions, in the order they connected.

    A listener that fails is logged, and neither the run nor the next listener notices. It must not block;
    a coroutine function is refused: to await, iterate the handle of a run.
    """

    __slots__ = ("_listeners", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._listeners: tuple[_Listener[P], ...] = ()

    def connect(self, function: Callable[P, object]) -> Connection:
        """Call `function` from now on. Raises `UsageError` for a coroutine function, and for none at all."""
        if not callable(function):
            raise UsageError(f"{self.name} calls a function, and {function!r:.40} is none")
        if inspect.iscoroutinefunction(function):
            raise UsageError(
                f"{self.name} calls plain functions, not async ones; to await, iterate the handle of a run"
            )
        listener = _Listener(function)
        self._listeners = (*self._listeners, listener)
        return Connection(lambda: self._forget(listener))

    def emit(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call all who are connected now, except those who leave meanwhile."""
        for listener in self._listeners:
            if listener in self._listeners:
                self._tell(listener, *args, **kwargs)

    def _tell(self, listener: "_Listener[P]", *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            listener.function(*args, **kwargs)
        except Exception:  # noqa: BLE001 - seam: foreign code listens here
            _log.exception("signal listener failed", extra={"signal": self.name})

    def _forget(self, listener: "_Listener[P]") -> None:
        self._listeners = tuple(each for each in self._listeners if each is not listener)


class _Listener(Generic[P]):
    """One connecting, so that a function connected twice ends twice."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[P, object]) -> None:
        self.function = function
