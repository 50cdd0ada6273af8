"""A dialog as one dict: what `to_dict` writes and `from_dict` reads. Tools are code and not in it."""

from collections.abc import Iterable, Mapping
from typing import cast

import msgspec

from dialoom.base.errors import UsageError
from dialoom.conversation import Entry, entry_from_dict, entry_to_dict
from dialoom.conversation.header import check_id
from dialoom.dialog.settings import (
    MANY_GUIDES,
    MAX_GUIDES,
    DialogSettings,
    check_fields,
    is_system_text,
    settings_from_dict,
)

MAX_MESSAGES = 1_000_000


class Saved(msgspec.Struct, frozen=True):
    """A dialog as read; `id` is None when the dict has none."""

    id: str | None
    settings: DialogSettings
    entries: tuple[Entry, ...]


def saved_dict(dialog_id: str, settings: DialogSettings, entries: Iterable[Entry]) -> dict[str, object]:
    """Return a dialog as JSON values."""
    return {
        "id": dialog_id,
        **settings.to_dict(),
        "messages": [entry_to_dict(entry) for entry in entries],
    }


def read_saved(fields: Mapping[str, object]) -> Saved:
    """Read `saved_dict` back, unknown fields left aside. Raises `UsageError` with what is wrong where."""
    check_fields(fields, "a saved dialog")
    dialog_id = fields.get("id")
    if dialog_id is not None and not isinstance(dialog_id, str):
        raise UsageError("the id of a saved dialog is not text; write it in quotes, or leave it out")
    known_id = None if dialog_id is None else check_id(dialog_id)
    settings, entries = settings_from_dict(fields), tuple(_entries(fields.get("messages", ())))
    if sum(map(is_system_text, entries)) > MAX_GUIDES:
        raise UsageError(MANY_GUIDES)
    return Saved(known_id, settings.until(len(entries)), entries)


def _entries(messages: object) -> Iterable[Entry]:
    if not isinstance(messages, list | tuple):
        raise UsageError("the messages of a saved dialog are not a list; mend or leave them out")
    listed = cast("list[object]", messages)
    if len(listed) > MAX_MESSAGES:
        raise UsageError(f"a saved dialog has {len(listed)} messages; {MAX_MESSAGES} are allowed")
    for at, each in enumerate(listed):
        if not isinstance(each, dict):
            raise UsageError(f"message {at} of a saved dialog is not an object; mend or leave it out")
        try:
            yield entry_from_dict(cast("dict[str, object]", each))
        except UsageError as error:
            raise UsageError(f"message {at} of a saved dialog: {error}") from error
