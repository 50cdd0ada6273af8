"""Ends a task's wait from outside: a cancelled scope, a deadline."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar

from dialoom.base.cancel import Cancelled, CancelScope

_T = TypeVar("_T")


class StopSwitch:
    """Wraps the waits of one stream, so that tripping it ends the one under way and refuses the next.

    Works like `asyncio.timeout`: the waiting task is cancelled and the cancellation taken back, so a
    cancellation by anybody else keeps its meaning.
    """

    def __init__(self, scope: CancelScope | None = None) -> None:
        self._scope = scope
        self._why: BaseException | None = None
        self._waiting: asyncio.Task[object] | None = None
        self._interrupted = False
        self._leave_scope: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        if self._scope is not None:
            loop = asyncio.get_running_loop()
            self._leave_scope = self._scope.add_callback(lambda: self._on_cancel(loop))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave_scope()

    @property
    def is_waiting(self) -> bool:
        """Whether a wait is under way."""
        return self._waiting is not None

    def trip(self, why: BaseException) -> None:
        """End the wait under way, and every later one, with `why`; the first stays. Loop thread only."""
        if self._why is not None:
            return
        self._why = why
        if self._waiting is not None:
            self._interrupted = True
            self._waiting.cancel()

    def check(self) -> None:
        """Raise the reason when the switch was tripped or its scope cancelled."""
        if self._why is not None:
            raise self._why
        if self._scope is not None:
            self._scope.raise_if_cancelled()

    async def wait(self, step: Callable[[], Awaitable[_T]]) -> _T:
        """Return what `step()` gives, or raise the reason as soon as the switch is tripped."""
        self.check()
        task = asyncio.current_task()
        assert task is not None
        cancels_before = task.cancelling()
        self._waiting = task
        try:
            return await step()
        except asyncio.CancelledError:
            if self._interrupted and self._why is not None and task.cancelling() == cancels_before + 1:
                raise self._why from None
            raise
        finally:
            self._waiting = None
            if self._interrupted:
                self._interrupted = False
                task.uncancel()

    def _on_cancel(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self._trip_by_scope)

    def _trip_by_scope(self) -> None:
        assert self._scope is not None
        self.trip(Cancelled(self._scope.reason or "cancelled"))
