"""A conversation as one document: the layout of seed 003's `{sessionId}.yaml`, which is also our JSON.

Beside `entries`, what people see, `removed` holds what was truncated, newest last, so that a document holds
the whole log: `keep` is the length of the list the entries were taken off.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, cast

from dialoom.base.clock import Clock
from dialoom.base.errors import UsageError
from dialoom.base.ids import new_id
from dialoom.conversation.entries import entry_from_dict, entry_to_dict
from dialoom.conversation.header import Header, WorkflowMode, from_stored_time, to_rfc3339
from dialoom.conversation.records import Append, Log, Record, Truncate
from dialoom.conversation.yaml_text import load_yaml

Fields: TypeAlias = dict[str, object]

_HEADER_TEXTS = ("sessionId", "title", "createdAt", "updatedAt", "branchFrom")
_ENTRY_TEXTS = ("role", "content", "type", "payload")
_KNOWN_KEYS = frozenset((*_HEADER_TEXTS, "workflowMode", "settings", "entries", "removed"))


def to_document(header: Header, records: Iterable[Record]) -> Fields:
    """Return everything of a conversation as plain values, in the order people read it."""
    log = Log()
    removed: list[Fields] = []
    for record in records:
        dropped = log.visible[record.keep :] if isinstance(record, Truncate) else []
        log.add(record)
        if isinstance(record, Truncate):
            removed.append({"keep": record.keep, "entries": [_stored(each) for each in dropped]})
    return {
        "sessionId": header.id,
        "title": header.title,
        "createdAt": to_rfc3339(header.created),
        "updatedAt": to_rfc3339(header.updated),
        "workflowMode": header.workflow_mode,
        **({"branchFrom": header.branch_from} if header.branch_from else {}),
        **({"settings": header.settings} if header.settings else {}),
        **{key: value for key, value in header.meta.items() if key not in _KNOWN_KEYS},
        "entries": [_stored(record) for record in log.visible],
        **({"removed": removed} if removed else {}),
    }


def from_document(fields: Mapping[str, object], clock: Clock) -> tuple[Header, list[Record]]:
    """Read `to_document` back, or a file of seed 003's product.

    A missing id is made, missing times are now. Raises `UsageError` with the place of what is wrong.
    """
    if fields and not fields.keys() & _KNOWN_KEYS:
        raise UsageError("this is no conversation: it has no entries, title or id; give an exported one")
    now = to_rfc3339(clock.now())
    created = _text(fields, "createdAt", default=now)
    header = Header(
        id=_text(fields, "sessionId", default="") or new_id(),
        title=_text(fields, "title", default=""),
        branch_from=_text(fields, "branchFrom", default="") or None,
        created=from_stored_time(created),
        updated=from_stored_time(_text(fields, "updatedAt", default=created)),
        workflow_mode=_mode(fields.get("workflowMode")),
        settings=_object(_given(fields, "settings", {}), "settings"),
        meta={key: value for key, value in fields.items() if key not in _KNOWN_KEYS},
    )
    return header, _records(fields)


def read_yaml(text: str) -> Fields:
    """Read a document's YAML. Raises `UsageError` when it is not one mapping.

    Seed 003's product writes texts without quotes, also those that look like numbers: they stay texts.
    """
    document = _object(load_yaml(text), "the document")
    entries = document.get("entries")
    items = cast("list[object]", entries) if isinstance(entries, list) else []
    untyped = any(_untyped(item, _ENTRY_TEXTS) for item in items)
    given = [name for name in _HEADER_TEXTS if document.get(name) is not None]
    if not untyped and not _untyped(document, given):
        return document
    as_text = _object(load_yaml(text, scalars="text"), "the document")
    if untyped:
        texts = cast("list[object]", as_text["entries"])
        document["entries"] = [_retyped(*pair, _ENTRY_TEXTS) for pair in zip(items, texts, strict=True)]
    return _object(_retyped(document, as_text, given), "the document")


def entry_list(value: object, where: str) -> list[Append]:
    """Read a list of stored entries; errors say which one is wrong."""
    return [_appended(item, f"{where}[{at}]") for at, item in enumerate(_items(value, where))]


def _stored(record: Append) -> Fields:
    fields = entry_to_dict(record.entry)
    return fields if record.key is None else {**fields, "key": record.key}


def _appended(value: object, where: str) -> Append:
    fields = _object(value, where)
    key = fields.pop("key", None)
    if key is not None and not isinstance(key, str):
        raise UsageError(f"{where}.key is not text; quote it")
    try:
        return Append(entry_from_dict(fields), key)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error


def _records(fields: Mapping[str, object]) -> list[Record]:
    """Walk back from the visible list, putting back what each truncation took off it."""
    visible = entry_list(_given(fields, "entries", []), "entries")
    newest_first: list[Record] = []
    for at, item in reversed(list(enumerate(_items(_given(fields, "removed", []), "removed")))):
        where = f"removed[{at}]"
        removal = _object(item, where)
        keep = removal.get("keep")
        if type(keep) is not int or keep < 0:
            raise UsageError(f"{where}.keep is not a count; write a whole number of 0 or more")
        newest_first += reversed(visible[keep:])
        del visible[keep:]
        newest_first.append(Truncate(len(visible)))
        visible += entry_list(_given(removal, "entries", []), f"{where}.entries")
    newest_first += reversed(visible)
    return newest_first[::-1]


def _untyped(item: object, names: Sequence[str]) -> list[str]:
    """Return which of the fields that are texts are numbers, true, false or nothing in `item`."""
    fields = cast("Fields", item) if isinstance(item, dict) else {}
    return [name for name in names if not isinstance(fields.get(name, ""), str | list | dict)]


def _retyped(item: object, as_text: object, names: Sequence[str]) -> object:
    """Return `item` with its texts as they stand in the file, as `as_text` has them."""
    untyped = _untyped(item, names)
    if not untyped:
        return item
    texts = cast("Fields", as_text)
    return cast("Fields", item) | {name: texts[name] for name in untyped}


def _items(value: object, where: str) -> list[object]:
    if isinstance(value, list):
        return cast("list[object]", value)
    raise UsageError(f"{where} is not a list; write one item per line, each behind a dash")


def _object(value: object, where: str) -> Fields:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    raise UsageError(f"{where} is not a mapping; write fields as `name: value`")


def _given(fields: Mapping[str, object], key: str, default: object) -> object:
    value = fields.get(key)
    return default if value is None else value


def _text(fields: Mapping[str, object], key: str, *, default: str) -> str:
    value = fields.get(key)
    if value is None or isinstance(value, str):
        return value or default
    raise UsageError(f"{key} is not text; quote it")


def _mode(value: object) -> WorkflowMode:
    if value is None or isinstance(value, str | int):
        return value
    raise UsageError("workflowMode is not a word, a number or true or false; quote it")
