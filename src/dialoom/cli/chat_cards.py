"""Cards in the terminal: what a run asks is asked here, line by line."""

from typing import Protocol, TypeAlias

import msgspec

from dialoom.base.text import one_line
from dialoom.cli.exits import complain
from dialoom.cli.progress import say
from dialoom.conversation import CardEntry
from dialoom.conversation.cards import DEFAULT_CARDS, Approval, Form, FormField
from dialoom.conversation.cards.form_field import FieldValue
from dialoom.dialog import Dialog

Act: TypeAlias = tuple[str, dict[str, object]]
"""What `Dialog.answer` is told: an action, and its fields."""
_DECODED = frozenset({"number", "integer"})
_YES_NO = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
_HINTS = {"bool": "y/n", "date": "2026-11-30", "file": "the id of an upload", "secret": "not shown"}


class Ask(Protocol):
    """Shows a question and returns the line a person typed; None when there will be no more."""

    def __call__(self, question: str, *, is_secret: bool = False) -> str | None: ...


def ask_card(dialog: Dialog, card_id: str, ask: Ask) -> Act | None:
    """Ask a person what a card asks; None when nobody answered."""
    match _card(dialog, card_id):
        case Approval() as card:
            return _approve(card, ask)
        case Form() as card:
            return _fill_in(card, ask)
        case _:
            complain("this card cannot be answered here; open it in the workbench: dialoom serve")
            return None


def _card(dialog: Dialog, card_id: str) -> object:
    for index in range(dialog.message_count - 1, -1, -1):
        entry = dialog.message(index)
        if isinstance(entry, CardEntry) and entry.card_id == card_id:
            return DEFAULT_CARDS.decode_entry(entry)
    return None


def _approve(card: Approval, ask: Ask) -> Act | None:
    arguments = one_line(msgspec.json.encode(card.arguments).decode(), 400)
    said = ask(f"{one_line(card.tool_name or 'a tool')} wants to run with {arguments}. Allow it? [y/N] ")
    return None if said is None else ("decide", {"approved": said.strip().lower() in {"y", "yes"}})


def _fill_in(card: Form, ask: Ask) -> Act | None:
    """Ask field by field, each until its answer is right; those that the answers hide are not asked."""
    if card.title:
        say(one_line(card.title))
    if card.error:
        complain(card.error)
    values: dict[str, object] | None = {}
    for field in card.fields:
        if field.is_visible(values):
            values = _with_answer(card, field, values, ask)
            if values is None:
                return None
    return "submit", {"values": values}


def _with_answer(
    card: Form, field: FormField, values: dict[str, object], ask: Ask
) -> dict[str, object] | None:
    """Return `values` with the answer to `field`, None when nobody answers any more."""
    while (said := ask(_question(field), is_secret=field.type == "secret")) is not None:
        answer = _value(field, said.strip())
        tried = values if answer is None else {**values, field.id: answer}
        wrong = _wrong(card, field, tried)
        if not wrong:
            return tried
        complain(f"{one_line(field.label or field.id)}: {wrong}")
    return None


def _question(field: FormField) -> str:
    """Return what a field is called, what it takes, and in brackets what it holds when it is left empty."""
    hint, held = one_line(_hint(field), 200), _held(field)
    takes = f" ({hint})" if hint else ""
    holds = "" if held is None else f" [{one_line(_word(held), 60)}]"
    return f"{one_line(field.label or field.id)}{takes}{holds}: "


def _hint(field: FormField) -> str:
    if field.choices:
        return ", ".join(field.choices)
    if field.type not in _DECODED:
        return _HINTS.get(field.type, "")
    least = [] if field.min is None else [f"{field.min} or more"]
    most = [] if field.max is None else [f"{field.max} or less"]
    return ", ".join(least + most)


def _held(field: FormField) -> FieldValue:
    return field.default if field.current_value is None else field.current_value


def _word(value: FieldValue) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _value(field: FormField, said: str) -> object:
    """Return what was typed as the kind of value a field takes, None for nothing; the form judges it."""
    if not said:
        return _held(field)
    if field.type == "multiselect":
        return [each.strip() for each in said.split(",")]
    if field.type == "bool":
        return _YES_NO.get(said.lower(), said)
    if field.type not in _DECODED:
        return said
    try:
        return msgspec.json.decode(said)
    except msgspec.DecodeError:
        return said


def _wrong(card: Form, field: FormField, values: dict[str, object]) -> str:
    """Return what is wrong with the answer to one field, "" when nothing is."""
    place = f"/{field.id.replace('~', '~0').replace('/', '~1')}/"
    return next((each.message for each in card.check(values) if f"{each.path}/".startswith(place)), "")
