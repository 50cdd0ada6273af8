"""Answers for a paused thread, and where each of them goes. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dialoom.base.errors import UsageError
from dialoom.graph.frontier import Frontier, Interrupt, TaskNote
from dialoom.graph.frozen import freeze


class ResumeCommand(msgspec.Struct, frozen=True):
    """What a resumed run is told. `answers` pairs the id of a question, or the node that asked, with a value.

    Only tasks that got an answer run again; the others stay paused.
    """

    answers: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def for_node(cls, node: str, value: object) -> "ResumeCommand":
        """Answer the one question that `node` waits with."""
        return cls(((node, value),))

    @classmethod
    def for_id(cls, interrupt_id: str, value: object) -> "ResumeCommand":
        """Answer the question with that id, as in `result.interrupts`."""
        return cls(((interrupt_id, value),))

    @classmethod
    def many(cls, answers: Mapping[str, object]) -> "ResumeCommand":
        """Answer several questions at once, each by its id or its node."""
        return cls(tuple(answers.items()))


def answered(frontier: Frontier, command: ResumeCommand, resume_nodes: Mapping[str, str]) -> Frontier:
    """Return `frontier` with the answers where they belong. Raises UsageError when one belongs nowhere.

    `resume_nodes` says which node of a subgraph an answer to the subgraph as a whole is for.
    """
    told = frontier.notes
    for name, value in command.answers:
        question = _chosen([each for note in told for each in note.questions], name, resume_nodes)
        told = tuple(_told(note, question, value) for note in told)
    # a subgraph that was told something runs again; what else waits in it, it asks again
    notes = tuple(
        msgspec.structs.replace(note, questions=()) if note.child and note != before else note
        for note, before in zip(told, frontier.notes, strict=True)
    )
    return msgspec.structs.replace(frontier, notes=notes)


def _chosen(pending: Sequence[Interrupt], name: str, resume_nodes: Mapping[str, str]) -> Interrupt:
    chosen = [each for each in pending if each.id == name] or [each for each in pending if each.node == name]
    if not chosen:
        inner = resume_nodes.get(name)
        inside = (each for each in pending if each.ns[:1] == (name,))
        chosen = [each for each in inside if inner is None or each.node == inner]
    if len(chosen) == 1:
        return chosen[0]
    known = ", ".join(repr(each.id) for each in pending) or "nothing"
    if chosen:
        raise UsageError(f"node {name!r} waits with {len(chosen)} questions; answer by id, one of: {known}")
    raise UsageError(f"nothing waits for an answer to {name!r}; waiting: {known}")


def _told(note: TaskNote, question: Interrupt, value: object) -> TaskNote:
    if question not in note.questions:
        return note
    left = tuple(each for each in note.questions if each != question)
    if note.child is None:
        answers = (*note.answers, (question.label, freeze(value)))
        return msgspec.structs.replace(note, answers=answers, questions=left)
    inner = note.child.frontier
    notes = tuple(_told(each, question, value) for each in inner.notes)
    child = msgspec.structs.replace(note.child, frontier=msgspec.structs.replace(inner, notes=notes))
    return msgspec.structs.replace(note, child=child, questions=left)
