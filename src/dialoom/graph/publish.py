"""Telling listeners: one at a time, numbered without gaps, nothing after the last word."""

from collections import deque
from collections.abc import Callable, Sequence
from threading import RLock
from typing import TYPE_CHECKING, TypedDict

from dialoom.base.clock import Clock
from dialoom.base.events import Observer, misheard, notify
from dialoom.graph.events import (
    Chunk,
    ErrorEvent,
    GraphEvent,
    InterruptEvent,
    NodeBegin,
    NodeEnd,
    NodeStatus,
    Retry,
    RunBegin,
    RunFinished,
    StepCommitted,
)
from dialoom.graph.frontier import Interrupt
from dialoom.graph.result import NodeError, RunResult

if TYPE_CHECKING:
    from dialoom.graph.mailbox import Mailbox


Emit = Callable[[object], None]
"""Tells a value that one attempt of a node emits."""


class Origin(TypedDict):
    """What every event of one run has in common."""

    run_id: str
    thread_id: str
    ns: tuple[str, ...]


Tell = Callable[[GraphEvent], None]
"""Hands an event on to whoever listens."""
Place = tuple[int, str, int | None]
"""The superstep, the node and the item of a task."""


class Tally:
    """What a run and the subgraphs in it share: one line of numbers, which ends when the run is over."""

    __slots__ = ("lock", "seq", "tell")

    def __init__(self, tell: Tell) -> None:
        self.lock = RLock()  # reentrant: an observer that emits must not lock itself out
        self.seq = 0
        self.tell = tell

    def close(self) -> None:
        """Give no number from now on: so a chunk finds out that it is late without asking each time."""
        del self.seq

    @property
    def over(self) -> bool:
        return not hasattr(self, "seq")


def _closed() -> Tally:
    tally = Tally(lambda _: None)
    tally.close()
    return tally


_CLOSED = _closed()
"""What those tell to that have nothing more to say."""


class Publisher:
    """The events of one run, on their way to its observers and its reader. Safe to call from any thread.

    An observer is called on the thread on which the event happened, never by two threads at once.
    """

    def __init__(
        self,
        origin: Origin,
        observers: Sequence[Observer],
        mailbox: "Mailbox | None",
        *,
        clock: Clock,
        tally: Tally | None = None,
    ) -> None:
        self.mailbox = mailbox
        self._origin = origin
        self._run_id, self._thread_id, self._ns = origin["run_id"], origin["thread_id"], origin["ns"]
        self._observers = observers
        self._clock = clock
        self._tally = tally or Tally(_teller(observers, mailbox))
        self._lock = self._tally.lock
        self._begun: dict[Place, float] = {}
        self._voices: dict[Place, list[Callable[[Tally], None]]] = {}

    def within(self, ns: tuple[str, ...]) -> "Publisher":
        """Return the publisher of a subgraph: its events are numbered with those of the whole run."""
        origin = Origin(run_id=self._origin["run_id"], thread_id=self._origin["thread_id"], ns=ns)
        return Publisher(origin, self._observers, self.mailbox, clock=self._clock, tally=self._tally)

    def run_begin(self, graph: str) -> None:
        self._say(RunBegin, graph=graph)

    def node_begin(self, step: int, node: str, item: int | None = None) -> None:
        place = (step, node, item)
        with self._lock:
            self._begun[place] = self._clock.monotonic()
            self._turn(place, self._tally)
            self._say(NodeBegin, step=step, node=node, item=item)

    def emitter(self, node: str, item: int | None, step: int) -> Emit:
        """Return what tells the values of a task; on a worker thread it first waits for a reader behind.

        Chunks are the one event that comes by the thousand, so all that is the same for all of a task is
        looked up here, and a lone observer is called without a detour. A task that has ended is not heard
        though its code may go on: `speak_to` has turned it to a tally that is closed.
        """
        run_id, thread_id, ns, tally = self._run_id, self._thread_id, self._ns, self._tally
        lock = tally.lock
        observers = self._observers
        is_lone = self.mailbox is None and len(observers) == 1
        tell = observers[0].on_event if is_lone else tally.tell

        def emit(value: object) -> None:
            lock.acquire()
            try:
                tally.seq = seq = tally.seq + 1
                tell(Chunk(run_id, seq, thread_id, step, node, value, ns, item))
            except Exception:  # noqa: BLE001 - seam: the lone observer is foreign code; `notify` guards several
                if not tally.over:
                    misheard(observers[0])
            finally:
                lock.release()

        def speak_to(other: Tally) -> None:
            nonlocal tally
            tally = other

        with self._lock:
            self._voices.setdefault((step, node, item), []).append(speak_to)
        return emit if self.mailbox is None else _patient(emit, self.mailbox)

    async def room(self) -> None:
        """Wait while the reader is behind."""
        if self.mailbox is not None and self.mailbox.full():
            await self.mailbox.room()

    def node_end(self, step: int, node: str, status: NodeStatus, item: int | None = None) -> None:
        """Tell how a node ended; only the first time, so a late word of an abandoned node is not heard."""
        place = (step, node, item)
        with self._lock:
            begun = self._begun.pop(place, None)
            if begun is not None:
                self._turn(place, _CLOSED)
                elapsed = self._clock.monotonic() - begun
                self._say(NodeEnd, step=step, node=node, status=status, elapsed=elapsed, item=item)

    def close_nodes(self, step: int) -> None:
        """End the nodes that were left behind when their superstep was stopped, and hear no more of it."""
        with self._lock:
            for place in [place for place in {**self._begun, **self._voices} if place[0] == step]:
                _, node, item = place
                self.node_end(step, node, "cancelled", item)
                self._turn(place, _CLOSED)
                self._voices.pop(place, None)

    def retry(self, step: int, error: NodeError, *, delay: float, item: int | None) -> None:
        self._say(
            Retry,
            step=step,
            node=error.node,
            attempt=error.attempts,
            delay=delay,
            message=error.message,
            item=item,
        )

    def interrupted(self, step: int, interrupts: Sequence[Interrupt]) -> None:
        for each in interrupts:
            self._say(InterruptEvent, step=step, interrupt=each)

    def step_committed(
        self, step: int, nodes: tuple[str, ...], channels: tuple[str, ...], checkpoint_id: str | None
    ) -> None:
        self._say(StepCommitted, step=step, nodes=nodes, channels=channels, checkpoint_id=checkpoint_id)

    def failed(self, step: int, errors: Sequence[NodeError]) -> None:
        for error in errors:
            self._say(ErrorEvent, step=step, node=error.node, message=error.message)

    def run_finished(self, result: RunResult) -> None:
        tally = self._tally
        with self._lock:
            last = RunFinished(
                **self._origin,
                seq=tally.seq + 1,
                steps=result.steps,
                stop_reason=result.stop_reason,
                checkpoint_id=result.checkpoint_id,
            )
            tally.close()  # before it is told: what an observer says to it is too late
            tally.tell(last)

    def _say(self, kind: Callable[..., GraphEvent], **told: object) -> None:
        """Tell the next event, if the run is not over."""
        tally = self._tally
        with self._lock:
            if not tally.over:
                tally.seq += 1
                tally.tell(kind(**self._origin, seq=tally.seq, **told))

    def _turn(self, place: Place, tally: Tally) -> None:
        """Let what the task at `place` emits from now on go to `tally`."""
        for speak_to in self._voices.get(place, ()):
            speak_to(tally)


def _patient(emit: Emit, mailbox: "Mailbox") -> Emit:
    def emit_with_room(value: object) -> None:
        mailbox.wait_for_room()
        emit(value)

    return emit_with_room


def _teller(observers: Sequence[Observer], mailbox: "Mailbox | None") -> Tell:
    """Return what hands an event on; what an observer says to it goes out once all have heard it."""
    if mailbox is not None and not observers:
        return mailbox.put
    waiting: deque[GraphEvent] = deque()

    def tell(event: GraphEvent) -> None:
        waiting.append(event)
        if len(waiting) > 1:
            return  # an observer is being told, on this thread
        try:
            while waiting:
                notify(observers, waiting[0])
                if mailbox is not None:
                    mailbox.put(waiting[0])
                waiting.popleft()
        finally:
            waiting.clear()  # Ctrl-C in an observer

    return tell
