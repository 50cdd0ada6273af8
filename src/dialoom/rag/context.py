"""The numbered sources a model is shown: the best passages, joined where they touch, within a budget."""

import re
from collections.abc import Iterable, Sequence

import msgspec

from dialoom.rag.boundaries import safe_cut
from dialoom.rag.types import Chunk, Metadata, ScoredChunk

_WIDE = re.compile("[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef]")
_LATIN_PER_TOKEN = 4
_NEAR = 4  # chunks drop the white space between them; so much apart they still touch
_PER_SOURCE = 12  # tokens for the number and the title


class ContextSource(msgspec.Struct, frozen=True, kw_only=True):
    """One numbered source: a passage of a document and what names it to a reader."""

    index: int
    id: str
    doc_id: str
    title: str
    text: str
    score: float
    page: int | None = None
    heading_path: tuple[str, ...] = ()
    metadata: Metadata = {}


def estimate_tokens(text: str) -> int:
    """About how many tokens a model makes of a text: one per East Asian character, one per four others."""
    wide = len(_WIDE.findall(text))
    return wide + -(-(len(text) - wide) // _LATIN_PER_TOKEN)


def limit_per_document(hits: Iterable[ScoredChunk], most: int) -> list[ScoredChunk]:
    """The hits in their order, at most `most` of each document."""
    seen: dict[str, int] = {}
    kept: list[ScoredChunk] = []
    for hit in hits:
        count = seen[hit.chunk.doc_id] = seen.get(hit.chunk.doc_id, 0) + 1
        if count <= most:
            kept.append(hit)
    return kept


def number_sources(hits: Sequence[ScoredChunk], *, max_tokens: int) -> list[ContextSource]:
    """Sources numbered from 1, best first, as many of the hits as fit into `max_tokens` (estimated).

    Hits of one document that overlap or touch become one source under the id of the first. A first hit that
    is too long alone is cut to fit, so that there is always a source when there is a hit.
    """
    taken: list[ScoredChunk] = []
    left = max_tokens
    for hit in hits:
        cost = estimate_tokens(hit.chunk.text) + _PER_SOURCE
        if cost <= left:
            taken.append(hit)
            left -= cost
        elif not taken:
            taken.append(_shortened(hit, left - _PER_SOURCE))
            break
    merged = sorted(_merge(taken), key=lambda hit: -hit.score)
    return [_source(place, hit) for place, hit in enumerate(merged, 1)]


def context_text(sources: Iterable[ContextSource]) -> str:
    """The sources as one text: a line with number and title above each passage."""
    return "\n\n".join(f"[{source.index}] {source.title}\n{source.text}" for source in sources)


def source_title(chunk: Chunk) -> str:
    """What names a chunk's place to a reader: the file, then its record, rows, page or heading."""
    name = str(chunk.metadata.get("source") or chunk.doc_id).rsplit("/", 1)[-1]
    row, last = chunk.metadata.get("row"), chunk.metadata.get("last_row")
    record = chunk.metadata.get("record")
    if record is not None:
        return f"{name}, record {record}"
    if row is not None:
        return f"{name}, row {row}" if last in (None, row) else f"{name}, rows {row} to {last}"
    if chunk.page is not None:
        return f"{name}, page {chunk.page}"
    return f"{name}, {chunk.heading_path[-1]}" if chunk.heading_path else name


def _source(index: int, hit: ScoredChunk) -> ContextSource:
    chunk = hit.chunk
    return ContextSource(
        index=index,
        id=chunk.id,
        doc_id=chunk.doc_id,
        title=source_title(chunk),
        text=chunk.text,
        score=hit.score,
        page=chunk.page,
        heading_path=chunk.heading_path,
        metadata=chunk.metadata,
    )


def _shortened(hit: ScoredChunk, tokens: int) -> ScoredChunk:
    """The hit cut to a text that is sure to fit: no character makes more than one token of the estimate."""
    chunk = hit.chunk
    end = safe_cut(chunk.text, max(tokens, 1), floor=0) if len(chunk.text) > tokens else len(chunk.text)
    cut = msgspec.structs.replace(chunk, text=chunk.text[:end], end=chunk.start + end)
    return ScoredChunk(cut, hit.score)


def _merge(hits: Sequence[ScoredChunk]) -> list[ScoredChunk]:
    merged: list[ScoredChunk] = []
    for hit in sorted(hits, key=lambda hit: (hit.chunk.doc_id, hit.chunk.start)):
        before = merged[-1] if merged else None
        if before is not None and _touch(before.chunk, hit.chunk):
            merged[-1] = ScoredChunk(_joined(before.chunk, hit.chunk), max(before.score, hit.score))
        else:
            merged.append(hit)
    return merged


def _touch(first: Chunk, second: Chunk) -> bool:
    # a chunk made by hand may have no offsets; then its text and its span do not agree
    placed = all(len(chunk.text) == chunk.end - chunk.start for chunk in (first, second))
    return placed and first.doc_id == second.doc_id and second.start <= first.end + _NEAR


def _joined(first: Chunk, second: Chunk) -> Chunk:
    gap = second.start - first.end
    text = first.text + "\n" * gap + second.text if gap > 0 else first.text + second.text[-gap:]
    metadata = first.metadata | {key: second.metadata[key] for key in ("last_row",) if key in second.metadata}
    return msgspec.structs.replace(first, text=text, end=max(first.end, second.end), metadata=metadata)
