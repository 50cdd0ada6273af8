"""An index as one JSON file: the manifest first, vectors as base64 of little-endian float32."""

import base64
import os
from pathlib import Path

import msgspec
import numpy as np

from dialoom.base.errors import StoreError, UsageError
from dialoom.base.files import replace_file
from dialoom.rag.errors import CorruptIndexError, ManifestMissingError
from dialoom.rag.manifest import FORMAT, IndexManifest
from dialoom.rag.store import SourceRecord
from dialoom.rag.types import Chunk, FloatMatrix

_MOST_BYTES = 2_000_000_000


class IndexFile(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an index holds, in memory: one row of `vectors` per chunk."""

    manifest: IndexManifest | None
    chunks: list[Chunk]
    vectors: FloatMatrix
    sources: list[SourceRecord]
    source_of: dict[str, str]


class _Layout(msgspec.Struct, frozen=True, kw_only=True):
    """The same as JSON has it, or as an older version or a person wrote it: vectors as lists, fewer fields.

    `dim` is there for an index without a manifest.
    """

    manifest: IndexManifest | None = None
    dim: int | None = None
    chunks: list[Chunk]
    vectors: str | list[list[float]]
    sources: list[SourceRecord] = []
    source_of: dict[str, str] = {}


def write_index(path: str | os.PathLike[str], index: IndexFile) -> None:
    """Put the index in the place of `path` in one step, safely on the disk.

    Raises `StoreError`, and `UsageError` for text that no file can hold.
    """
    layout = _Layout(
        manifest=index.manifest,
        dim=index.vectors.shape[1],
        chunks=index.chunks,
        vectors=base64.b64encode(index.vectors.astype("<f4").tobytes()).decode("ascii"),
        sources=index.sources,
        source_of=index.source_of,
    )
    target = Path(path)
    try:
        replace_file(target, msgspec.json.encode(layout))
    except UnicodeEncodeError as error:
        raise UsageError("a chunk holds half a surrogate pair; replace it before storing") from error
    except OSError as error:
        reason = (error.strerror or "error").lower()
        raise StoreError(f"the index {target} cannot be written ({reason}); check the folder") from error


def read_index(path: str | os.PathLike[str]) -> IndexFile | None:
    """Read what `write_index` wrote; None when there is no file.

    Raises `CorruptIndexError` for anything that is not a whole index, `ManifestMissingError` for chunks
    without a manifest, `StoreError` when the file cannot be read.
    """
    target = Path(path)
    try:
        if target.stat().st_size > _MOST_BYTES:
            raise CorruptIndexError(f"{target} is too large for a JSON index; use SqliteVectorStore")
        data = target.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = (error.strerror or "error").lower()
        raise StoreError(f"the index {target} cannot be read ({reason}); check its permissions") from error
    try:
        return _parse(data, target)
    except (ValueError, RecursionError) as error:
        message = f"{target} is not a whole index; restore it, or remove it and ingest again"
        raise CorruptIndexError(message) from error


def _parse(data: bytes, target: Path) -> IndexFile:
    layout = msgspec.json.decode(data, type=_Layout)
    if layout.manifest is None and layout.chunks:
        raise ManifestMissingError(
            f"{target} holds chunks but no manifest; remove it and ingest the documents again"
        )
    if layout.manifest is not None and layout.manifest.format > FORMAT:
        raise CorruptIndexError(f"{target} was written by a newer dialoom; upgrade to read it")
    return IndexFile(
        manifest=layout.manifest,
        chunks=layout.chunks,
        vectors=_vectors(layout),
        sources=layout.sources,
        source_of=layout.source_of,
    )


def _vectors(layout: _Layout) -> FloatMatrix:
    """One row per chunk. Raises `ValueError` when they do not fit."""
    count = len(layout.chunks)
    if isinstance(layout.vectors, str):
        flat = np.frombuffer(base64.b64decode(layout.vectors, validate=True), "<f4").astype(np.float32)
        if layout.dim is None or layout.dim < 0 or flat.size != count * layout.dim:
            raise ValueError("the vectors do not fit the chunks")
        return flat.reshape(count, layout.dim)
    rows = np.array(layout.vectors, np.float32)
    if count == 0:
        return np.empty((0, layout.dim or 0), np.float32)
    if rows.ndim != 2 or len(rows) != count:
        raise ValueError("the vectors do not fit the chunks")
    return rows
