"""What one task remembers over its attempts and over restarts: answers, and effects that happened."""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from threading import Event, Lock, get_ident
from typing import Any, NamedTuple, NoReturn, TypeVar, cast, get_origin

import msgspec

from dialoom.base.cancel import Cancelled
from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.graph.errors import Interrupted
from dialoom.graph.frontier import ChildNote, Interrupt, TaskNote
from dialoom.graph.frozen import freeze

T = TypeVar("T")
MAX_REASON = 300


class Flight(NamedTuple):
    """An effect that is under way, on a thread and perhaps in a task there."""

    thread: int
    task: object | None
    landed: Event

    def waits_for(self, task: object | None) -> bool:
        """Whether it cannot land before `task`, or this thread, goes on."""
        return self.thread == get_ident() if task is None else self.task is task


class Memo:
    """The note of a task that runs, as its node adds to it.

    `keep` makes it durable, from any thread; `blocking` says that it may wait.
    """

    def __init__(
        self, note: TaskNote, *, ns: tuple[str, ...], keep: Callable[[], None], blocking: bool
    ) -> None:
        self.answers = dict(note.answers)
        self.child = note.child
        self.blocking = blocking
        self._node = note.node
        self._item = note.item
        self._once = dict(note.once)
        self._questions: tuple[Interrupt, ...] = ()
        self._ns = ns
        self._keep = keep
        self._lock = Lock()
        self._flights: dict[str, Flight] = {}
        self._attempt = 0
        self._asked = 0
        self._closed = False

    def note(self) -> TaskNote:
        with self._lock:
            return TaskNote(
                node=self._node,
                item=self._item,
                answers=tuple(self.answers.items()),
                once=tuple(self._once.items()),
                questions=self._questions,
                child=self.child,
            )

    def close(self) -> None:
        """Take nothing more: the superstep of the task is over."""
        with self._lock:
            self._closed = True

    def ask(self, payload: object, *, attempt: int, key: str | None, schema: object | None) -> Any:
        """Return the answer to the next question of `attempt`, or to that named `key`.

        Raises Interrupted when there is none yet or it does not fit `schema`.
        """
        if attempt != self._attempt:
            self._attempt, self._asked = attempt, 0
        if key is None:
            self._asked += 1
        label = str(self._asked) if key is None else key
        refused = ""
        if label in self.answers:
            try:
                return _fitting(self.answers[label], schema)
            except Exception as error:  # noqa: BLE001 - seam: a schema is foreign code
                del self.answers[label]
                refused = one_line(f"the answer does not fit: {error}", MAX_REASON)
        question = Interrupt(
            id=self._id(label),
            node=self._node,
            payload=freeze(payload),
            item=self._item,
            ns=self._ns,
            label=label,
            refused=refused,
        )
        self._questions = (question,)
        raise Interrupted(question.id)

    def pass_on(self, questions: tuple[Interrupt, ...]) -> NoReturn:
        """Pause for the questions of a subgraph. Raises Interrupted."""
        self._questions = questions
        raise Interrupted(questions[0].id)

    def once(self, key: str, effect: Callable[[], T]) -> T:
        while (flight := self._taken_off(key, None)) is not None:
            flight.wait()  # of an attempt that was left behind: its effect is this one's, unless it failed
        if key in self._once:
            return cast("T", self._once[key])
        with self._landing(key):
            value = self._remember(key, effect())
        self._keep()
        return value

    async def aonce(self, key: str, effect: Callable[[], Awaitable[T]]) -> T:
        import asyncio  # there already, or nothing here could wait

        while (flight := self._taken_off(key, asyncio.current_task())) is not None:
            await asyncio.to_thread(flight.wait)
        if key in self._once:
            return cast("T", self._once[key])
        with self._landing(key):
            value = self._remember(key, await effect())
        if self.blocking:
            await asyncio.to_thread(self._keep)
        else:
            self._keep()
        return value

    def _taken_off(self, key: str, task: object | None) -> Event | None:
        """Return what is set when the effect `key`, which is under way, has landed.

        None when it has happened, and also when the caller is to have it happen, which is noted.
        """
        with self._lock:
            if key in self._once:
                return None
            self._refuse_when_over()
            flight = self._flights.get(key)
            if flight is None:
                self._flights[key] = Flight(get_ident(), task, Event())
                return None
        if flight.waits_for(task):
            raise UsageError(f"the effect {key!r} of node {self._node!r} asks for itself; use another key")
        return flight.landed

    @contextmanager
    def _landing(self, key: str) -> Generator[None]:
        try:
            yield
        finally:
            with self._lock:
                self._flights.pop(key).landed.set()

    def stand(self, child: ChildNote) -> None:
        """Keep where the subgraph of the task stands."""
        with self._lock:
            self._refuse_when_over()
            self.child = child
        self._keep()

    def _remember(self, key: str, value: T) -> T:
        with self._lock:
            self._refuse_when_over()
            self._once[key] = freeze(value)
            return cast("T", self._once[key])

    def _refuse_when_over(self) -> None:
        if self._closed:
            raise Cancelled

    def _id(self, label: str) -> str:
        at = "" if self._item is None else f"[{self._item}]"
        return "/".join((*self._ns, f"{self._node}{at}#{label}"))


def _fitting(answer: Any, schema: object) -> Any:
    if schema is None:
        return answer
    # list[int] can be called too, but is a type
    if callable(schema) and not isinstance(schema, type) and get_origin(schema) is None:
        return schema(answer)
    return msgspec.convert(answer, cast("type[Any]", schema))
