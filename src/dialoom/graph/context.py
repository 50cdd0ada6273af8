"""What a node is given: the state before its superstep, and the few things it may do meanwhile."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.base.clock import Clock
from dialoom.graph.channels import Channel
from dialoom.graph.memo import Memo
from dialoom.graph.options import RunOptions
from dialoom.graph.publish import Emit, Publisher
from dialoom.graph.state import State
from dialoom.graph.timeout import Timeout

T = TypeVar("T")


class Nest(msgspec.Struct, frozen=True):
    """What a run inside a node takes from the run around it, whose `channels` it writes to in the end.

    `remaining` is in seconds, None for no deadline; `heartbeat` is a sign of life of the node.
    """

    memo: Memo
    scope: CancelScope
    publisher: Publisher | None
    ns: tuple[str, ...]
    channels: Mapping[str, Channel]
    options: RunOptions
    clock: Clock
    remaining: float | None
    heartbeat: Callable[[], None]


class RunHandle(Protocol):
    """The run behind a context."""

    run_id: str
    thread_id: str
    deps: Any

    def stop_requested(self) -> bool: ...
    def raise_if_stopped(self) -> None: ...
    async def aemit(self, emit: Emit, value: object) -> None: ...
    def memo(self, context: "NodeContext") -> Memo: ...
    def nest(self, context: "NodeContext") -> Nest: ...
    def heartbeat(self) -> None: ...
    def orphaned(self) -> None: ...


class NodeContext(msgspec.Struct, frozen=True, eq=False):  # a Struct because every attempt makes one
    """One attempt of one node.

    `state` is the state before this superstep and stays that for as long as the context lives. `step`
    counts the supersteps of this run from 1. `deps` is the object given as `RunOptions.deps`, None without.
    `input` is what a Send brought, or the item of a map, and `item` its number; None for other tasks.
    `attempt` counts the tries of this node in this superstep from 1.

    `emit(value)` shows a value to whoever listens to the run, at once; without a listener it costs next to
    nothing. From a worker thread it waits while the reader of a stream is behind. On an event loop it cannot
    wait: use `aemit` in an async node. It raises UsageError there when the reader falls too far behind.
    """

    _run: RunHandle
    node: str
    state: State
    step: int
    emit: Emit
    input: Any = None
    item: int | None = None
    attempt: int = 1

    def __repr__(self) -> str:
        return f"<NodeContext {self.node!r} step {self.step}>"

    @property
    def run_id(self) -> str:
        return self._run.run_id

    @property
    def thread_id(self) -> str:
        return self._run.thread_id

    @property
    def deps(self) -> Any:
        return self._run.deps

    @property
    def stop_requested(self) -> bool:
        """Whether the run was asked to stop or its time is over; a long node looks at it now and then."""
        return self._run.stop_requested()

    def raise_if_stopped(self) -> None:
        """Leave the node when a stop was requested; the node then runs again when the thread is resumed."""
        self._run.raise_if_stopped()

    def aemit(self, value: object) -> Coroutine[Any, Any, None]:
        """Show `value` to whoever listens to the run, waiting while the reader of a stream is behind."""
        return self._run.aemit(self.emit, value)

    def heartbeat(self) -> None:
        """Give a sign of life, for a node with an idle timeout."""
        self._run.heartbeat()

    def interrupt(self, payload: object, *, key: str | None = None, schema: object | None = None) -> Any:
        """Pause the run until `payload` is answered from outside, and return the answer.

        The first time this raises `Interrupted`, which is no Exception: let it pass. Once resumed with an
        answer the node runs again from its first line, and here the answer is returned. The n-th call gets
        the n-th answer; a `key` names the question where their order may change. An answer that does not
        fit `schema`, a type or a function that raises or converts, is asked for again.
        """
        return self._run.memo(self).ask(payload, attempt=self.attempt, key=key, schema=schema)

    @property
    def has_resume(self) -> bool:
        """Whether this task was paused and has been given an answer."""
        return bool(self._run.memo(self).answers)

    @property
    def resume_value(self) -> Any:
        """The newest answer this task was given, None before the first."""
        answers = self._run.memo(self).answers
        return answers[next(reversed(answers))] if answers else None

    def once(self, key: str, effect: Callable[[], T]) -> T:
        """Return what `effect()` returned the first time; it is not called again when this task runs again.

        With a store the value is durable before this returns, so it must be one that can be stored. Only two
        things can repeat it: a crash between the effect and that moment, and a stop of the run, or a time
        limit of the node without another attempt, that leaves the effect behind while it is under way. In an
        async node use `aonce`: it does not hold up the event loop.
        """
        return self._run.memo(self).once(key, effect)

    async def aonce(self, key: str, effect: Callable[[], Awaitable[T]]) -> T:
        """`once`, for an async effect."""
        return await self._run.memo(self).aonce(key, effect)

    def nest(self) -> Nest:
        """Return what a run inside this node stands on: it is stopped, told and kept with this one."""
        return self._run.nest(self)

    def for_attempt(self, attempt: int) -> "NodeContext":
        """Return the context of another try."""
        return msgspec.structs.replace(self, attempt=attempt)

    def leashed(self, timeout: Timeout, now: Callable[[], float]) -> "tuple[NodeContext, Leash]":
        """Return this context for code that may be left behind, and what to end it with.

        `now` returns seconds from any point.
        """
        leash = Leash(self._run, timeout, now)
        return msgspec.structs.replace(self, _run=leash, emit=leash.emitting(self.emit)), leash


class Leash:
    """The run, for one attempt with a deadline: when that is over it is asked to stop and heard no more."""

    def __init__(self, run: RunHandle, timeout: Timeout, now: Callable[[], float]) -> None:
        self._run = run
        self._timeout = timeout
        self._now = now
        self._begun = self._alive = now()
        self._over = False
        self._scopes: list[CancelScope] = []
        self.run_id = run.run_id
        self.thread_id = run.thread_id
        self.deps = run.deps

    def left(self) -> float:
        """Seconds until the attempt is overdue, 0 when it is."""
        due = min(self._begun + self._timeout.total, self._alive + self._timeout.idle)
        return max(0.0, due - self._now())

    def overdue(self) -> str:
        """Say what the attempt took too long for."""
        if self._begun + self._timeout.total <= self._now():
            return f"it took longer than its timeout of {self._timeout.total:g} seconds"
        return f"it gave no sign of life for its idle timeout of {self._timeout.idle:g} seconds"

    def heartbeat(self) -> None:
        self._alive = self._now()
        self._run.heartbeat()

    def end(self) -> None:
        """Say that nobody waits for the attempt any more; runs inside it are stopped."""
        self._over = True
        for scope in self._scopes:
            scope.cancel("timeout")
            scope.close()

    def orphaned(self) -> None:
        """`end`, and count the attempt as one that still runs."""
        self.end()
        self._run.orphaned()

    def stop_requested(self) -> bool:
        return self._over or self._run.stop_requested()

    def raise_if_stopped(self) -> None:
        if self._over:
            raise Cancelled("timeout")
        self._run.raise_if_stopped()

    def emitting(self, emit: Emit) -> Emit:
        """Return `emit`, as a sign of life, and silent when the attempt is over."""

        def emit_until_over(value: object) -> None:
            if not self._over:
                self.heartbeat()
                emit(value)

        return emit_until_over

    async def aemit(self, emit: Emit, value: object) -> None:
        if not self._over:
            await self._run.aemit(emit, value)
            self.heartbeat()  # to wait for a slow reader is no idling

    def memo(self, context: NodeContext) -> Memo:
        self.raise_if_stopped()
        return self._run.memo(context)

    def nest(self, context: NodeContext) -> Nest:
        self.raise_if_stopped()
        nest = self._run.nest(context)
        scope = CancelScope(nest.scope)
        self._scopes.append(scope)
        return msgspec.structs.replace(nest, scope=scope, heartbeat=self.heartbeat)
