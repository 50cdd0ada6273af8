"""The connections of one event loop, and those among them that may be used again."""

import asyncio

from dialoom.net.direct.connection import Connection
from dialoom.net.direct.place import Place

MAX_IDLE = 20
IDLE_SECONDS = 4.0
"""Many servers close after 5 s; whoever closes first is not surprised by the other."""


class Pool:
    """Keeps at most `MAX_IDLE` idle connections, the longest unused of which goes first."""

    def __init__(self) -> None:
        self._all: set[Connection] = set()
        self._idle: dict[Connection, asyncio.TimerHandle] = {}

    def add(self, connection: Connection) -> None:
        """Know a new connection, until its socket is closed."""
        self._all.add(connection)
        connection.closed.add_done_callback(lambda _: self._forget(connection))

    def take(self, place: Place) -> Connection | None:
        """Return the idle connection to `place` that was used last, None when there is none."""
        for connection in reversed([each for each in self._idle if each.place == place]):
            self._idle.pop(connection).cancel()
            if not connection.is_stale():
                return connection
            connection.abort()
        return None

    def give(self, connection: Connection) -> None:
        """Keep a connection for the next request."""
        later = asyncio.get_running_loop().call_later(IDLE_SECONDS, connection.abort)
        self._idle[connection] = later
        if len(self._idle) > MAX_IDLE:
            next(iter(self._idle)).abort()

    async def aclose(self) -> None:
        """Close every connection, also those in use."""
        await asyncio.gather(*(each.aclose() for each in list(self._all)))

    def _forget(self, connection: Connection) -> None:
        self._all.discard(connection)
        timer = self._idle.pop(connection, None)
        if timer is not None:
            timer.cancel()
