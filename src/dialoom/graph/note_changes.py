"""Notes as what changed since the checkpoint before, so that a long subgraph takes little space."""

from collections.abc import Callable, Mapping

import msgspec

from dialoom.graph.checkpoint import replay
from dialoom.graph.frontier import ChildNote, Frontier, TaskNote
from dialoom.graph.state import EMPTY, State

Key = tuple[str, int | None]


def following(before: Frontier, now: Frontier) -> Frontier:
    """Return `now`, its notes marked with what they have from those of `before`, which it follows."""
    return _each_note(before, now, _following) if now.notes else now


def without_known(now: Frontier) -> Frontier:
    """Return `now` without what its notes have from the checkpoint before."""
    return _each_note(now, now, lambda _, note: _without_known(note)) if now.notes else now


def with_known(before: Frontier, now: Frontier) -> Frontier:
    """Return what was made of by `without_known`. Raises ValueError when `before` has not what it follows."""
    return _each_note(before, now, _with_known) if now.notes else now


def _each_note(
    before: Frontier, now: Frontier, change: Callable[[TaskNote | None, TaskNote], TaskNote]
) -> Frontier:
    known: Mapping[Key, TaskNote] = {(note.node, note.item): note for note in before.notes}
    notes = tuple(change(known.get((note.node, note.item)), note) for note in now.notes)
    return msgspec.structs.replace(now, notes=notes)


def _following(before: TaskNote | None, note: TaskNote) -> TaskNote:
    kept = 0 if before is None else len(before.once)
    if before is None or [key for key, _ in before.once] != [key for key, _ in note.once[:kept]]:
        kept = 0
    child = note.child
    if child is not None:
        child = _following_child(None if before is None else before.child, child)
    return msgspec.structs.replace(note, kept=kept, child=child)


def _following_child(before: ChildNote | None, child: ChildNote) -> ChildNote:
    if before is None or child.version - before.version not in (0, 1):
        inner = following(Frontier(), child.frontier)
        return msgspec.structs.replace(child, frontier=inner, ops=(), follows=False)
    inner = following(before.frontier, child.frontier)
    ops = child.ops if child.version > before.version else ()
    return msgspec.structs.replace(child, frontier=inner, ops=ops, follows=True)


def _without_known(note: TaskNote) -> TaskNote:
    child = note.child
    if child is not None:
        state = EMPTY if child.follows else child.state
        child = msgspec.structs.replace(child, state=state, frontier=without_known(child.frontier))
    return msgspec.structs.replace(note, once=note.once[note.kept :], child=child)


def _with_known(before: TaskNote | None, note: TaskNote) -> TaskNote:
    if note.kept:
        if before is None or len(before.once) < note.kept:
            raise ValueError(f"the effects of {note.node!r} before it are missing")
        note = msgspec.structs.replace(note, once=(*before.once[: note.kept], *note.once))
    if note.child is None:
        return note
    child = _with_known_child(None if before is None else before.child, note.child, note.node)
    return msgspec.structs.replace(note, child=child)


def _with_known_child(before: ChildNote | None, child: ChildNote, node: str) -> ChildNote:
    if not child.follows:
        return msgspec.structs.replace(child, frontier=with_known(Frontier(), child.frontier))
    if before is None:
        raise ValueError(f"where the subgraph of {node!r} stood before it is missing")
    inner = with_known(before.frontier, child.frontier)
    return msgspec.structs.replace(child, state=replay(State(before.state), child.ops), frontier=inner)
