"""Listings of conversations: a page costs the same among a thousand and among a million."""

import json
import sqlite3

from dialoom.conversation.header import Header
from dialoom.conversation.search import SearchQuery
from dialoom.stores.conversation_file import ORIGIN
from dialoom.stores.conversation_rows import read_headers
from dialoom.stores.conversation_words import match_expression, match_unindexed


def list_branches(connection: sqlite3.Connection, conversation_id: str) -> list[Header]:
    """Return the headers of those that branched from this one, oldest first."""
    return read_headers(connection, f"WHERE {ORIGIN} = ? ORDER BY created, id", (conversation_id,))


def list_headers(
    connection: sqlite3.Connection,
    search: SearchQuery | None,
    *,
    after: tuple[float, str] | None,
    limit: int,
) -> list[Header]:
    """Return up to `limit` headers behind `after`, newest change first; with `search`, those it matches."""
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
    return read_headers(connection, f"{where}ORDER BY updated DESC, id LIMIT ?", (*values, limit))
