"""The server's process: listen, serve, and end at once when told to, whatever streams are open."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Literal

import uvicorn

from dialoom.base.errors import StoreError
from dialoom.server.settings import ServerSettings
from dialoom.server.workbench import Workbench

GRACE_SECONDS = 5
"""How long calls that are under way have when the server ends."""
_BACKLOG = 1_024
_OTHER_FILES = 400
"""Open files that are no connections: stores, uploads, tool servers, connections that are being refused."""

_log = logging.getLogger("dialoom.server")


def listen(settings: ServerSettings) -> socket.socket:
    """Return a socket that listens where the settings say. Raises `StoreError` when it cannot."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # inherited by each connection: head and body are two writes, and the second one would wait 40 ms
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found.bind((settings.host.strip("[]"), settings.port))
        found.listen(_BACKLOG)
    except OSError as error:
        found.close()
        reason = (error.strerror or "error").lower()
        raise StoreError(
            f"cannot listen at {settings.host}:{settings.port} ({reason}); choose another --port"
        ) from error
    return found


async def serve(
    workbench: Workbench,
    listening: socket.socket,
    *,
    ready: Callable[[], None],
    ending: Sequence[Callable[[], None]] = (),
) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is called when calls are answered.

    `ending` is called when the server is told to end: it lets go of streams that are not the workbench's own.
    """
    config = uvicorn.Config(
        workbench.app,
        log_level="error",  # what strangers send wrongly is no news
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        lifespan="on",
        ws="none",
        http=_protocol(),
        h11_max_incomplete_event_size=65_536,
        limit_concurrency=room_for(workbench.settings.max_connections) + 1,
    )
    server = _Server(config, ready, (workbench.hub.close, *ending))
    await server.serve(sockets=[listening])


def room_for(connections: int) -> int:
    """Return how many connections the process may hold, raising its own limit of open files as it can."""
    try:
        import resource
    except ImportError:  # not on every platform
        return connections
    wanted = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft < wanted:
            _log.warning(
                "fewer connections are taken than were set: the system has no more open files for us"
            )
    return connections if soft == resource.RLIM_INFINITY else max(1, min(connections, soft - _OTHER_FILES))


def _protocol() -> type[asyncio.Protocol] | Literal["h11"]:
    """Return what reads requests, within bounds: httptools is not on every platform, h11 is."""
    try:
        from dialoom.server.bounded_http import BoundedHttp
    except ImportError:
        return "h11"
    return BoundedHttp


class _Server(uvicorn.Server):
    """uvicorn waits for open streams when it is told to end; this closes them first."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], ending: Sequence[Callable[[], None]]
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._ending = ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """End on SIGTERM and SIGINT, and return: whoever called closes its stores then."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, number)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def _end(self, number: int) -> None:
        for each in self._ending:
            each()
        self.handle_exit(number, None)
