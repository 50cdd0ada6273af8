"""A run that was started: wait for it, read its events, or stop it."""

import asyncio
from collections.abc import Generator

from dialoom.base.cancel import CancelScope
from dialoom.dialog.events import DialogEvent, RunFailed, RunFinished
from dialoom.dialog.feed import Feed
from dialoom.dialog.result import DialogResult


class RunHandle:
    """`await handle` gives the `DialogResult`, `async for event in handle` the events, `cancel` stops it.

    Awaiting and reading only look on: whoever gives up on them leaves the run going.
    """

    def __init__(self, run_id: str, scope: CancelScope) -> None:
        self.run_id = run_id
        self._scope = scope
        self._feeds: list[Feed] = []
        self._last: DialogEvent | None = None
        self._ended: asyncio.Future[DialogResult] = asyncio.get_running_loop().create_future()

    @property
    def done(self) -> bool:
        return self._ended.done()

    def cancel(self) -> None:
        """Stop the run; what was said so far is kept and marked. Does nothing when it is over."""
        self._scope.cancel()

    def __await__(self) -> Generator[object, None, DialogResult]:
        return asyncio.shield(self._ended).__await__()

    def __aiter__(self) -> Feed:
        """Return the events from now on; when the run is over, its last one."""
        feed = Feed()
        if self._last is None:
            self._feeds.append(feed)
        else:
            feed.put(self._last)
        return feed

    def put(self, event: DialogEvent) -> None:
        """Pass `event` on to all who read."""
        if isinstance(event, RunFinished | RunFailed):
            self._last = event
        for feed in self._feeds:
            feed.put(event)

    def end(self, result: DialogResult) -> None:
        """Say how the run ended."""
        self._feeds.clear()
        if not self._ended.done():
            self._ended.set_result(result)
