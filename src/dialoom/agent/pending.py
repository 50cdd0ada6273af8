"""What a run waits for a person to say, and what a person may say."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from dialoom.agent.given import expect
from dialoom.base.errors import UsageError
from dialoom.base.text import one_line


class Approval(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="approval"
):
    """A tool call that a person has to allow first. Answered with `Approve`, `Deny` or `Edit`.

    `id` is the call's, `schema` the JSON Schema of the tool's arguments, for a form to edit them.
    `question` is how the engine knows it; `refused` says what was wrong with the last answer.
    """

    id: str
    tool: str
    arguments: dict[str, object]
    reason: str = ""
    schema: dict[str, object] = {}
    question: str = ""
    refused: str = ""


class Question(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="question"
):
    """What a tool asks while it runs, with `ToolContext.ask`. Answered with any value that can be stored.

    `id` is that of the call, `payload` the tool's own words or form. `question` and `refused` are as in
    `Approval`.
    """

    id: str
    tool: str
    payload: object = None
    question: str = ""
    refused: str = ""


Pending: TypeAlias = Approval | Question


class Approve(msgspec.Struct, frozen=True, tag_field="type", tag="approve"):
    """Run the call as the model wrote it."""


class Deny(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="deny"):
    """Do not run the call; the model reads `reason`."""

    reason: str = ""

    def __post_init__(self) -> None:
        expect(self.reason, str, what="the reason to deny a call", give="words, or nothing: Deny()")


class Edit(msgspec.Struct, frozen=True, tag_field="type", tag="edit"):
    """Run the call with these arguments instead; they are checked like the model's own.

    Arguments that the tool cannot take are not run: the approval is asked for again, and says why.
    """

    arguments: Mapping[str, object]

    def __post_init__(self) -> None:
        expect(
            self.arguments, Mapping, what="what a call is edited to", give='arguments, as in Edit({"n": 1})'
        )


Decision: TypeAlias = Approve | Deny | Edit


def decision_of(answer: object) -> Decision:
    """Return an answer to an approval, also when it came as plain values. Raises `UsageError`."""
    if isinstance(answer, Approve | Deny | Edit):
        return answer
    try:
        return msgspec.convert(answer, Decision)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{one_line(repr(answer), 80)} decides nothing;"
            " answer with Approve(), Deny(reason) or Edit(arguments)"
        ) from error


def question_ids(pending: tuple[Pending, ...], answers: Mapping[str, object]) -> dict[str, object]:
    """Return `answers`, given by call id, by the engine's id of the question.

    Raises `UsageError` for an answer that nothing waits for, that may be meant for more than one call, or
    that decides nothing about a call.
    """
    told: dict[str, object] = {}
    for name, answer in answers.items():
        asked = [each for each in pending if name in {each.id, each.question}]
        if not asked:
            waiting = ", ".join(each.id for each in pending) or "nothing, so resume without answers"
            raise UsageError(f"no call {one_line(str(name), 80)!r} waits for an answer; waiting: {waiting}")
        if len(asked) > 1:
            names = ", ".join(each.question for each in asked)
            raise UsageError(f"{len(asked)} calls {name!r} wait; answer each by its question: {names}")
        (one,) = asked
        told[one.question] = decision_of(answer) if isinstance(one, Approval) else answer
    return told
