"""Reading a run while it goes on."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import get_ident
from typing import Generic, TypeVar

from dialoom.base.errors import UsageError
from dialoom.graph.events import GraphEvent
from dialoom.graph.loops import post
from dialoom.graph.mailbox import Mailbox
from dialoom.graph.on_loop import carry_on_loop
from dialoom.graph.portal import the_portal
from dialoom.graph.result import RunResult
from dialoom.graph.run import Run
from dialoom.graph.threads import node_pool

MakeRun = Callable[[Mailbox], Run]
Carried = TypeVar("Carried", "asyncio.Task[RunResult]", "Future[RunResult]")


class _Live(Generic[Carried]):
    """A run that has begun, and where its events come out."""

    def __init__(self, run: Run, mailbox: Mailbox, carried: Carried) -> None:
        self.run = run
        self.mailbox = mailbox
        self.carried = carried

    def result(self) -> RunResult:
        if not self.carried.done():
            raise _not_over()
        return self.carried.result()


class RunStream:
    """The events of one run, in order: `async for event in stream`. Asking for the first one begins the run.

    At most `buffer` events wait; beyond that the run waits for its reader. A reader that stops early stops
    the run: at once with `async with` or `aclose`, otherwise as soon as the stream is forgotten. In the end
    `result` is what `run` would have returned; what `run` raises is raised to the reader.
    """

    def __init__(self, make_run: MakeRun, buffer: int) -> None:
        self._live: _Live[asyncio.Task[RunResult]] | None = None
        self._make_run = make_run
        self._buffer = _checked(buffer)

    @property
    def result(self) -> RunResult:
        """How the run ended. Raises UsageError before that."""
        if self._live is None:
            raise _not_over()
        return self._live.result()

    def __aiter__(self) -> "RunStream":
        return self

    async def __anext__(self) -> GraphEvent:
        if self._live is not None and (event := self._live.mailbox.next()) is not None:
            return event
        if self._live is None:
            self._live = self._begin()
        try:
            event = await self._live.mailbox.atake()
        except asyncio.CancelledError:
            await self.aclose()
            raise
        if event is None:
            await self._live.carried
            raise StopAsyncIteration
        return event

    async def aclose(self) -> None:
        """Stop the run, if it is not over, and wait for its orderly end."""
        if self._live is None or self._live.carried.done():
            return
        self._live.run.stop.cancel()
        await asyncio.wait({self._live.carried})

    async def __aenter__(self) -> "RunStream":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if self._live is not None and not self._live.carried.done():
            post(self._live.carried.get_loop(), self._live.run.stop.cancel)

    def _begin(self) -> "_Live[asyncio.Task[RunResult]]":
        mailbox = Mailbox(self._buffer, loop_thread=get_ident())
        run = self._make_run(mailbox)
        # owned by this stream, which waits for it in aclose
        task = asyncio.get_running_loop().create_task(_carry(run, mailbox))
        return _Live(run, mailbox, task)


class SyncRunStream:
    """`RunStream` for code without an event loop: `for event in stream`. The run is on a background loop."""

    def __init__(self, make_run: MakeRun, buffer: int) -> None:
        self._live: _Live[Future[RunResult]] | None = None
        self._make_run = make_run
        self._buffer = _checked(buffer)

    @property
    def result(self) -> RunResult:
        """How the run ended. Raises UsageError before that."""
        if self._live is None:
            raise _not_over()
        return self._live.result()

    def __iter__(self) -> "SyncRunStream":
        return self

    def __next__(self) -> GraphEvent:
        if self._live is None:
            self._live = self._begin()
        try:
            with node_pool().lending():
                event = self._live.mailbox.take()
        except BaseException:
            self.close()
            raise
        if event is None:
            self._live.carried.result()
            raise StopIteration
        return event

    def close(self) -> None:
        """Stop the run, if it is not over, and wait for its orderly end."""
        if self._live is None or self._live.carried.done():
            return
        self._live.run.stop.cancel()
        wait([self._live.carried])

    def __enter__(self) -> "SyncRunStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._live is not None and not self._live.carried.done():
            post(the_portal().loop, self._live.run.stop.cancel)

    def _begin(self) -> "_Live[Future[RunResult]]":
        portal = the_portal()
        portal.refuse_own_thread()
        mailbox = Mailbox(self._buffer, loop_thread=portal.thread_id)
        run = self._make_run(mailbox)
        return _Live(run, mailbox, portal.start(_carry(run, mailbox)))


async def _carry(run: Run, mailbox: Mailbox) -> RunResult:
    forget = run.stop.add_callback(mailbox.let_go)
    try:
        return await carry_on_loop(lambda: run)
    finally:
        forget()
        mailbox.close()


def _checked(buffer: int) -> int:
    if buffer < 1:
        raise UsageError(f"buffer is {buffer}; give 1 or more events")
    return buffer


def _not_over() -> UsageError:
    return UsageError("the stream is not over; read it to its end, or close it, before asking for its result")
