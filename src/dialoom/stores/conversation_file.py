"""What a SQLite file of conversations is made of."""

from typing import Final

from dialoom.stores.sqlite_opener import SqliteKind

ORIGIN: Final = "CASE WHEN json_valid(about) THEN json_extract(about, '$.branch_from') END"
"""What a conversation branched from, as SQL."""
_SCHEMA: Final = (
    # numbers are never used again, so no row can come to belong to another conversation
    """CREATE TABLE conversation (
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
        created REAL NOT NULL, updated REAL NOT NULL, about TEXT NOT NULL,
        length INTEGER NOT NULL, visible INTEGER NOT NULL, indexed INTEGER NOT NULL)""",
    "CREATE INDEX conversation_by_change ON conversation (updated DESC, id)",
    # files made before it was here are read without it, only slower
    f"CREATE INDEX conversation_by_origin ON conversation ({ORIGIN})",
    # number: conversation number << 32 | place in the log, from 1; shown: the same with the index in the
    # visible list, NULL when truncated; body: an entry as JSON, or NULL where `keep` says what was kept
    """CREATE TABLE record (
        number INTEGER PRIMARY KEY, shown INTEGER, key TEXT, keep INTEGER, body TEXT,
        CHECK ((keep IS NULL) != (body IS NULL)))""",
    "CREATE UNIQUE INDEX record_shown ON record (shown) WHERE shown IS NOT NULL",
    "CREATE UNIQUE INDEX record_key ON record (number >> 32, key) WHERE key IS NOT NULL",
    # rows are numbered as records are; a title has place 0
    """CREATE VIRTUAL TABLE word USING fts5 (words, columnsize = 0, tokenize = "ascii tokenchars '_'")""",
    """CREATE TABLE draft (
        conversation INTEGER NOT NULL, slot TEXT NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (conversation, slot)) WITHOUT ROWID""",
    "CREATE TABLE content (hash TEXT PRIMARY KEY, bytes BLOB NOT NULL)",
    """CREATE TABLE attachment (
        conversation INTEGER NOT NULL, hash TEXT NOT NULL, name TEXT NOT NULL, mime TEXT NOT NULL,
        size INTEGER NOT NULL, PRIMARY KEY (conversation, hash)) WITHOUT ROWID""",
    "CREATE INDEX attachment_by_hash ON attachment (hash)",
    # conversations with records behind `indexed`: their words are still to be put in
    "CREATE TABLE unindexed (number INTEGER PRIMARY KEY)",
    # one row, while words of deleted conversations are still to be merged away
    "CREATE TABLE leftover (merging INTEGER PRIMARY KEY)",
)
CONVERSATIONS: Final = SqliteKind(
    holds="conversations",
    application_id=0x446C6D43,  # "DlmC": conversations of dialoom
    layout=1,
    schema=_SCHEMA,
)
