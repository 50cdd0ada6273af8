"""The search index: words are put in a moment after their entry, and found from the first moment on.

An append does not wait for its words, which cost more than all the rest of it: the conversation is marked,
the writer thread indexes it when it has nothing else to do, and a search reads what is not indexed yet.
"""

import sqlite3
import sys
from collections.abc import Iterator
from typing import NamedTuple

from dialoom.base.errors import UsageError
from dialoom.conversation.entries import TextEntry, entry_from_json
from dialoom.conversation.search import SearchQuery, words
from dialoom.stores.conversation_rows import SHIFT

_BATCH = 256
# a record may have been truncated since its text was read
_INSERT_WORDS = (
    "INSERT INTO word (words, rowid) SELECT ?, number FROM record WHERE number = ? AND shown IS NOT NULL"
)
_UNMARK = """DELETE FROM unindexed WHERE number = ? AND NOT EXISTS (
    SELECT 1 FROM conversation WHERE conversation.number = unindexed.number AND indexed < length)"""


class _Unindexed(NamedTuple):
    """The visible texts of records `since` to `until` of one conversation, by their row."""

    number: int
    since: int
    until: int
    texts: dict[int, str]


def index_some(connection: sqlite3.Connection) -> bool:
    """Index some records, and no more than some hundred; return whether there were any.

    Words are cut outside the transaction, so that a long text keeps no other writer waiting.
    """
    parts = list(_unindexed(connection, conversations=_BATCH, records=_BATCH))
    if not parts:
        return False
    found = [[(" ".join(words(text)), row) for row, text in part.texts.items()] for part in parts]
    connection.execute("BEGIN IMMEDIATE")
    for part, rows in zip(parts, found, strict=True):
        marked = connection.execute(
            "UPDATE conversation SET indexed = ? WHERE number = ? AND indexed = ?",
            (part.until, part.number, part.since),
        )
        if marked.rowcount:  # else another process was first, or the conversation is gone
            connection.executemany(_INSERT_WORDS, rows)
        connection.execute(_UNMARK, (part.number,))
    connection.execute("COMMIT")
    return True


def merge_words(connection: sqlite3.Connection) -> bool:
    """Merge away a piece of what deleted conversations left in the index; return whether there is more.

    The pieces are short transactions, so writers wait little.
    """
    if connection.execute("SELECT 1 FROM leftover").fetchone() is None:
        return False
    connection.execute("BEGIN IMMEDIATE")
    changes = connection.total_changes
    connection.execute("INSERT INTO word (word, rank) VALUES ('merge', -64)")
    done = connection.total_changes - changes < 2  # SQLite's own sign that nothing was left to merge
    if done:
        connection.execute("DELETE FROM leftover")
    connection.execute("COMMIT")
    if done:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the log of changes holds the old pages
    return not done


def tidy_words(connection: sqlite3.Connection) -> bool:
    """Do a piece of what the index still needs; return whether there may be more."""
    return index_some(connection) or merge_words(connection)


def match_expression(search: SearchQuery) -> str:
    """Return a query in SQLite's language; words hold no quotes, and the last of a term may go on."""
    return " AND ".join(f'"{" ".join(term)}" *' for term in search.terms)


def match_unindexed(connection: sqlite3.Connection, search: SearchQuery) -> set[int]:
    """Return the numbers of conversations that match with what is not in the index yet."""
    return {
        part.number
        for part in _unindexed(connection)
        if any(search.matches(text) for text in part.texts.values())
    }


def _unindexed(
    connection: sqlite3.Connection, *, conversations: int = -1, records: int = sys.maxsize
) -> Iterator[_Unindexed]:
    """Yield what is not in the index: all of it, or so many records of so many conversations."""
    marked = connection.execute(
        "SELECT number, indexed, length FROM unindexed JOIN conversation USING (number) LIMIT ?",
        (conversations,),
    ).fetchall()
    for number, since, length in marked:
        if records <= 0:
            return
        until = min(length, since + records)
        records -= until - since
        rows = connection.execute(
            "SELECT number, body FROM record WHERE number > ? AND number <= ? AND shown IS NOT NULL",
            (number << SHIFT | since, number << SHIFT | until),
        )
        texts = {row: text for row, body in rows if (text := _text(body))}
        yield _Unindexed(number, since, until, texts)


def _text(body: str) -> str:
    """Return what is searched of a stored entry; nothing of a damaged one, which loading reports."""
    try:
        entry = entry_from_json(body)
    except UsageError:
        return ""
    return entry.content if isinstance(entry, TextEntry) else ""
