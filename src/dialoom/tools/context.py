"""What a tool is given besides its arguments: who calls, for whom, and whether to stop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import Lock, get_ident
from typing import Any, Final, Protocol, TypeVar, cast, get_origin

import msgspec

from dialoom.base.cancel import CancelScope
from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import UsageError
from dialoom.base.ids import new_id
from dialoom.base.text import one_line

T = TypeVar("T")

_log = logging.getLogger("dialoom.tools")

MAX_REFUSAL: Final = 300
MAX_UNSEEN: Final = 1000
"""So many notices of one call may wait for the event loop; what comes on top is dropped."""


class Progress(msgspec.Struct, frozen=True):
    """A sign of life of one tool call; `value` is the tool's own."""

    call_id: str
    tool: str
    value: object


class Journal(Protocol):
    """What remembers for one call over restarts, and can ask people; an agent lends it to its tools.

    `ask` returns the answer to the question `key` once there is one; `refused` says what was wrong with the
    answer to the question before, of which this is a repetition.
    """

    def once(self, key: str, effect: Callable[[], T]) -> T: ...
    async def aonce(self, key: str, effect: Callable[[], Awaitable[T]]) -> T: ...
    def ask(self, payload: object, *, key: str, refused: str) -> Any: ...


class ToolRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run that calls tools, and what it lends them."""

    run_id: str = msgspec.field(default_factory=new_id)
    cancel: CancelScope = msgspec.field(default_factory=CancelScope)
    """Cancelling it ends every call of the run."""
    deps: Any = None
    """Whatever the tools of this program need, such as a database."""
    on_progress: Callable[[Progress], None] | None = None
    """Called on the event loop's thread, also for tools that run on another; must not block."""
    clock: Clock = SYSTEM_CLOCK
    journal: Journal | None = None
    """Of the one call this run is for; None where nothing outlives the call."""


class ToolContext:
    """One try of one tool call. A tool asks for it with a parameter of this type; models never see that."""

    def __init__(self, run: ToolRun, *, call_id: str, tool_name: str) -> None:
        self._run = run
        self.call_id = call_id
        self.tool_name = tool_name
        self.cancel = CancelScope(run.cancel)
        self._loop = _running_loop()
        self._thread = get_ident()
        self._lock = Lock()
        self._unseen = 0
        self._misheard = False
        self._questions = 0

    @property
    def run_id(self) -> str:
        return self._run.run_id

    @property
    def deps(self) -> Any:
        """The object given as `ToolRun.deps`."""
        return self._run.deps

    @property
    def stop_requested(self) -> bool:
        """Whether the call was cancelled or its time is over; a long tool looks now and then and returns."""
        return self.cancel.cancelled

    def raise_if_stopped(self) -> None:
        """Leave the tool when a stop was requested."""
        self.cancel.raise_if_cancelled()

    def emit(self, value: object) -> None:
        """Show progress to whoever listens to the run. A call that was given up shows nothing any more.

        What a listener fails at, because it is too far behind say, is dropped; the log has the first time.
        """
        if self._run.on_progress is None or self.stop_requested:
            return
        if self._loop is None or get_ident() == self._thread:
            self._show(value)
            return
        with self._lock:
            if self._unseen >= MAX_UNSEEN:
                return
            self._unseen += 1
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(self._show_queued, value)

    def once(self, key: str, effect: Callable[[], T]) -> T:
        """Return what `effect()` returned the first time, also when a restart runs this call again.

        Where the agent has a store, the value is durable before this returns: only a crash between the effect
        and that moment can repeat it. Keys count within the call. A coroutine uses `aonce`.
        """
        journal = self._run.journal
        return effect() if journal is None else journal.once(key, effect)

    async def aonce(self, key: str, effect: Callable[[], Awaitable[T]]) -> T:
        """`once`, for an async effect."""
        journal = self._run.journal
        return await effect() if journal is None else await journal.aonce(key, effect)

    def ask(self, payload: object, *, key: str | None = None, schema: object | None = None) -> Any:
        """Pause the agent until a person answered `payload`, and return the answer.

        The first time this raises `Interrupted`, which is no Exception: let it pass. Once answered, the tool
        runs again from its first line and here the answer is returned. The n-th question of a call gets the
        n-th answer; a `key` names a question where their order may change. An answer that does not fit
        `schema`, a type or a function that raises or converts, is asked for again. Raises `UsageError` where
        the tool is run by nobody who could ask.
        """
        self.raise_if_stopped()
        journal, refused, asked = self._run.journal, "", 0
        if key is None:
            self._questions += 1
            key = str(self._questions)
        if journal is None:
            raise UsageError(
                f"tool {self.tool_name!r} asks, but nobody can be asked here; run it by an agent"
            )
        while True:
            asked += 1  # a question of its own each time, so that what was refused stays answered
            answer = journal.ask(payload, key=f"{key}/{asked}", refused=refused)
            try:
                return _fitting(answer, schema)
            except Exception as error:  # noqa: BLE001 - seam: a schema is foreign code
                refused = one_line(f"the answer does not fit: {error}", MAX_REFUSAL)

    def close(self) -> None:
        """Stop following the run; whoever made the context calls this when the call is over."""
        self.cancel.close()

    def _show_queued(self, value: object) -> None:
        with self._lock:
            self._unseen -= 1
        if not self.stop_requested:
            self._show(value)

    def _show(self, value: object) -> None:
        assert self._run.on_progress is not None
        try:
            self._run.on_progress(Progress(self.call_id, self.tool_name, value))
        except Exception:  # noqa: BLE001 - seam: foreign code listens here
            if not self._misheard:  # a listener that is behind fails at each notice of a flood
                _log.exception("progress listener failed", extra={"tool": self.tool_name})
            self._misheard = True


def _fitting(answer: Any, schema: object | None) -> Any:
    if schema is None:
        return answer
    # list[int] can be called too, but is a type
    if callable(schema) and not isinstance(schema, type) and get_origin(schema) is None:
        return schema(answer)
    return msgspec.convert(answer, cast("type[Any]", schema))


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
