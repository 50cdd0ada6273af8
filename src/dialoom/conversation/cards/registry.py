"""The card types a product knows, and the one codec that reads and writes them all."""

import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from importlib.metadata import entry_points
from threading import Lock
from typing import TypeAlias, cast

import msgspec
from pydantic import ValidationError

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.conversation.cards.actions import CardInput
from dialoom.conversation.cards.card import MAX_NOTE, Card
from dialoom.conversation.cards.form import Form
from dialoom.conversation.cards.form_registry import FormRegistry
from dialoom.conversation.cards.unknown import UnknownCard
from dialoom.conversation.entries import MAX_PAYLOAD_CHARS, CardEntry
from dialoom.conversation.yaml_text import dump_yaml, load_yaml

_log = logging.getLogger("dialoom.cards")

ENTRY_POINT_GROUP = "dialoom.cards"
MAX_MISSES = 100
MAX_NOTES = 2000
"""So many notes are remembered: a model reads them again at every turn."""
_TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")

Payload: TypeAlias = dict[str, object]
Upcaster: TypeAlias = Callable[[Payload], Payload]
"""Turns a payload of one version into one of the next; gets its own copy."""


class CardNote(msgspec.Struct, frozen=True):
    """What a model reads in place of a card, and the id by which its newer states are known."""

    card_id: str | None
    text: str


class CardType(msgspec.Struct, frozen=True, kw_only=True):
    """How one type of card is read, changed and shown.

    `latest` is the version its model stands for; `upcasters[n]` brings version n to n + 1. `actions` are what
    people can do with it. `renderer` tells a page how to draw it; `schema` draws any card from its schema.
    """

    model: type[Card]
    latest: int = 1
    upcasters: Mapping[int, Upcaster] = {}
    actions: Sequence[type[CardInput]] = ()
    renderer: str = "schema"

    def __post_init__(self) -> None:
        if not _TYPE_NAME.fullmatch(self.name):
            raise UsageError(
                f"{one_line(self.name, 80)!r} cannot name a card type; use letters, digits, _ . -"
            )
        missing = set(range(1, self.latest)) - self.upcasters.keys()
        if missing:
            raise UsageError(f"card type {self.name} has no upcaster from version {min(missing)}; give one")

    @property
    def name(self) -> str:
        return self.model.type

    def describe(self) -> dict[str, object]:
        """Return what a page needs to draw such a card and to act on it, as JSON values."""
        return {
            "type": self.name,
            "version": self.latest,
            "names": dict(self.model.names),
            "renderer": self.renderer,
            "schema": self.model.model_json_schema(by_alias=True),
            "actions": {each.name: each.model_json_schema(by_alias=True) for each in self.actions},
        }


class CardRegistry:
    """Card types by name, and their codec. Any thread may use it.

    A name it does not know is looked for once among the installed packages' `dialoom.cards` entry points.
    """

    def __init__(self, *types: CardType) -> None:
        self._lock = Lock()
        self._types: dict[str, CardType] = {}
        self._misses: set[str] = set()
        self._notes: OrderedDict[bytes, CardNote] = OrderedDict()
        for each in types:
            self.register(each)

    def register(self, card_type: CardType | type[Card]) -> None:
        """Add a type, or a card class whose type needs nothing more; replaces one of the same name."""
        known = card_type if isinstance(card_type, CardType) else CardType(model=card_type)
        with self._lock:
            self._types[known.name] = known
            self._notes = OrderedDict()  # a new one: what is being made with the old types goes with the old

    def find(self, name: str) -> CardType | None:
        """Return the type called `name`, or None when neither this registry nor an entry point has it."""
        found = self._types.get(name)
        if found is not None or name in self._misses or len(self._misses) >= MAX_MISSES:
            return found  # looking among the packages takes milliseconds, and names come from outside
        return self._load(name) if _TYPE_NAME.fullmatch(name) else None

    def describe(self) -> dict[str, dict[str, object]]:
        """Return `CardType.describe` of every type known by now."""
        with self._lock:
            types = list(self._types.values())
        return {each.name: each.describe() for each in types}

    def encode(self, card: Card | UnknownCard) -> CardEntry:
        """Return the entry that holds `card`; a placeholder gives back what it came as.

        Raises `UsageError` when the card is not valid, its type is not registered, or its payload is longer
        than 256 Ki characters.
        """
        if isinstance(card, UnknownCard):
            return CardEntry(type=card.type, payload=card.payload)
        known = self.find(card.type)
        if known is None:
            raise UsageError(f"card type {card.type} is not registered; register its class first")
        fields = _checked(card).stored()
        version = {"v": known.latest} if known.latest > 1 else {}
        payload = dump_yaml({"type": card.type, **version, **fields})
        if len(payload) > MAX_PAYLOAD_CHARS:
            raise UsageError(
                f"a {card.type} card of {len(payload)} characters is over the limit of {MAX_PAYLOAD_CHARS}; "
                "keep a preview in the card and the rest in a data set"
            )
        return CardEntry(type=card.type, payload=payload)

    def decode(self, name: str, payload: str, forms: FormRegistry | None = None) -> Card | UnknownCard:
        """Read a card of type `name` from YAML; what cannot be read becomes a placeholder with the reason.

        With `forms`, a form comes back as its definition asks it today, and locked when that is gone.
        Never raises for anything `payload` holds.
        """
        fields: Payload = {}
        try:
            fields = _payload(payload)
            return self._card(name, dict(fields), forms)
        except ValidationError as error:
            reason = _first_problem(error)
        except UsageError as error:
            reason = one_line(str(error))
        except Exception as error:  # noqa: BLE001 - seam: models and upcasters of others run here
            reason = f"reading it failed with {type(error).__name__}"
        card_id = fields.get("id")
        return UnknownCard(
            type=name, payload=payload, reason=reason, id=card_id if isinstance(card_id, str) else None
        )

    def decode_entry(self, entry: CardEntry, forms: FormRegistry | None = None) -> Card | UnknownCard:
        """Return `decode` of an entry's type and payload."""
        return self.decode(entry.type, entry.payload, forms)

    def note_of(self, entry: CardEntry) -> CardNote:
        """Return what a model reads of an entry's card; the same entry is read once."""
        key = blake2b(f"{entry.type}\n{entry.payload}".encode(), digest_size=16).digest()
        with self._lock:
            notes = self._notes
            known = notes.get(key)
            if known is not None:
                notes.move_to_end(key)
                return known
        card = self.decode_entry(entry)
        made = CardNote(card.id, _note(card))
        with self._lock:
            notes[key] = made
            if len(notes) > MAX_NOTES:
                notes.popitem(last=False)
        return made

    def act(self, card: Card | UnknownCard, action: str, fields: Mapping[str, object]) -> Card:
        """Return the next state of `card` after `action` with the input `fields`.

        Raises `UsageError` (`InvalidAnswersError` for a form's answers) when the card does not take it.
        """
        given = self.read_input(card, action, fields)
        assert isinstance(card, Card)  # no other has actions
        try:
            return given.apply(card)
        except ValidationError as error:
            raise _not_taken(card, action, error) from error

    def read_input(self, card: Card | UnknownCard, action: str, fields: Mapping[str, object]) -> CardInput:
        """Return `fields` as the input of `action`. Raises `UsageError` when the card does not take it."""
        if isinstance(card, UnknownCard) or card.locked:
            raise UsageError(
                f"this {card.type} card can only be looked at; its type or form is not known here"
            )
        known = self.find(card.type)
        actions = {each.name: each for each in known.actions} if known else {}
        if action not in actions:
            taken = ", ".join(actions) or "none"
            raise UsageError(
                f"this {card.type} card has no action {one_line(action, 40)!r}; it takes {taken}"
            )
        try:
            return actions[action].model_validate(fields)
        except ValidationError as error:
            raise _not_taken(card, action, error) from error

    def _card(self, name: str, fields: Payload, forms: FormRegistry | None) -> Card:
        known = self.find(name)
        if known is None:
            raise UsageError(f"card type {one_line(name, 80)!r} is not known here; install what brings it")
        if fields.pop("type", name) != name:
            raise UsageError(f"the payload of a {name} card says it is of another type")
        card = known.model.model_validate(_upcast(known, fields))
        if isinstance(card, Form):
            return _restored(card, forms)
        return card

    def _load(self, name: str) -> CardType | None:
        """Ask the installed packages for `name`; what fails to load is logged and counts as not there."""
        for point in entry_points(group=ENTRY_POINT_GROUP, name=name):
            try:
                self.register(point.load())
            except Exception:  # noqa: BLE001 - seam: foreign code loads here
                _log.exception("card type failed to load", extra={"card_type": name})
        with self._lock:
            found = self._types.get(name)
            if found is None:
                self._misses.add(name)
        return found


def _payload(text: str) -> Payload:
    fields = load_yaml(text, max_chars=MAX_PAYLOAD_CHARS)
    if not isinstance(fields, dict):
        raise UsageError("the payload is not a mapping")
    return cast("Payload", fields)


def _upcast(known: CardType, fields: Payload) -> Payload:
    version = fields.pop("v", 1)
    if type(version) is not int or version < 1:
        raise UsageError("the payload's version `v` is not a whole number of 1 or more")
    if version > known.latest:
        raise UsageError(f"version {version} is newer than version {known.latest}, which is known here")
    for step in range(version, known.latest):
        fields = known.upcasters[step](fields)
    return fields


def _restored(form: Form, forms: FormRegistry | None) -> Form:
    if form.form_id is None and not form.inline:
        raise UsageError("the form has no formId; it cannot be restored")
    return form if forms is None else forms.restore(form)


def _checked(card: Card) -> Card:
    """Return `card` validated once more: a copy made past validation must not reach the log."""
    try:
        return type(card).model_validate(card.stored())
    except ValidationError as error:
        raise UsageError(f"this {card.type} card is not valid: {_first_problem(error)}") from error


def _note(card: Card | UnknownCard) -> str:
    try:
        note = card.note(card.language)
    except Exception:  # noqa: BLE001 - seam: notes of others' cards are made here
        _log.exception("card note failed", extra={"card_type": card.type})
        note = f"[shown {card.type}]"
    return one_line(note, MAX_NOTE)


def _not_taken(card: Card, action: str, error: ValidationError) -> UsageError:
    return UsageError(f"this {card.type} card cannot take {action}: {_first_problem(error)}")


def _first_problem(error: ValidationError) -> str:
    """Say what is wrong first, and never the value: it may be a secret."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    what = "give a mapping of names to values" if first["type"] == "model_type" else first["msg"]
    return one_line(f"{place}: {what}" if place else what)
