"""The cache of vectors as one SQLite file, which several processes may share."""

import logging
import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Self

from dialoom.rag.cached_embedder import VectorCache
from dialoom.stores.sqlite_opener import SqliteKind

_log = logging.getLogger("dialoom.rag")
_KEYS_AT_ONCE = 500
_CACHE = SqliteKind(
    holds="vectors",
    application_id=0x446C6D56,  # "DlmV": vectors of dialoom
    layout=1,
    schema=(
        """CREATE TABLE vectors (
            number INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL UNIQUE, vector BLOB NOT NULL)""",
    ),
)


class SqliteVectorCache(VectorCache):
    """Keeps the newest `most` vectors: a million of 384 numbers are 1.6 GB.

    Opening raises `StoreError` for a file of another kind and a place that cannot be used. After that nothing
    does: a cache that fails knows nothing, and says so once in the log.
    """

    def __init__(self, path: str | os.PathLike[str], *, most: int = 1_000_000) -> None:
        self.path = Path(path)
        self._most = most
        self._lock = Lock()
        self._failed = False
        self._connection = _CACHE.open(self.path, synchronous="normal")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; a closed cache knows nothing."""
        with self._lock:
            self._connection.close()

    def get(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        with self._lock:
            try:
                for start in range(0, len(keys), _KEYS_AT_ONCE):
                    some = keys[start : start + _KEYS_AT_ONCE]
                    marks = ",".join("?" * len(some))
                    ask = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"  # noqa: S608 - marks only
                    found |= self._connection.execute(ask, some).fetchall()
            except sqlite3.Error as error:
                self._tell(error)
        return found

    def put(self, values: Mapping[bytes, bytes]) -> None:
        with self._lock:
            try:
                with self._connection as connection:  # commits, and takes all back after an error
                    connection.execute("BEGIN IMMEDIATE")
                    connection.executemany(
                        "INSERT OR REPLACE INTO vectors (key, vector) VALUES (?, ?)", values.items()
                    )
                    oldest = "DELETE FROM vectors WHERE number <= (SELECT max(number) FROM vectors) - ?"
                    connection.execute(oldest, (self._most,))
            except sqlite3.Error as error:
                self._tell(error)

    def _tell(self, error: sqlite3.Error) -> None:
        if not self._failed:
            self._failed = True
            _log.warning("the cache of vectors fails; they are computed", extra={"why": str(error)})
