"""One event loop on a thread of its own, for runs that need a loop and were asked for without one."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from threading import Lock, Thread, get_ident
from typing import Any, TypeVar

from dialoom.base.errors import UsageError
from dialoom.graph.forks import in_forked_child
from dialoom.graph.threads import node_pool

T = TypeVar("T")


class Portal:
    """Runs coroutines on a background loop; the caller's context variables are theirs too."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._serve, name="dialoom-portal", daemon=True)
        self._thread.start()

    @property
    def thread_id(self) -> int:
        ident = self._thread.ident
        assert ident is not None, "it was started when it was made"
        return ident

    def start(self, coroutine: Coroutine[Any, Any, T]) -> "Future[T]":
        """Set `coroutine` going and return at once."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def run(self, coroutine: Coroutine[Any, Any, T], stop: Callable[[], object]) -> T:
        """Return what `coroutine` returns; on Ctrl-C, call `stop` and wait for the orderly end first."""
        self.refuse_own_thread(coroutine)
        future = self.start(coroutine)
        with node_pool().lending():
            try:
                return future.result()
            except BaseException:
                stop()
                wait([future])
                raise

    def refuse_own_thread(self, coroutine: Coroutine[Any, Any, Any] | None = None) -> None:
        """Raise UsageError when the calling thread is the loop's own: waiting there would be for ever."""
        if get_ident() != self.thread_id:
            return
        if coroutine is not None:
            coroutine.close()
        raise UsageError("an async node cannot use run_sync or stream_sync; await run, or iterate stream")

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        while True:
            try:
                self.loop.run_forever()
            except BaseException:  # noqa: BLE001, S112 - an exit asked for by a node is its caller's, not the loop's
                continue


class _Shared:
    lock = Lock()
    portal: Portal | None = None


def the_portal() -> Portal:
    """Return the portal of this process."""
    with _Shared.lock:
        if _Shared.portal is None:
            _Shared.portal = Portal()
        return _Shared.portal


def _start_over() -> None:
    _Shared.lock = Lock()
    _Shared.portal = None


in_forked_child(_start_over)
