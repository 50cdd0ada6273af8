"""Events on their way from a run to its reader: in order, bounded, and nobody waits once it is over."""

import asyncio
from collections import deque
from collections.abc import Callable
from threading import Event as Flag
from threading import Lock, get_ident
from typing import Final

from dialoom.base.errors import UsageError
from dialoom.graph.events import GraphEvent
from dialoom.graph.loops import post, resolve

HARD_LIMIT: Final = 65_536


class Mailbox:
    """Between a run on the event loop of `loop_thread` and its reader, there (`atake`) or elsewhere (`take`).

    `put` never waits: a writer waits before it, with `room` on that loop and `wait_for_room` on any other
    thread. Code on the loop that cannot wait may run ahead to `HARD_LIMIT` events.

    The events are in a deque, whose ends are safe to use from any thread. Who waits says so first and then
    looks once more, so whoever changes something and then finds nobody waiting has nobody to wake.
    """

    def __init__(self, size: int, *, loop_thread: int) -> None:
        self._size = size
        self._low = size // 2
        self._events: deque[GraphEvent] = deque()
        self._lock = Lock()
        self._readers: list[Callable[[], None]] = []
        self._writers: list[Callable[[], None]] = []
        self._unbounded = False
        self._closed = False
        self._loop_thread = loop_thread

    def full(self) -> bool:
        """Whether a writer should wait."""
        return len(self._events) >= self._size and not self._unbounded

    def put(self, event: GraphEvent) -> None:
        self._events.append(event)
        if self._readers:
            self._wake_readers()

    def let_go(self) -> None:
        """Let no writer wait from now on: the run is asked to stop and must not hang on its reader."""
        self._unbounded = True
        self._wake_writers()

    def close(self) -> None:
        """Say that no event follows."""
        self._closed = True
        self._wake_readers()

    def next(self) -> GraphEvent | None:
        """Return the next event, None when there is none yet."""
        event = self._events.popleft() if self._events else None
        if self._writers and len(self._events) <= self._low:
            # not at every event: a writer that wakes for one place would only wait again
            self._wake_writers()
        return event

    async def atake(self) -> GraphEvent | None:
        """Return the next event, None when there will be none."""
        while (event := self.next()) is None and not self._drained():
            await self._pause(self._readers_wait)
        return event

    def take(self) -> GraphEvent | None:
        """Return the next event, None when there will be none; blocks the thread until one is known."""
        while (event := self.next()) is None and not self._drained():
            self._block(self._readers_wait)
        return event

    async def room(self) -> None:
        """Wait on the loop until there is room."""
        while self.full():
            await self._pause(self._writers_wait)

    def wait_for_room(self) -> None:
        """Block a worker thread until there is room; on the loop, refuse to pass the limit."""
        if get_ident() == self._loop_thread:
            if len(self._events) >= HARD_LIMIT:
                raise UsageError(
                    f"the reader of this stream is {HARD_LIMIT} events behind; "
                    "a node awaits ctx.aemit(value), a tool emits less often"
                )
            return
        while self.full():
            self._block(self._writers_wait)

    def _drained(self) -> bool:
        return self._closed and not self._events

    def _wake_readers(self) -> None:
        with self._lock:
            readers, self._readers = self._readers, []
        for wake in readers:
            wake()

    def _wake_writers(self) -> None:
        with self._lock:
            writers, self._writers = self._writers, []
        for wake in writers:
            wake()

    def _readers_wait(self, wake: Callable[[], None]) -> bool:
        with self._lock:
            self._readers.append(wake)
        return not (self._events or self._closed)

    def _writers_wait(self, wake: Callable[[], None]) -> bool:
        with self._lock:
            self._writers.append(wake)
        return self.full()

    async def _pause(self, register: Callable[[Callable[[], None]], bool]) -> None:
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if get_ident() == self._loop_thread:
                resolve(woken)
            else:
                post(loop, lambda: resolve(woken))

        if register(wake):
            await woken

    def _block(self, register: Callable[[Callable[[], None]], bool]) -> None:
        woken = Flag()
        if register(woken.set):
            woken.wait()
