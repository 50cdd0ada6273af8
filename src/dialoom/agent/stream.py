"""A turn of an agent while it goes on."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, cast

from dialoom.agent.events import AgentEvent
from dialoom.agent.result import AgentResult
from dialoom.base.errors import UsageError
from dialoom.graph.events import Chunk
from dialoom.graph.result import RunResult
from dialoom.graph.stream import RunStream


class AgentStream:
    """The events of one turn, in order: pieces of the answers, and what the agent does between them.

    Asking for the first one begins the run; one that is read slowly makes it wait. Left early, the run is
    stopped: at once with `async with` or `aclose`, otherwise as soon as the stream is forgotten. In the end
    `result` is what `run` would have returned.
    """

    def __init__(
        self,
        begin: Callable[[], Awaitable[RunStream | AgentResult]],
        end: Callable[[RunResult], Awaitable[AgentResult]],
        abandon: Callable[[str], None],
    ) -> None:
        """Read the run that `begin` begins; `abandon` is told the thread of one not read to its end."""
        self._begin = begin
        self._end = end
        self._abandon = abandon
        self._starting = asyncio.Lock()
        self._closed = False
        self._thread_id: str | None = None
        self._events: RunStream | None = None
        self._result: AgentResult | None = None

    @property
    def result(self) -> AgentResult:
        """How the turn ended. Raises `UsageError` before that."""
        if self._result is None:
            raise UsageError(
                "the agent is not through; read its stream to the end before asking for its result"
            )
        return self._result

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AgentEvent:
        if self._closed or self._result is not None:
            raise StopAsyncIteration
        events = self._events or await self._begun()
        if events is None:
            raise StopAsyncIteration
        async for event in events:
            self._thread_id = event.thread_id
            if isinstance(event, Chunk) and not event.ns:
                return cast("AgentEvent", event.value)
        await self._conclude(events)
        raise StopAsyncIteration

    async def _begun(self) -> RunStream | None:
        """Begin the run once; return what to read, None when nothing will come."""
        async with self._starting:  # two readers at once are readers of one run
            if self._events is None and self._result is None:
                begun = await self._begin()
                if isinstance(begun, AgentResult):
                    self._result = begun
                elif not self._closed:
                    self._events = begun
            return self._events

    async def _conclude(self, events: RunStream) -> None:
        """Keep how the run ended; whoever comes second, a reader or `aclose`, has nothing more to do."""
        if self._result is None:
            self._result = await self._end(events.result)

    async def aclose(self) -> None:
        """Stop the run, if it is not over, and wait for its orderly end; one that never began never will."""
        self._closed = True
        if self._events is None or self._result is not None:
            return
        await self._events.aclose()
        await self._conclude(self._events)

    def __del__(self) -> None:
        if self._thread_id is not None and self._result is None:
            self._abandon(self._thread_id)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
