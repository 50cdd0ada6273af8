"""The tasks of one superstep and what they came to. Pure: a map is one task here, and many units of work."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from dialoom.graph.commit import PAUSED, Outcome
from dialoom.graph.frontier import Frontier, Send, TaskNote
from dialoom.graph.frozen import FrozenDict
from dialoom.graph.items import ITEM
from dialoom.graph.plan import tasks_of
from dialoom.graph.result import NodeError, NodeResult
from dialoom.graph.state import State
from dialoom.graph.table import MapSpec, Table
from dialoom.graph.trouble import refused

Key = tuple[str, int | None]


class Batch(msgspec.Struct, frozen=True):
    """The `tasks` of a superstep, and the `units` of them to run now; `broken` says which tasks cannot."""

    tasks: Sequence[Send]
    units: Sequence[Send]
    notes: Mapping[Key, TaskNote]
    broken: Mapping[str, NodeError]


def batch_of(table: Table, state: State, frontier: Frontier) -> Batch:
    """Return what to run for `frontier`: no task that waits for an answer, no item that is through."""
    tasks = tasks_of(table, frontier)
    notes = {(note.node, note.item): note for note in frontier.notes}
    units: list[Send] = []
    broken: dict[str, NodeError] = {}
    for task in tasks:
        each = table.nodes[task.node].each
        if each is None:
            units.append(task)
            continue
        items = state.get(each.over)
        if isinstance(items, Sequence) and not isinstance(items, (str, bytes)):
            units += _items(task.node, cast("Sequence[Any]", items), notes.get((task.node, None)))
        else:
            found = "has no value" if items is None else f"holds {type(items).__name__}"
            reason = f"it maps over channel {each.over!r}, which {found}; write a list of items"
            broken[task.node] = refused(task.node, reason)
    waiting = {key for key, note in notes.items() if note.questions}
    return Batch(tasks, [unit for unit in units if (unit.node, unit.item) not in waiting], notes, broken)


def is_waiting(table: Table, state: State, frontier: Frontier) -> bool:
    """Return whether all that is left to run waits for an answer."""
    if not frontier.interrupts:
        return False
    batch = batch_of(table, state, frontier)
    return not batch.units and not batch.broken


def _items(node: str, items: Sequence[Any], note: TaskNote | None) -> Iterable[Send]:
    through = {at for at, _ in note.results} if note else set[int]()
    return (Send(node, item, at) for at, item in enumerate(items) if at not in through)


def gather(
    table: Table, batch: Batch, outcomes: Sequence[Outcome], memos: Iterable[TaskNote]
) -> tuple[list[Outcome], list[TaskNote]]:
    """Return one outcome for each task of `batch`, and the notes of those that may have to run again.

    `outcomes` are those of its units, `memos` what these have noted.
    """
    by_unit = {(unit.node, unit.item): outcome for unit, outcome in zip(batch.units, outcomes, strict=True)}
    notes = {**batch.notes, **{(note.node, note.item): note for note in memos}}
    whole: list[Outcome] = []
    for task in batch.tasks:
        each = table.nodes[task.node].each
        if each is None:
            whole.append(by_unit.get((task.node, task.item), PAUSED))
        elif task.node in batch.broken:
            whole.append(batch.broken[task.node])
        else:
            whole.append(_mapped(task.node, each, by_unit, notes))
    return whole, list(notes.values())


def _mapped(node: str, each: MapSpec, by_unit: Mapping[Key, Outcome], notes: dict[Key, TaskNote]) -> Outcome:
    """Return what the map came to as a whole, and note what its items did for when it has to go on."""
    note = notes.get((node, None)) or TaskNote(node=node)
    results = dict(note.results)
    left: list[Outcome] = [
        PAUSED for (name, at), other in notes.items() if name == node and at is not None and other.questions
    ]
    for (name, at), outcome in by_unit.items():
        if name != node or at is None:
            continue
        result = _item_result(each, at, outcome)
        if result is None:
            left.append(outcome)
            continue
        results[at] = result
        notes.pop((node, at), None)
    if not left:
        return NodeResult(writes={each.into: [value for at in sorted(results) for value in results[at]]})
    notes[node, None] = msgspec.structs.replace(note, results=tuple(sorted(results.items())))
    failed = [outcome for outcome in left if isinstance(outcome, NodeError)]
    if failed:
        return failed[0]
    return PAUSED if PAUSED in left else None


def _item_result(each: MapSpec, at: int, outcome: Outcome) -> tuple[Any, ...] | None:
    """Return what an item adds to the results: a value, nothing when skipped; None when it is not through."""
    if isinstance(outcome, NodeResult):
        return (outcome.writes[ITEM],)
    if not isinstance(outcome, NodeError) or each.on_item_error == "fail":
        return None
    if each.on_item_error == "skip":
        return ()
    return (FrozenDict(item=at, error=outcome.message, attempts=outcome.attempts),)
