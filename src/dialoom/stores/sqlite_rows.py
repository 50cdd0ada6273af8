"""The statements of the SQLite index: functions over a connection, inside the caller's transaction."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from dialoom.rag.errors import CorruptIndexError
from dialoom.rag.manifest import IndexManifest
from dialoom.rag.rows import check_rows, unit_rows
from dialoom.rag.store import DocumentChunks, SourceRecord
from dialoom.rag.types import Chunk, FloatMatrix, Metadata
from dialoom.stores.sqlite_filter import Sql
from dialoom.stores.sqlite_lexical import delete_words, insert_words

_COLUMNS = "number, id, doc_id, text, start, stop, page, heading_path, metadata"
_AT_ONCE = 500
_FLOATS = {2: "<f2", 4: "<f4"}
"""By bytes per number. Half precision finds the same (decision 0050); layout 1 wrote single precision."""


class Block(msgspec.Struct, frozen=True):
    """Some rows of one document as they are stored together: the numbers of the chunks, and their vectors."""

    version: int
    numbers: NDArray[np.int64]
    stored: NDArray[np.float16] | NDArray[np.float32]

    def rows(self, start: int = 0, stop: int | None = None) -> FloatMatrix:
        """Some of the vectors, for single precision takes more room than the file has. All are finite."""
        return check_rows(self.stored[start:stop].astype(np.float32), None)


def read_manifest(connection: sqlite3.Connection) -> IndexManifest | None:
    found = connection.execute("SELECT value FROM manifest WHERE key = 'index'").fetchone()
    if found is None:
        return None
    try:
        return msgspec.json.decode(found[0], type=IndexManifest)
    except ValueError as error:
        raise CorruptIndexError("the manifest of the index cannot be read; rebuild the index") from error


def write_manifest(connection: sqlite3.Connection, manifest: IndexManifest) -> None:
    connection.execute("INSERT INTO manifest VALUES ('index', ?)", (msgspec.json.encode(manifest).decode(),))


def read_generation(connection: sqlite3.Connection) -> int:
    """Goes up with every commit, so a reader sees in one row whether anything changed."""
    return int(connection.execute("SELECT value FROM manifest WHERE key = 'generation'").fetchone()[0])


def count_up(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE manifest SET value = value + 1 WHERE key = 'generation'")


def count_chunks(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM chunks").fetchone()[0])


def stored_dim(connection: sqlite3.Connection) -> int | None:
    """The dimension of the vectors that are there, None when there are none."""
    found = connection.execute("SELECT dim FROM vectors LIMIT 1").fetchone()
    return None if found is None else int(found[0])


def delete_documents(connection: sqlite3.Connection, doc_ids: Iterable[str]) -> None:
    keys = [(doc_id,) for doc_id in dict.fromkeys(doc_ids)]  # words are taken out once only
    for (doc_id,) in keys:
        delete_words(connection, chunks_of(connection, doc_id))
    for table, column in (("chunks", "doc_id"), ("vectors", "doc_id"), ("documents", "id")):
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", keys)  # noqa: S608 - names above


def insert_document(connection: sqlite3.Connection, document: DocumentChunks, source: str | None) -> None:
    """Add the chunks as a block of their own; they have been checked, and no chunk of theirs is there."""
    last = {chunk.id: place for place, chunk in enumerate(document.chunks)}
    places = sorted(last.values())
    numbers = [_insert_chunk(connection, document.chunks[place]) for place in places]
    insert_words(connection, zip(numbers, (document.chunks[place] for place in places), strict=True))
    _insert_block(connection, document.doc_id, numbers, np.asarray(document.vectors)[places])
    connection.execute(
        "INSERT INTO documents VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET source = "
        "coalesce(excluded.source, source)",
        (document.doc_id, source),
    )


def _insert_chunk(connection: sqlite3.Connection, chunk: Chunk) -> int:
    number = connection.execute(
        f"INSERT INTO chunks ({_COLUMNS}) VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - a constant
        (
            chunk.id,
            chunk.doc_id,
            chunk.text,
            chunk.start,
            chunk.end,
            chunk.page,
            msgspec.json.encode(chunk.heading_path).decode(),
            msgspec.json.encode(chunk.metadata).decode(),
        ),
    ).lastrowid
    assert number is not None
    return number


def _insert_block(
    connection: sqlite3.Connection, doc_id: str, numbers: Sequence[int], rows: FloatMatrix
) -> None:
    connection.execute(
        "INSERT INTO vectors (doc_id, dim, numbers, data) VALUES (?, ?, ?, ?)",
        (doc_id, rows.shape[1], np.array(numbers, "<i8").tobytes(), unit_rows(rows).astype("<f2").tobytes()),
    )


def delete_chunks(connection: sqlite3.Connection, chunk_ids: Iterable[str]) -> int:
    """Take out single chunks wherever they are, and what they leave empty. How many there were."""
    wanted = msgspec.json.encode(list(chunk_ids)).decode()
    found = connection.execute(
        "SELECT number, doc_id FROM chunks WHERE id IN (SELECT value FROM json_each(?))", (wanted,)
    ).fetchall()
    numbers_of: dict[str, list[int]] = {}
    for number, doc_id in found:
        numbers_of.setdefault(doc_id, []).append(number)
    for doc_id, numbers in numbers_of.items():
        delete_words(connection, read_chunks(connection, numbers).items())
        connection.executemany("DELETE FROM chunks WHERE number = ?", [(number,) for number in numbers])
        _thin_out(connection, doc_id, numbers)
    return len(found)


def _thin_out(connection: sqlite3.Connection, doc_id: str, gone: Sequence[int]) -> None:
    left = 0
    for block in [*read_blocks(connection, "WHERE doc_id = ? ORDER BY version", (doc_id,))]:
        keep = ~np.isin(block.numbers, gone)
        left += int(keep.sum())
        if keep.all():
            continue
        connection.execute("DELETE FROM vectors WHERE version = ?", (block.version,))
        if keep.any():
            _insert_block(connection, doc_id, block.numbers[keep].tolist(), block.rows()[keep])
    if not left:
        connection.execute("DELETE FROM documents WHERE id = ?", (doc_id,))


def read_versions(connection: sqlite3.Connection) -> set[int]:
    """The blocks that are there now. A block never changes: a change is another block."""
    return {row[0] for row in connection.execute("SELECT version FROM vectors")}


def read_blocks(
    connection: sqlite3.Connection, condition: str, arguments: Sequence[object] = ()
) -> Iterator[Block]:
    """The blocks under a condition, one by one. Raises `CorruptIndexError` for one whose parts do not fit."""
    for version, dim, raw_numbers, raw_rows in connection.execute(
        f"SELECT version, dim, numbers, data FROM vectors {condition}",  # noqa: S608 - conditions of ours
        arguments,
    ):
        size, odd = divmod(len(raw_rows) * 8, len(raw_numbers) * dim or 1)
        if len(raw_numbers) % 8 or dim < 1 or odd or size not in _FLOATS:
            raise CorruptIndexError("a vector of the index is damaged; rebuild the index")
        numbers = np.frombuffer(raw_numbers, "<i8").astype(np.int64, copy=False)
        yield Block(version, numbers, np.frombuffer(raw_rows, _FLOATS[size]).reshape(len(numbers), dim))


def read_chunks(connection: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, Chunk]:
    """The chunks of some numbers, all of which are there."""
    chunks: dict[int, Chunk] = {}
    for start in range(0, len(numbers), _AT_ONCE):
        wanted = msgspec.json.encode(list(numbers[start : start + _AT_ONCE])).decode()
        for row in connection.execute(
            f"SELECT {_COLUMNS} FROM chunks WHERE number IN (SELECT value FROM json_each(?))",  # noqa: S608
            (wanted,),
        ):
            chunks[row[0]] = _chunk(row)
    if len(chunks) < len(numbers):
        raise CorruptIndexError("the index has vectors without chunks; rebuild the index")
    return chunks


def chunks_of(connection: sqlite3.Connection, doc_id: str) -> list[tuple[int, Chunk]]:
    """The chunks of a document with their numbers, in the order of the numbers."""
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM chunks WHERE doc_id = ? ORDER BY number",  # noqa: S608 - a constant
        (doc_id,),
    )
    return [(row[0], _chunk(row)) for row in found]


def all_chunks(connection: sqlite3.Connection) -> Iterator[tuple[int, Chunk]]:
    """Every chunk with its number, one by one, in the order they were stored."""
    for row in connection.execute(f"SELECT {_COLUMNS} FROM chunks ORDER BY number"):  # noqa: S608 - a constant
        yield row[0], _chunk(row)


def chunk_numbers(connection: sqlite3.Connection, chunk_ids: Sequence[str]) -> dict[str, int]:
    """The numbers of those of some chunks that are there, by id."""
    wanted = msgspec.json.encode(chunk_ids).decode()
    return dict(
        connection.execute(
            "SELECT id, number FROM chunks WHERE id IN (SELECT value FROM json_each(?))", (wanted,)
        ).fetchall()
    )


def passing_numbers(connection: sqlite3.Connection, numbers: Sequence[int], where: Sql) -> set[int]:
    """Those of some numbers whose chunks meet a condition."""
    wanted = msgspec.json.encode(numbers).decode()
    found = connection.execute(
        f"SELECT number FROM chunks WHERE number IN (SELECT value FROM json_each(?)) AND {where[0]}",  # noqa: S608
        (wanted, *where[1]),
    )
    return {row[0] for row in found}


def _chunk(row: Sequence[object]) -> Chunk:
    _, chunk_id, doc_id, text, start, stop, page, headings, metadata = row
    try:
        return msgspec.convert(
            {
                "id": chunk_id,
                "doc_id": doc_id,
                "text": text,
                "start": start,
                "end": stop,
                "page": page,
                "heading_path": msgspec.json.decode(str(headings), type=tuple[str, ...]),
                "metadata": msgspec.json.decode(str(metadata), type=Metadata),
            },
            Chunk,
        )
    except ValueError as error:
        raise CorruptIndexError("a chunk of the index is damaged; rebuild the index") from error


def document_ids(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT id FROM documents ORDER BY id")]


def documents_of(connection: sqlite3.Connection, source: str) -> list[str]:
    return [row[0] for row in connection.execute("SELECT id FROM documents WHERE source = ?", (source,))]


def read_sources(connection: sqlite3.Connection, root: str) -> Mapping[str, SourceRecord]:
    fields = SourceRecord.__struct_fields__
    rows = connection.execute(
        f"SELECT {', '.join(fields)} FROM sources "  # noqa: S608 - names of our own struct
        "WHERE root = ? OR source = ? OR (source > ? AND source < ?)",
        (root, root, f"{root}/", f"{root}0"),  # 0 is what follows / in ASCII
    )
    records = (msgspec.convert(dict(zip(fields, row, strict=True)), SourceRecord) for row in rows)
    return {record.source: record for record in records}


def write_source(connection: sqlite3.Connection, record: SourceRecord) -> None:
    fields = SourceRecord.__struct_fields__
    connection.execute(
        f"INSERT OR REPLACE INTO sources ({', '.join(fields)}) "  # noqa: S608 - names of our own struct
        f"VALUES ({', '.join('?' * len(fields))})",
        msgspec.structs.astuple(record),
    )
