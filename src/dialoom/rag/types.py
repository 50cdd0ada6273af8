"""The values of knowledge: documents, the chunks they are cut into, and what was found or went wrong."""

from collections.abc import Mapping
from typing import Literal, cast

import msgspec

from dialoom.base.errors import MissingExtraError

try:
    import numpy as np
    from numpy.typing import NDArray
except ImportError as error:  # every module of this package comes by here, so one check covers the extra
    raise MissingExtraError("numpy", "rag") from error

MetaValue = str | int | float | bool | list[str] | None
Metadata = dict[str, MetaValue]
_PLAIN = (str, int, float, type(None))
FloatMatrix = NDArray[np.float32]
"""Shape (n, dim), one row per text."""
FloatVector = NDArray[np.float32]
"""Shape (dim,)."""

WarningCode = Literal["decode", "empty", "no_text_layer", "ragged", "duplicate_id", "bad_line"]


class PageSpan(msgspec.Struct, frozen=True):
    """Where page `number` (from 1) lies in the text of its document."""

    number: int
    start: int
    end: int


class Heading(msgspec.Struct, frozen=True):
    """A heading of `level` 1 to 6 whose line starts at `start`."""

    level: int
    text: str
    start: int


class RowSpan(msgspec.Struct, frozen=True):
    """Where record `number` (from 1, the header not counted) lies in the text of its document."""

    number: int
    start: int
    end: int


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One readable text and where it came from.

    `id` is the absolute path with forward slashes; a record of a JSONL file adds `#` and its own id.
    Spans and headings are in order, as offsets into `text`. Metadata is flat; `source` names the file.
    """

    id: str
    text: str
    metadata: Metadata = {}
    pages: tuple[PageSpan, ...] = ()
    headings: tuple[Heading, ...] = ()
    rows: tuple[RowSpan, ...] = ()


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of one document: `text` is exactly `document.text[start:end]`.

    `page` is the page the chunk starts on, `heading_path` the headings above its start, outermost first.
    """

    id: str
    doc_id: str
    text: str
    start: int = 0
    end: int = 0
    page: int | None = None
    heading_path: tuple[str, ...] = ()
    metadata: Metadata = {}


class ScoredChunk(msgspec.Struct, frozen=True):
    """A chunk that was found, and how well it fits the question: more is better.

    Whatever found it says what its scores mean: a store's `search` gives cosines from -1 to 1, `search_words`
    BM25, and each retriever its own. Compare the scores of one answer only.
    """

    chunk: Chunk
    score: float


class LoadWarning(msgspec.Struct, frozen=True):
    """Something a reader of the report should know; the source was read all the same."""

    code: WarningCode
    message: str
    source: str
    line: int | None = None


def wrong_metadata(metadata: Mapping[str, object]) -> str:
    """What is wrong with metadata that somebody's own code made, in one line; nothing when it is flat."""
    for name, value in metadata.items():
        if type(value) is not str and not _is_flat(value):
            kept = "a text, a number, true or false, or a list of texts"
            return f"the metadata {name!r} is a {type(value).__name__}; give {kept}"
    return ""


def _is_flat(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(each, str) for each in cast("list[object]", value))
    return isinstance(value, _PLAIN)
