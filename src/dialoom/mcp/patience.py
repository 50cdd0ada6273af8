"""How long one request may take: bounds on silence and on everything, both off while a person is asked."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Self

_current: Final[ContextVar["Patience | None"]] = ContextVar("mcp_patience", default=None)


class Patience:
    """Waits `idle` seconds for a sign of life and `total` seconds for the end, then raises `TimeoutError`.

    While it is paused neither runs; pauses nest. It is entered once, by the task that waits.
    """

    def __init__(self, *, idle: float, total: float) -> None:
        self._idle = idle
        self._left = total
        self._pauses = 0
        self._timer = asyncio.timeout(None)
        self._ends_at = 0.0
        self._entered = False

    async def __aenter__(self) -> Self:
        await self._timer.__aenter__()
        self._token = _current.set(self)
        self._entered = True
        self._run()
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._entered = False
        _current.reset(self._token)
        await self._timer.__aexit__(*failure)  # pyright: ignore[reportArgumentType] - as the caller got them

    @property
    def over(self) -> bool:
        """Whether it ran out, as opposed to a `TimeoutError` of somebody else's."""
        return self._timer.expired()

    def alive(self) -> None:
        """Note a sign of life: the wait for the next begins anew."""
        if not self._pauses and self._can_move:
            self._timer.reschedule(min(_now() + self._idle, self._ends_at))

    def pause(self) -> None:
        """Stop counting."""
        self._pauses += 1
        if self._pauses == 1 and self._can_move:
            self._left = self._ends_at - _now()
            self._timer.reschedule(None)

    def resume(self) -> None:
        """Count on; silence counts from here."""
        self._pauses -= 1
        if not self._pauses and self._can_move:
            self._run()

    def give_up(self) -> None:
        """Let it be over now, paused or not."""
        if self._can_move:
            self._timer.reschedule(_now())

    @property
    def _can_move(self) -> bool:
        # progress may come late, when the request is over
        return self._entered and not self.over

    def _run(self) -> None:
        self._ends_at = _now() + self._left
        self.alive()


@contextmanager
def person_asked() -> Generator[None]:
    """Stop the clock of the request that this code serves, for as long as somebody is asked."""
    patience = _current.get()
    if patience is None:
        yield
        return
    patience.pause()
    try:
        yield
    finally:
        patience.resume()


def _now() -> float:
    return asyncio.get_running_loop().time()
