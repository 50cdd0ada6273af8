"""Where a thread stands: what runs next, what waits, and what those that wait have already. Plain data."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from dialoom.graph.names import START
from dialoom.graph.ops import Op


class Send(msgspec.Struct, frozen=True):
    """A task of its own: `node` runs with `input` as `ctx.input`, once for each Send.

    `item` tells the tasks of one node apart; the engine counts it from 0.
    """

    node: str
    input: Any = None
    item: int | None = None


class Interrupt(msgspec.Struct, frozen=True, kw_only=True):
    """A question a paused node waits to have answered. `id` is readable, as in `ns/node[item]#1`.

    `label` is its key or number within the task. `refused` says what was wrong with the last answer, "" when
    there was none.
    """

    id: str
    node: str
    payload: Any
    label: str
    item: int | None = None
    ns: tuple[str, ...] = ()
    refused: str = ""


class TaskNote(msgspec.Struct, frozen=True, kw_only=True):
    """What a task that will run again has already.

    `answers` and `once` pair a key with the value its question or its effect came to. While there are
    `questions` the task does not run. `results` are of the items of a map that are through, by index.
    `child` is where its subgraph stands. The first `kept` of `once` are in the checkpoint before too.
    """

    node: str
    item: int | None = None
    answers: tuple[tuple[str, Any], ...] = ()
    once: tuple[tuple[str, Any], ...] = ()
    questions: tuple[Interrupt, ...] = ()
    results: tuple[tuple[int, Any], ...] = ()
    child: "ChildNote | None" = None
    kept: int = 0

    @property
    def says_anything(self) -> bool:
        return bool(self.answers or self.once or self.questions or self.results or self.child is not None)


class ChildNote(msgspec.Struct, frozen=True, kw_only=True):
    """Where the subgraph of a task stands.

    `touched` are the channels it has written to. `given` has, of what it began with, the lengths of logs and
    the values that a reducer needs to tell what was added. `version` counts its supersteps over all runs.
    When it `follows` what the checkpoint before says of it, `ops` lead from there to `state`.
    """

    state: Mapping[str, Any]
    frontier: "Frontier"
    touched: tuple[str, ...] = ()
    given: tuple[tuple[str, Any], ...] = ()
    version: int = 0
    ops: tuple[Op, ...] = ()
    follows: bool = False


class JoinCount(msgspec.Struct, frozen=True):
    """Who has arrived at the join before `target`. `fired`: it ran already and takes the others silently."""

    target: str
    arrived: tuple[str, ...]
    fired: bool = False


class Frontier(msgspec.Struct, frozen=True):
    """Where a thread stands: what runs next.

    `ready` and `sends` run in the next superstep. What is `deferred` was reached by nodes that did finish
    and waits for those that did not. `unrouted` finished, but its conditional edge gave no usable answer and
    is asked again. `joins` wait for more arrivals, `notes` belong to tasks that run again.
    """

    ready: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()
    unrouted: tuple[str, ...] = ()
    sends: tuple[Send, ...] = ()
    deferred_sends: tuple[Send, ...] = ()
    joins: tuple[JoinCount, ...] = ()
    notes: tuple[TaskNote, ...] = ()

    @property
    def interrupts(self) -> tuple[Interrupt, ...]:
        """What waits for an answer."""
        return tuple(question for note in self.notes for question in note.questions)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to run."""
        return not (self.ready or self.deferred or self.unrouted or self.sends or self.deferred_sends)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that run or route next."""
        sends = (send.node for send in (*self.sends, *self.deferred_sends))
        return (*self.ready, *self.deferred, *self.unrouted, *sends)

    def noted(self, notes: Iterable[TaskNote]) -> "Frontier":
        """Return the frontier with `notes`, each in place of an older one of its task; empty ones go."""
        newest = {(note.node, note.item): note for note in (*self.notes, *notes)}
        return msgspec.structs.replace(
            self, notes=tuple(note for note in newest.values() if note.says_anything)
        )


AT_ENTRY: Final = Frontier(unrouted=(START,))
"""Where a thread stands before its first superstep."""
