"""Listings of conversations: a page costs the same among a thousand and among a million."""

import json
import sqlite3
from collections.abc import Iterable

from dialoom.base.errors import StoreError
from dialoom.conversation.header import Header
from dialoom.conversation.search import SearchQuery
from dialoom.stores.conversation_file import ORIGIN
from dialoom.stores.conversation_rows import HeaderRow, read_rows
from dialoom.stores.conversation_words import match_expression, match_unindexed
from dialoom.stores.left_out import LeftOut


def list_branches(connection: sqlite3.Connection, conversation_id: str, left_out: LeftOut) -> list[Header]:
    """Return the headers of those that branched from this one, oldest first; `left_out` has damaged ones."""
    rows = read_rows(connection, f"WHERE {ORIGIN} = ? ORDER BY created, id", (conversation_id,))
    return _readable(rows, left_out)


def list_headers(
    connection: sqlite3.Connection,
    search: SearchQuery | None,
    *,
    after: tuple[float, str] | None,
    limit: int,
    left_out: LeftOut,
) -> list[Header]:
    """Return up to `limit` headers behind `after`, newest change first; with `search`, those it matches.

    Damaged ones are noted in `left_out`, and further ones come in their place.
    """
    found: list[Header] = []
    while (wanted := limit - len(found)) > 0:
        rows = _rows(connection, search, after=after, limit=wanted)
        found += _readable(rows, left_out)
        if len(rows) < wanted:
            break
        after = (rows[-1].updated, rows[-1].id)
    return found


def _readable(rows: Iterable[HeaderRow], left_out: LeftOut) -> list[Header]:
    found: list[Header] = []
    for row in rows:
        try:
            found.append(row.header())
        except StoreError as error:
            left_out.report(row.id, str(error))
        else:
            left_out.settle(row.id)
    return found


def _rows(
    connection: sqlite3.Connection,
    search: SearchQuery | None,
    *,
    after: tuple[float, str] | None,
    limit: int,
) -> list[HeaderRow]:
    conditions: list[str] = []
    values: list[object] = []
    if search is not None:
        if not search.terms:
            return []
        conditions.append(
            "number IN (SELECT rowid >> 32 FROM word WHERE word MATCH ? UNION SELECT value FROM json_each(?))"
        )
        values += (match_expression(search), json.dumps(sorted(match_unindexed(connection, search))))
    if after is not None:
        updated, conversation_id = after
        # the first comparison alone bounds the walk over the index
        conditions.append("updated <= ? AND (updated < ? OR id > ?)")
        values += (updated, updated, conversation_id)
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    return read_rows(connection, f"{where}ORDER BY updated DESC, id LIMIT ?", (*values, limit))
