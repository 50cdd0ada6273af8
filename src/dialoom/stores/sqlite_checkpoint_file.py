"""What a SQLite file of checkpoints is made of."""

from typing import Final

from dialoom.stores.sqlite_opener import SqliteKind

_SCHEMA: Final = (
    # numbers are never used again, so no row can come to belong to another thread
    "CREATE TABLE thread (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE)",
    # base: the version whose row holds the state this one is folded from, or begins the thread; size: bytes
    # of that row's body before it was compressed; since: the same of all rows after it up to this one
    """CREATE TABLE checkpoint (
        thread INTEGER NOT NULL, version INTEGER NOT NULL, id TEXT NOT NULL, created REAL NOT NULL,
        base INTEGER NOT NULL, size INTEGER NOT NULL, since INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (thread, version)) WITHOUT ROWID""",
)
CHECKPOINTS: Final = SqliteKind(
    holds="checkpoints",
    application_id=0x446C6D47,  # "DlmG": checkpoints of graphs of dialoom
    layout=1,
    schema=_SCHEMA,
)
