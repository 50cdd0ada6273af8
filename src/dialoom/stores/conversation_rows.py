"""Conversations as rows: what each table is asked, and how a log is laid out in them."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from dialoom.base.errors import StoreError, UsageError
from dialoom.conversation.entries import MAX_JSON_CHARS, Entry, entry_from_json, entry_to_json
from dialoom.conversation.header import Header, WorkflowMode
from dialoom.conversation.records import Append, Record, Truncate
from dialoom.conversation.search import words
from dialoom.conversation.store import ConversationNotFoundError

SHIFT = 32
"""A row's number is its conversation's, shifted by this, plus a place within it."""


class Place(NamedTuple):
    """Where a conversation's log stands: its number, how many records, how many visible, last change."""

    id: str
    number: int
    length: int
    visible: int
    updated: float


class Addition(NamedTuple):
    """An entry ready to be stored: its delivery key and its JSON."""

    key: str | None
    body: str


Step: TypeAlias = Addition | Truncate


class _About(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of a header that no query asks for."""

    branch_from: str | None = None
    workflow_mode: WorkflowMode = None
    settings: dict[str, object] = {}
    meta: dict[str, object] = {}


class HeaderRow(NamedTuple):
    """A header as it is stored; what no query asks for is JSON in `about`."""

    id: str
    title: str
    created: float
    updated: float
    about: str

    def header(self) -> Header:
        """Read the row. Raises `StoreError` for a damaged one."""
        try:
            msgspec.convert(tuple(self), HeaderRow)  # a damaged column can hold a value of any type
            rest = msgspec.json.decode(self.about, type=_About)
            return Header(
                id=self.id,
                title=self.title,
                created=self.created,
                updated=self.updated,
                branch_from=rest.branch_from,
                workflow_mode=rest.workflow_mode,
                settings=rest.settings,
                meta=rest.meta,
            )
        except (msgspec.DecodeError, UsageError) as error:
            raise _damage(self.id) from error


def find_place(connection: sqlite3.Connection, conversation_id: str) -> Place:
    """Return where the log stands. Raises `ConversationNotFoundError`, and `StoreError` for a damaged row."""
    row = connection.execute(
        "SELECT id, number, length, visible, updated FROM conversation WHERE id = ?", (conversation_id,)
    ).fetchone()
    if row is None:
        raise ConversationNotFoundError(conversation_id)
    try:
        return msgspec.convert(row, Place)
    except msgspec.ValidationError as error:
        raise _damage(conversation_id) from error


def find_number(connection: sqlite3.Connection, conversation_id: str) -> int:
    """Return the number of a conversation, damaged or not. Raises `ConversationNotFoundError`."""
    row = connection.execute("SELECT number FROM conversation WHERE id = ?", (conversation_id,)).fetchone()
    if row is None:
        raise ConversationNotFoundError(conversation_id)
    return row[0]


def exists(connection: sqlite3.Connection, conversation_id: str) -> bool:
    found = connection.execute("SELECT 1 FROM conversation WHERE id = ?", (conversation_id,))
    return found.fetchone() is not None


def steps_of(records: Iterable[Record]) -> list[Step]:
    """Encode `records`. Raises `UsageError` for an entry that could not be read back."""
    return [each if isinstance(each, Truncate) else Addition(each.key, _body(each.entry)) for each in records]


def extend_log(connection: sqlite3.Connection, place: Place, steps: Sequence[Step]) -> Place:
    """Write the steps that change anything; return where the log then stands."""
    number, length, visible = place.number, place.length, place.visible
    for step in _effective(connection, place, steps):
        length += 1
        row = number << SHIFT | length
        if isinstance(step, Truncate):
            _hide(connection, number, step.keep, visible)
            connection.execute("INSERT INTO record (number, keep) VALUES (?, ?)", (row, step.keep))
            visible = step.keep
        else:
            shown = number << SHIFT | visible
            connection.execute(
                "INSERT INTO record (number, shown, key, body) VALUES (?, ?, ?, ?)",
                (row, shown, step.key, step.body),
            )
            visible += 1
    if length > place.length:
        connection.execute("INSERT OR IGNORE INTO unindexed VALUES (?)", (number,))
    return place._replace(length=length, visible=visible)


def write_place(connection: sqlite3.Connection, place: Place) -> None:
    connection.execute(
        "UPDATE conversation SET length = ?, visible = ?, updated = ? WHERE number = ?",
        (place.length, place.visible, place.updated, place.number),
    )


def insert_header(connection: sqlite3.Connection, header: Header, about: str) -> Place:
    """Add a conversation without records."""
    number = connection.execute(
        "INSERT INTO conversation (id, title, created, updated, about, length, visible, indexed)"
        " VALUES (?, ?, ?, ?, ?, 0, 0, 0)",
        (header.id, header.title, header.created, header.updated, about),
    ).lastrowid
    assert number is not None
    _write_title_words(connection, number, header.title)
    return Place(header.id, number, 0, 0, header.updated)


def update_header(connection: sqlite3.Connection, number: int, header: Header, about: str) -> None:
    connection.execute(
        "UPDATE conversation SET title = ?, updated = ?, about = ? WHERE number = ?",
        (header.title, header.updated, about, number),
    )
    connection.execute("DELETE FROM word WHERE rowid = ?", (number << SHIFT,))
    _write_title_words(connection, number, header.title)


def about_text(header: Header) -> str:
    """Encode what of a header has no column. Raises `UsageError` when it could not be read back."""
    about = _About(header.branch_from, header.workflow_mode, header.settings, header.meta)
    try:
        text = msgspec.json.encode(about).decode()
        msgspec.json.decode(text, type=_About)
    except (ValueError, msgspec.DecodeError) as error:  # an int of more digits than Python reads
        raise UsageError(f"conversation {header.id} has settings that json cannot hold: {error}") from error
    return text


def read_header(connection: sqlite3.Connection, conversation_id: str) -> Header:
    """Return one header. Raises `ConversationNotFoundError`."""
    found = read_rows(connection, "WHERE id = ?", (conversation_id,))
    if not found:
        raise ConversationNotFoundError(conversation_id)
    return found[0].header()


def read_rows(connection: sqlite3.Connection, clauses: str, values: Sequence[object]) -> list[HeaderRow]:
    """Return rows chosen by constant SQL `clauses`."""
    rows = connection.execute(
        f"SELECT id, title, created, updated, about FROM conversation {clauses}",  # noqa: S608 - constants
        values,
    )
    return [HeaderRow(*row) for row in rows]


def read_records(connection: sqlite3.Connection, place: Place) -> list[Record]:
    """Return the whole log."""
    rows = connection.execute(
        "SELECT key, keep, body FROM record WHERE number BETWEEN ? AND ? ORDER BY number", _span(place.number)
    )
    try:
        return [
            Truncate(keep) if body is None else Append(_entry(body, place.id), key)
            for key, keep, body in rows
        ]
    except UsageError as error:
        raise _damage(place.id) from error


def read_visible(connection: sqlite3.Connection, place: Place, *, start: int, end: int) -> tuple[Entry, ...]:
    """Return the visible entries from `start` to before `end`; reads no others."""
    rows = connection.execute(
        "SELECT body FROM record WHERE shown >= ? AND shown < ? ORDER BY shown",
        (place.number << SHIFT | start, place.number << SHIFT | end),
    )
    return tuple(_entry(body, place.id) for (body,) in rows)


def delete_rows(connection: sqlite3.Connection, number: int) -> None:
    """Remove a conversation with all that belongs to it, and contents no other conversation has."""
    connection.execute("DELETE FROM word WHERE rowid BETWEEN ? AND ?", _span(number))
    connection.execute("DELETE FROM record WHERE number BETWEEN ? AND ?", _span(number))
    connection.execute("DELETE FROM unindexed WHERE number = ?", (number,))
    connection.execute("DELETE FROM draft WHERE conversation = ?", (number,))
    connection.execute(
        "DELETE FROM content WHERE hash IN (SELECT hash FROM attachment AS own WHERE conversation = :number"
        " AND NOT EXISTS (SELECT 1 FROM attachment WHERE hash = own.hash AND conversation != :number))",
        {"number": number},
    )
    connection.execute("DELETE FROM attachment WHERE conversation = ?", (number,))
    connection.execute("DELETE FROM conversation WHERE number = ?", (number,))
    connection.execute("INSERT OR IGNORE INTO leftover VALUES (1)")


def _effective(connection: sqlite3.Connection, place: Place, steps: Sequence[Step]) -> list[Step]:
    """Leave out what changes nothing: known keys, truncations that keep all. Reads only."""
    visible = place.visible
    kept: list[Step] = []
    keys: set[str] = set()
    for step in steps:
        if isinstance(step, Truncate):
            if step.keep >= visible:
                continue
            visible = step.keep
        elif step.key is not None and (step.key in keys or _is_delivered(connection, place.number, step.key)):
            continue
        else:
            visible += 1
            keys |= {step.key} if step.key is not None else set()
        kept.append(step)
    return kept


def _is_delivered(connection: sqlite3.Connection, number: int, key: str) -> bool:
    found = connection.execute("SELECT 1 FROM record WHERE number >> 32 = ? AND key = ?", (number, key))
    return found.fetchone() is not None


def _hide(connection: sqlite3.Connection, number: int, keep: int, visible: int) -> None:
    """Take the entries from `keep` on off the visible list; they are the newest, so their rows follow on."""
    first, last = number << SHIFT | keep, number << SHIFT | visible - 1
    (row,) = connection.execute("SELECT number FROM record WHERE shown = ?", (first,)).fetchone()
    connection.execute("UPDATE record SET shown = NULL WHERE shown BETWEEN ? AND ?", (first, last))
    connection.execute("DELETE FROM word WHERE rowid BETWEEN ? AND ?", (row, _span(number)[1]))


def _write_title_words(connection: sqlite3.Connection, number: int, title: str) -> None:
    connection.execute(
        "INSERT INTO word (rowid, words) VALUES (?, ?)", (number << SHIFT, " ".join(words(title)))
    )


def _span(number: int) -> tuple[int, int]:
    """First and last number a row of this conversation may have."""
    return number << SHIFT, (number + 1 << SHIFT) - 1


def _body(entry: Entry) -> str:
    try:
        body = entry_to_json(entry)
    except ValueError as error:  # an int of more digits than Python writes
        raise UsageError(f"an entry holds what json cannot hold: {error}; make it text") from error
    if len(body) > MAX_JSON_CHARS:
        raise UsageError(f"an entry of {len(body)} characters is over the limit of {MAX_JSON_CHARS}; cut it")
    return body


def _entry(body: str, conversation_id: str) -> Entry:
    try:
        return entry_from_json(body)
    except UsageError as error:
        raise _damage(conversation_id) from error


def _damage(conversation_id: str) -> StoreError:
    return StoreError(f"conversation {conversation_id} has a damaged row; restore the file from a copy")
