"""Cards in the terminal: what a run asks is asked here, line by line."""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from dialoom.base.text import one_line
from dialoom.cli.exits import complain
from dialoom.cli.progress import say
from dialoom.conversation import CardEntry
from dialoom.conversation.cards import DEFAULT_CARDS, Approval, Form, FormField
from dialoom.dialog import Dialog

Ask: TypeAlias = Callable[[str], str | None]
"""Shows a question and returns the line a person typed; None when there will be no more."""
Act: TypeAlias = tuple[str, dict[str, object]]
"""What `Dialog.answer` is told: an action, and its fields."""
_DECODED = frozenset({"number", "integer", "bool"})


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
    if card.title:
        say(one_line(card.title))
    if card.error:
        complain(card.error)
    values: dict[str, object] = {}
    for field in card.fields:
        said = ask(f"{one_line(field.label or field.id)}: ")
        if said is None:
            return None
        if said.strip():
            values[field.id] = _value(field, said.strip())
    return "submit", {"values": values}


def _value(field: FormField, said: str) -> object:
    """Return what was typed as the kind of value a field takes; the form refuses what does not fit."""
    if field.type == "multiselect":
        return [each.strip() for each in said.split(",")]
    if field.type not in _DECODED:
        return said
    try:
        return msgspec.json.decode(said)
    except msgspec.DecodeError:
        return said
