"""A conversation as one document: the layout of seed 003's `{sessionId}.yaml`, which is also our JSON.

Beside `entries`, what people see, `removed` holds what was truncated, newest last, so that a document holds
the whole log: `keep` is the length of the list the entries were taken off.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias, cast

from dialoom.base.clock import Clock
from dialoom.base.errors import UsageError
from dialoom.base.ids import new_id
from dialoom.conversation.entries import entry_from_dict, entry_to_dict
from dialoom.conversation.header import Header, WorkflowMode, from_rfc3339, to_rfc3339
from dialoom.conversation.plain import Plain
from dialoom.conversation.records import Append, Log, Record, Truncate
from dialoom.conversation.yaml_text import load_yaml

Fields: TypeAlias = dict[str, object]

_HEADER_KEYS = frozenset(
    ("sessionId", "title", "createdAt", "updatedAt", "workflowMode", "branchFrom", "settings")
)
_LOG_KEYS = frozenset(("entries", "removed"))
_TEXT_KEYS = ("role", "content", "type", "payload")


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
        **header.meta,
        "entries": [_stored(record) for record in log.visible],
        **({"removed": removed} if removed else {}),
    }


def from_document(fields: Mapping[str, object], clock: Clock) -> tuple[Header, list[Record]]:
    """Read `to_document` back, or a file of seed 003's product.

    A missing id is made, missing times are now. Raises `UsageError` with the place of what is wrong.
    """
    now = to_rfc3339(clock.now())
    created = _text(fields, "createdAt", default=now)
    settings = fields.get("settings", {})
    header = Header(
        id=_text(fields, "sessionId", default="") or new_id(),
        title=_text(fields, "title", default=""),
        branch_from=_text(fields, "branchFrom", default="") or None,
        created=from_rfc3339(created),
        updated=from_rfc3339(_text(fields, "updatedAt", default=created)),
        workflow_mode=_mode(fields.get("workflowMode")),
        settings=_object(settings, "settings"),
        meta={key: value for key, value in fields.items() if key not in _HEADER_KEYS | _LOG_KEYS},
    )
    return header, _records(fields)


def read_yaml(text: str) -> Fields:
    """Read a document's YAML. Raises `UsageError` when it is not one mapping.

    Seed 003's product writes texts without quotes, also those that look like numbers: they stay texts.
    """
    document = _object(load_yaml(text), "the document")
    entries = document.get("entries")
    if isinstance(entries, list):
        items = cast("list[object]", entries)
        if any(_has_untyped_text(item) for item in items):
            as_text = cast("dict[str, list[Plain]]", load_yaml(text, scalars="text"))["entries"]
            document["entries"] = [_retyped(*pair) for pair in zip(items, as_text, strict=True)]
    return document


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
    visible = entry_list(fields.get("entries") or [], "entries")
    newest_first: list[Record] = []
    for at, item in reversed(list(enumerate(_items(fields.get("removed") or [], "removed")))):
        where = f"removed[{at}]"
        removal = _object(item, where)
        keep = removal.get("keep")
        if type(keep) is not int or keep < 0:
            raise UsageError(f"{where}.keep is not a count; write a whole number of 0 or more")
        newest_first += reversed(visible[keep:])
        del visible[keep:]
        newest_first.append(Truncate(len(visible)))
        visible += entry_list(removal.get("entries") or [], f"{where}.entries")
    newest_first += reversed(visible)
    return newest_first[::-1]


def _has_untyped_text(item: object) -> bool:
    if not isinstance(item, dict):
        return False
    fields = cast("Fields", item)
    return any(key in fields and not isinstance(fields[key], str | list | dict) for key in _TEXT_KEYS)


def _retyped(item: object, as_text: Plain) -> object:
    """Return `item` with the texts of an entry as they stand in the file."""
    if not isinstance(as_text, dict):
        return item
    texts: Fields = {key: as_text[key] for key in _TEXT_KEYS if key in as_text}
    return cast("Fields", item) | texts


def _items(value: object, where: str) -> list[object]:
    if isinstance(value, list):
        return cast("list[object]", value)
    raise UsageError(f"{where} is not a list; write one item per line, each behind a dash")


def _object(value: object, where: str) -> Fields:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    raise UsageError(f"{where} is not a mapping; write fields as `name: value`")


def _text(fields: Mapping[str, object], key: str, *, default: str) -> str:
    value = fields.get(key)
    if value is None:
        return default
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # an id or a title of digits, written without quotes
    raise UsageError(f"{key} is not text; quote it")


def _mode(value: object) -> WorkflowMode:
    if value is None or isinstance(value, str | int):
        return value
    raise UsageError("workflowMode is not a word, a number or true or false; quote it")
