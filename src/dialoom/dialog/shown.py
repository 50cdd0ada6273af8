"""A card as a tool gave it, brought into the form of the log: one that people can act on."""

import hashlib
import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import cast

import msgspec
from pydantic import ValidationError

from dialoom.base.errors import UsageError
from dialoom.conversation import CardEntry, dump_yaml, entry_from_dict, load_yaml
from dialoom.conversation.cards import CardRegistry, Form
from dialoom.conversation.cards.form import without_secrets
from dialoom.conversation.entries import MAX_PAYLOAD_CHARS

_CARD_ID = re.compile("[0-9a-f]{32}")

_log = logging.getLogger("dialoom.dialog")


def card_id_from(key: str) -> str:
    """Return the id of a card that is known by `key`, which may be of any length: the same at every look."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def is_card_id(card_id: str) -> bool:
    """Tell whether `card_id_from` may have made this id."""
    return _CARD_ID.fullmatch(card_id) is not None


def card_entry(card: object, card_id: str, registry: CardRegistry) -> CardEntry | None:
    """Return the entry of a card as a tool gave it: an entry, or fields with a `type`; None for others.

    A card without an id gets `card_id`. Fields of a type that `registry` knows are written as it writes its
    newest version, so that what is never stored, such as an answer to a secret field, is left out.
    """
    if not isinstance(card, Mapping):
        return None
    fields = cast("dict[str, object]", msgspec.to_builtins(card))
    try:
        if fields.get("kind") == "Special":
            entry = entry_from_dict(fields)
            return _with_id(entry, card_id) if isinstance(entry, CardEntry) else None
        return _entry_of(fields, card_id, registry) if "type" in fields else None
    except UsageError:
        _log.warning("card of a tool cannot be shown")
        return None


def _entry_of(fields: dict[str, object], card_id: str, registry: CardRegistry) -> CardEntry:
    name = str(fields["type"])
    given = without_secrets(fields) if name == Form.type else fields
    said = {key: value for key, value in given.items() if value is not None and key != "type"}
    named = {"id": card_id, **said}
    known = registry.find(name)
    if known is not None and "v" not in fields:
        # one that is wrong is kept as it came, and shown as a placeholder that says so
        with suppress(ValidationError, UsageError):
            return registry.encode(known.model.model_validate(named))
    return CardEntry(type=name, payload=dump_yaml({"type": name, **named}))


def _with_id(entry: CardEntry, card_id: str) -> CardEntry:
    try:
        payload = load_yaml(entry.payload, max_chars=MAX_PAYLOAD_CHARS)
    except UsageError:
        return entry
    if not isinstance(payload, dict):
        return entry
    kept = without_secrets(payload) if entry.type == Form.type else payload
    if payload.get("id") is None:
        kept = {**kept, "id": card_id}
    return entry if kept == payload else msgspec.structs.replace(entry, payload=dump_yaml(kept))
