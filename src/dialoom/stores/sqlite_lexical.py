"""The words of the SQLite index: an FTS5 table that holds tokens only, changed together with the chunks."""

import sqlite3
from collections.abc import Iterable, Sequence

from dialoom.rag.passage import indexed_text
from dialoom.rag.types import Chunk
from dialoom.rag.words import TOKENIZER, tokens
from dialoom.stores.sqlite_filter import Sql

# `ascii` takes our tokens as they are: every sign beyond ASCII is a letter to it. No text is kept twice, so a
# row can only be taken out by naming the tokens it was put in with.
CREATE = "CREATE VIRTUAL TABLE words USING fts5 (tokens, content = '', tokenize = 'ascii')"
CURRENT = f"INSERT OR REPLACE INTO manifest VALUES ('words', '{TOKENIZER}')"  # noqa: S608 - a constant
_INSERT = "INSERT INTO words (rowid, tokens) VALUES (?, ?)"
_DELETE = "INSERT INTO words (words, rowid, tokens) VALUES ('delete', ?, ?)"


def words_are_current(connection: sqlite3.Connection) -> bool:
    """Whether the table was made by the tokenizer of this release."""
    found = connection.execute("SELECT value FROM manifest WHERE key = 'words'").fetchone()
    return found is not None and found[0] == TOKENIZER


def rebuild_words(connection: sqlite3.Connection, chunks: Iterable[tuple[int, Chunk]]) -> None:
    """Make the table anew from all chunks and their numbers."""
    connection.execute("DROP TABLE IF EXISTS words")
    connection.execute(CREATE)
    insert_words(connection, chunks)
    connection.execute(CURRENT)


def insert_words(connection: sqlite3.Connection, chunks: Iterable[tuple[int, Chunk]]) -> None:
    connection.executemany(_INSERT, _rows(chunks))


def delete_words(connection: sqlite3.Connection, chunks: Iterable[tuple[int, Chunk]]) -> None:
    """Take out the words of chunks as they are stored now."""
    connection.executemany(_DELETE, _rows(chunks))


def clear_words(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO words (words) VALUES ('delete-all')")


def find_words(
    connection: sqlite3.Connection, wanted: Sequence[str], most: int, *, where: Sql | None = None
) -> list[tuple[int, float]]:
    """The numbers of the best chunks with one of the tokens, and their BM25; all when `most` is below 0."""
    asked = " OR ".join(f'"{token}"' for token in wanted)  # a token holds no quotation mark
    if not asked:
        return []
    condition, arguments = where or ("1", [])
    also = f"EXISTS (SELECT 1 FROM chunks WHERE number = words.rowid AND {condition})" if where else "1"  # noqa: S608 - all is bound
    found = connection.execute(
        f"SELECT rowid, bm25(words) AS cost FROM words WHERE words MATCH ? AND {also} "  # noqa: S608 - all is bound
        "ORDER BY cost, rowid LIMIT ?",
        (asked, *arguments, most),
    )
    return [(number, -cost) for number, cost in found]


def _rows(chunks: Iterable[tuple[int, Chunk]]) -> Iterable[tuple[int, str]]:
    return ((number, " ".join(tokens(indexed_text(chunk)))) for number, chunk in chunks)
