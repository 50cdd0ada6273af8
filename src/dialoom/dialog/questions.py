"""Questions of a paused run as cards, and what people do with those cards as answers."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import cast

import msgspec
from pydantic import ValidationError

from dialoom.agent import Approval, Approve, Deny, Edit, Pending, pending_of
from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.conversation import CardEntry, Entry
from dialoom.conversation.cards import Approval as ApprovalCard
from dialoom.conversation.cards import Card, CardRegistry, Form, FormRegistry, UnknownCard
from dialoom.conversation.cards.form import without_secrets
from dialoom.conversation.header import from_rfc3339
from dialoom.dialog.keyed import KeyedEntry
from dialoom.dialog.outbox import key_of
from dialoom.dialog.shown import card_id_from, is_card_id
from dialoom.dialog.standing import messages_of, turn_of
from dialoom.graph import Checkpoint
from dialoom.tools import Tool, ToolRegistry
from dialoom.tools.observe import observe

ANSWER = "answer"
"""The one field of a form that asks for a text or a value."""
ASKED = "ask"
"""What the delivery of a question is called, beside the card's id."""
GIVEN_UP = frozenset({"cancelled", "expired"})
"""What a card is that nobody waits for; older logs say cancelled of it."""
MAX_SHOWN = 100_000
"""Bytes of a call's arguments that an approval shows."""


class Waiting(msgspec.Struct, frozen=True):
    """A question of the engine, and the card that asks it.

    When the card `is_answered`, `answer` is what the run has yet to be told.
    """

    question: str
    card_id: str
    is_answered: bool = False
    answer: object = None


class Cards:
    """Cards of a log by id, each at its newest."""

    def __init__(self, registry: CardRegistry, forms: FormRegistry, entries: Iterable[Entry]) -> None:
        self._registry = registry
        self._forms = forms
        self._newest: dict[str, Card | UnknownCard] = {}
        for entry in entries:
            if isinstance(entry, CardEntry):
                card = registry.decode_entry(entry, forms)
                if card.id is not None:
                    self._newest[card.id] = card

    def get(self, card_id: str) -> Card | UnknownCard | None:
        return self._newest.get(card_id)

    @property
    def questions(self) -> tuple[str, ...]:
        """The ids of the cards that may be questions of a run, and are not answered."""
        return tuple(
            card_id
            for card_id, card in self._newest.items()
            if isinstance(card, ApprovalCard | Form) and not card.is_done and is_card_id(card_id)
        )

    def until(self, card_ids: Iterable[str]) -> float | None:
        """Return the moment at which the first of these cards expires, in seconds since the Unix epoch."""
        found = (self._newest.get(card_id) for card_id in card_ids)
        moments = [_moment(card.expires_at) for card in found if isinstance(card, ApprovalCard)]
        return min((each for each in moments if each is not None), default=None)

    @property
    def were_told_secrets(self) -> bool:
        """Whether a form with a secret field was answered; the answer is in the checkpoints only."""
        forms = (card for card in self._newest.values() if isinstance(card, Form) and card.is_done)
        return any(field.type == "secret" for form in forms for field in form.fields)

    def ask(
        self, checkpoint: Checkpoint, *, passed_on: Collection[str] = (), until: str | None = None
    ) -> tuple[tuple[Waiting, ...], tuple[KeyedEntry, ...]]:
        """Return what `checkpoint` waits for, and the cards that are to be shown for it.

        A question whose newest card was answered already waits with that answer: a crash came before it was
        passed on. One that was answered and refused is asked by a new card, which says why; so is one of
        those `passed_on` to the run by card id. One whose card was given up waits no more. New approvals
        expire at `until`.
        """
        waiting: list[Waiting] = []
        shown: list[KeyedEntry] = []
        for pending in map(pending_of, checkpoint.interrupts):
            number, card = self._newest_of(checkpoint, pending)
            if isinstance(card, Card) and card.status in GIVEN_UP:
                continue
            answered = card if isinstance(card, Card) and card.is_done else None
            card_id = card_id_of(checkpoint, pending, number + (answered is not None))
            if answered and (answered.error or "") == pending.refused and answered.id not in passed_on:
                waiting.append(
                    Waiting(pending.question, answered.id or "", is_answered=True, answer=answer_in(answered))
                )
                continue
            if card is None or answered:
                entry = self._registry.encode(self._card(pending, card_id, until))
                shown.append(KeyedEntry(key_of(card_id, ASKED), entry))
            waiting.append(Waiting(pending.question, card_id))
        return tuple(waiting), tuple(shown)

    def close(self, waiting: Iterable[Waiting]) -> tuple[KeyedEntry, ...]:
        """Return the cards of questions that nobody waits for any more, as expired."""
        cards = (self._newest.get(each.card_id) for each in waiting)
        return tuple(
            KeyedEntry(key_of(card.id or "", "closed"), self._registry.encode(card.changed(status="expired")))
            for card in cards
            if isinstance(card, Card) and not card.is_done
        )

    def _newest_of(self, checkpoint: Checkpoint, pending: Pending) -> tuple[int, Card | UnknownCard | None]:
        """Return the newest card that asks this question, and its number."""
        number = 0
        while card_id_of(checkpoint, pending, number + 1) in self._newest:
            number += 1
        return number, self._newest.get(card_id_of(checkpoint, pending, number))

    def _card(self, pending: Pending, card_id: str, until: str | None) -> Card:
        if isinstance(pending, Approval):
            card: Card = ApprovalCard(
                title=one_line(pending.tool, 60),
                question=pending.reason,
                tool_name=pending.tool,
                tool_call_id=pending.id,
                arguments=_shown(pending.arguments),
            )
            card = card if until is None else card.changed(expires_at=until)
        else:
            card = form_of(pending.payload, self._forms, title=one_line(pending.tool, 60))
        return card.changed(id=card_id, **({"error": pending.refused} if pending.refused else {}))


def _moment(stamp: str | None) -> float | None:
    """Read a moment of a card; one that cannot be read, as anybody may have shown it, is none."""
    try:
        return None if stamp is None else from_rfc3339(stamp)
    except UsageError:
        return None


def asking(entries: Iterable[Entry]) -> Iterator[CardEntry]:
    """Yield the cards of the types that runs ask by: the others need not be read to find their questions."""
    for entry in entries:
        if isinstance(entry, CardEntry) and entry.type in (ApprovalCard.type, Form.type):
            yield entry


def card_id_of(checkpoint: Checkpoint, pending: Pending, number: int) -> str:
    """Return the id of the card that asks `pending` for the `number`th time: the same at every look."""
    messages = messages_of(checkpoint)
    backwards = range(len(messages) - 1, -1, -1)
    made = (at for at in backwards if any(call.id == pending.id for call in messages[at].tool_calls))
    name = key_of(turn_of(checkpoint).id, next(made, len(messages)), pending.question, number)
    return card_id_from(name)


def form_of(payload: object, forms: FormRegistry, *, title: str) -> Form:
    """Return the form that asks `payload`.

    A payload with a `formId` asks a registered form, filled with its `values`; one with `fields` is a form of
    its own; a text asks for a text, and anything else is shown and asked for one, too.
    """
    asked = (
        without_secrets(cast("Mapping[str, object]", payload)) if isinstance(payload, Mapping) else payload
    )
    seen = observe(asked, tool=title)
    fields = cast("dict[str, object]", seen.structured) if isinstance(asked, dict) else {}
    form_id = fields.get("formId", fields.get("form_id"))
    definition = forms.find(form_id) if isinstance(form_id, str) else None
    if definition is not None:
        values = fields.get("values")
        return definition.card(cast("dict[str, object]", values) if isinstance(values, dict) else None)
    if "fields" in fields:
        try:
            return Form.model_validate({"title": title, **fields, "inline": True})
        except (ValidationError, UsageError) as error:
            title = f"{title}: its form cannot be shown ({one_line(str(error), 80)})"
    field = {"id": ANSWER, "label": one_line(seen.content, 500), "type": "text", "required": True}
    return Form.model_validate({"title": title, "inline": True, "fields": [field]})


def _shown(arguments: dict[str, object]) -> dict[str, object]:
    """Return arguments as a card can hold them; those that are too long are not shown in part."""
    size = len(msgspec.json.encode(arguments))
    return arguments if size <= MAX_SHOWN else {"too long to be shown": f"{size} bytes"}


def answer_to(card: Card, fields: Mapping[str, object], *, tool: Callable[[str], Tool | None]) -> object:
    """Return what `card`, just answered with `fields`, tells the run that asked.

    Raises `UsageError` when that is nothing, or arguments its tool cannot take. Answers to secret fields are
    in `fields` only: the card does not keep them.
    """
    if not card.is_done:
        raise UsageError(f"this leaves the {card.type} card unanswered; decide or submit it")
    answer = answer_in(card)
    if isinstance(card, ApprovalCard) and isinstance(answer, Edit):
        found = tool(card.tool_name or "")
        violations = ToolRegistry([found]).validate(found.name, answer.arguments) if found else ()
        if violations:
            places = "; ".join(f"{each.path}: {each.message}" for each in violations)
            raise UsageError(f"tool {card.tool_name} cannot take these arguments: {one_line(places)}")
    if isinstance(card, Form) and isinstance(answer, dict):
        values = cast("Mapping[str, object]", fields.get("values", {}))
        secret = {field.id for field in card.fields if field.type == "secret"}
        return {**cast("dict[str, object]", answer), **{key: values[key] for key in secret & values.keys()}}
    return answer


def answer_in(card: Card) -> object:
    """Return what an answered card tells the run that asked. Raises `UsageError` when that is nothing."""
    match card:
        case ApprovalCard(status="approved", edited_arguments=dict(arguments)):
            return Edit(arguments)
        case ApprovalCard(status="approved"):
            return Approve()
        case ApprovalCard():
            return Deny(card.comment)
        case Form() if [field.id for field in card.fields] == [ANSWER] and card.inline:
            return card.submitted_values.get(ANSWER)
        case Form():
            return dict(card.submitted_values)
        case _:
            raise UsageError(f"a {card.type} card answers no run; answer the card that asks")
