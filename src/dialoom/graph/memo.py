"""What one task remembers over its attempts and over restarts: answers, and effects that happened."""

from collections.abc import Awaitable, Callable
from threading import Lock
from typing import Any, NoReturn, TypeVar, cast, get_origin

import msgspec

from dialoom.base.cancel import Cancelled
from dialoom.base.text import one_line
from dialoom.graph.errors import Interrupted
from dialoom.graph.frontier import ChildNote, Interrupt, TaskNote
from dialoom.graph.frozen import freeze

T = TypeVar("T")
MAX_REASON = 300


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
        if key in self._once:
            return cast("T", self._once[key])
        self._refuse_when_over()
        value = self._remember(key, effect())
        self._keep()
        return value

    async def aonce(self, key: str, effect: Callable[[], Awaitable[T]]) -> T:
        import asyncio  # there already, or nothing here could wait

        if key in self._once:
            return cast("T", self._once[key])
        self._refuse_when_over()
        value = self._remember(key, await effect())
        if self.blocking:
            await asyncio.to_thread(self._keep)
        else:
            self._keep()
        return value

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
