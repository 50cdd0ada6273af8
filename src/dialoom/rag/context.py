"""The numbered sources a model is shown: the best passages, joined where they touch, within a budget."""

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dialoom.rag.boundaries import safe_cut
from dialoom.rag.passage import joined_text
from dialoom.rag.types import Chunk, Metadata, ScoredChunk

_WIDE = re.compile("[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef]")
_LATIN_PER_TOKEN = 4
_NEAR = 4  # chunks drop the white space between them; so much apart they still touch
_PER_SOURCE = 12  # tokens for the number and the title


class Span(msgspec.Struct, frozen=True):
    """From `start` up to, not including, `end`, in characters of a source's text."""

    start: int
    end: int


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
    start: int = 0
    """Where the text begins in its document."""
    best: Span | None = None
    """The sentence of the text that says most about the question, when one touches it."""


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
    """Sources numbered from 1 in the order of the hits, as many as fit into `max_tokens` (estimated).

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
    ranks = {hit.chunk.id: rank for rank, hit in reversed([*enumerate(taken)])}
    merged = sorted(_merge(taken, ranks), key=lambda found: found[0])
    return [_source(place, hit) for place, (_, hit) in enumerate(merged, 1)]


def cited_first(sources: Sequence[ContextSource], order: Sequence[int]) -> list[ContextSource]:
    """The sources numbered anew: those of the numbers in `order` first, then the others as they were."""
    places = [number - 1 for number in order]
    others = sorted(set(range(len(sources))).difference(places))
    return [
        msgspec.structs.replace(sources[place], index=index)
        for index, place in enumerate([*places, *others], 1)
    ]


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
        start=chunk.start,
    )


def _shortened(hit: ScoredChunk, tokens: int) -> ScoredChunk:
    """The hit cut to a text that is sure to fit: no character makes more than one token of the estimate."""
    chunk = hit.chunk
    end = safe_cut(chunk.text, max(tokens, 1), floor=0) if len(chunk.text) > tokens else len(chunk.text)
    cut = msgspec.structs.replace(chunk, text=chunk.text[:end], end=chunk.start + end)
    return ScoredChunk(cut, hit.score)


def _merge(hits: Sequence[ScoredChunk], ranks: Mapping[str, int]) -> list[tuple[int, ScoredChunk]]:
    """The hits with those that touch made one, each with the best rank of what is in it."""
    merged: list[tuple[int, ScoredChunk]] = []
    for hit in sorted(hits, key=lambda hit: (hit.chunk.doc_id, hit.chunk.start)):
        rank = ranks[hit.chunk.id]
        if merged and _touch(merged[-1][1].chunk, hit.chunk):
            best, before = merged[-1]
            joined = _joined(before.chunk, hit.chunk)
            merged[-1] = min(best, rank), ScoredChunk(joined, max(before.score, hit.score))
        else:
            merged.append((rank, hit))
    return merged


def _touch(first: Chunk, second: Chunk) -> bool:
    # a chunk made by hand may have no offsets; then its text and its span do not agree
    placed = all(len(chunk.text) == chunk.end - chunk.start for chunk in (first, second))
    return placed and first.doc_id == second.doc_id and second.start <= first.end + _NEAR


def _joined(first: Chunk, second: Chunk) -> Chunk:
    text = joined_text(first.text, second, gap=second.start - first.end)
    metadata = first.metadata | {key: second.metadata[key] for key in ("last_row",) if key in second.metadata}
    return msgspec.structs.replace(first, text=text, end=max(first.end, second.end), metadata=metadata)
