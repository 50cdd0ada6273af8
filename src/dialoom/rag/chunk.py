"""Documents are cut into chunks: at the end of a thought where there is one, never inside a character."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal, Protocol

from dialoom.rag.blank import is_blank
from dialoom.rag.boundaries import Boundaries, find_boundaries, is_safe, safe_cut, word_cut, word_start
from dialoom.rag.counts import check_count
from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.types import Chunk, Document, Heading, Metadata

Unit = Literal["chars", "bytes"]


_STRETCH = 200_000
_UNSURE = 2_000
"""What lies beyond a stretch may move the places in its last characters."""


class Chunker(Protocol):
    """Cuts a document into chunks whose offsets are exact: `chunk.text == document.text[start:end]`."""

    def chunk(self, document: Document) -> list[Chunk]: ...

    def signature(self) -> str:
        """Says how it cuts; two chunkers with one signature cut alike. Kept in the index's manifest."""
        ...


class SlidingWindowChunker:
    """Windows of at most `chunk_size` units that share up to `overlap` with the one before.

    A window ends at a section, paragraph, sentence, clause or word, in this order of preference; one that
    has none of these ends at a whole character as people see it (emoji with all its parts). Records of a
    table stay whole and do not overlap unless one alone is too long. Raises `InvalidOptionsError`.
    """

    def __init__(self, chunk_size: int = 400, overlap: int = 60, *, unit: Unit = "chars") -> None:
        check_count(chunk_size, "chunk_size", least=4)
        check_count(overlap, "overlap", least=0)
        if chunk_size > 1_000_000:
            raise InvalidOptionsError(f"chunk_size must be from 4 to 1000000, not {chunk_size}")
        if overlap >= chunk_size:
            raise InvalidOptionsError(f"overlap must be from 0 to below chunk_size, not {overlap}")
        if unit not in ("chars", "bytes"):
            raise InvalidOptionsError(f'unit must be "chars" or "bytes", not {unit!r}')
        self._size = chunk_size
        self._overlap = overlap
        self._bytes = unit == "bytes"
        self._signature = f"sliding-v1/{chunk_size}/{overlap}/{unit}"

    def signature(self) -> str:
        return self._signature

    def chunk(self, document: Document) -> list[Chunk]:
        """Return the chunks in order; none for a text without a word."""
        if is_blank(document.text):
            return []
        spans = self._record_spans(document) if document.rows else self._windows(document, 0, None)
        where = _Where(document)
        chunks: list[Chunk] = []
        for span in spans:
            start, end = _trim(document.text, *span)
            text = document.text[start:end]
            # white space at a window's end may leave one that holds nothing new
            if not is_blank(text) and not (chunks and end <= chunks[-1].end):
                chunks.append(where.chunk(len(chunks), text, start))
        return chunks

    def _windows(self, document: Document, start: int, stop: int | None) -> Iterator[tuple[int, int]]:
        text = document.text
        start, stop = _trim(text, start, len(text) if stop is None else stop)
        starts = [heading.start for heading in document.headings]
        boundaries, sure = Boundaries([], [], [], []), -1
        while start < stop:
            start = _skip_space(text, start, stop)
            limit = self._limit(text, start, stop)
            if limit >= stop:
                yield start, stop
                return
            if limit > sure:  # a stretch at a time: the places of a whole book take more room than the book
                end = min(start + _STRETCH + 4 * self._size, stop)
                boundaries = find_boundaries(text, starts, start=start, stop=end)
                sure = end if end == stop else end - _UNSURE
            end = self._end(text, boundaries, start, limit)
            yield start, end
            start = self._next(text, boundaries, start, end)

    def _record_spans(self, document: Document) -> Iterator[tuple[int, int]]:
        """Whole records, as many as fit; a record that is too long alone gets windows of its own."""
        first, last = -1, -1
        for row in document.rows:
            if first >= 0 and self._units(document.text, first, row.end) <= self._size:
                last = row.end
                continue
            if first >= 0:
                yield first, last
            first, last = row.start, row.end
            if self._units(document.text, first, last) > self._size:
                yield from self._windows(document, first, last)
                first = -1
        if first >= 0:
            yield first, last

    def _units(self, text: str, start: int, end: int) -> int:
        if not self._bytes or end - start > self._size:
            return end - start
        return len(text[start:end].encode("utf-8", "surrogatepass"))

    def _limit(self, text: str, start: int, stop: int) -> int:
        """The furthest place a window from `start` may end at, a whole character."""
        limit = min(start + self._size, stop)
        if self._bytes:
            room = text[start:limit].encode("utf-8", "surrogatepass")
            limit = start + len(room[: self._size].decode("utf-8", "ignore"))
        if limit >= stop:
            return stop
        cut = safe_cut(text, limit, floor=start)
        # a single character longer than the window has to be cut after all
        return cut if cut > start else max(limit, start + 1)

    def _end(self, text: str, boundaries: Boundaries, start: int, limit: int) -> int:
        least = start + min(self._overlap, limit - start - 1)
        quarter, half = (max(least, start + (limit - start) // part) for part in (4, 2))
        section = bisect_right(boundaries.sections, quarter)
        if section < len(boundaries.sections) and boundaries.sections[section] <= limit:
            return boundaries.sections[section]  # the first, for a chunk is best about one thing
        for places, floor in (
            (boundaries.paragraphs, half),
            (boundaries.sentences, quarter),
            (boundaries.clauses, half),
        ):
            end = _last_before(places, limit)
            if end > floor and is_safe(text, end, floor=start):
                return end
        return word_cut(text, limit, least=max(least + 1, half), floor=start)

    def _next(self, text: str, boundaries: Boundaries, start: int, end: int) -> int:
        """Where the next window starts: up to `overlap` before `end`, at a sentence or word if it can.

        A new section starts with its heading, not with the end of the one before.
        """
        if self._overlap == 0 or _last_before(boundaries.sections, end) == end:
            return end
        back = end - self._overlap
        if self._bytes:
            tail = text[max(start, back) : end].encode("utf-8", "surrogatepass")[-self._overlap :]
            back = end - len(tail.decode("utf-8", "ignore"))
        back = max(back, start + 1)
        for places in (boundaries.sections, boundaries.paragraphs, boundaries.sentences):
            place = bisect_right(places, back - 1)
            if place < len(places) and places[place] < end and is_safe(text, places[place], floor=start):
                return places[place]
        return word_start(text, back, end, floor=start)


class _Where:
    """Knows the page, headings and record a place in one document lies in; asked in order of place."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._pages = [page.start for page in document.pages]
        self._rows = [row.start for row in document.rows]
        self._headings = iter(document.headings)
        self._coming = next(self._headings, None)
        self._path: tuple[Heading, ...] = ()

    def chunk(self, number: int, text: str, start: int) -> Chunk:
        document = self._document
        metadata = document.metadata
        if document.rows:
            metadata = self._with_records(metadata, start, start + len(text))
        page = bisect_right(self._pages, start) - 1
        return Chunk(
            id=f"{document.id}#{number}",
            doc_id=document.id,
            text=text,
            start=start,
            end=start + len(text),
            page=document.pages[page].number if page >= 0 else None,
            heading_path=self._heading_path(start),
            metadata=metadata,
        )

    def _with_records(self, metadata: Metadata, start: int, end: int) -> Metadata:
        first = max(bisect_right(self._rows, start) - 1, 0)
        last = max(bisect_right(self._rows, end - 1) - 1, first)
        numbers = {"row": self._document.rows[first].number, "last_row": self._document.rows[last].number}
        return {**metadata, **numbers}

    def _heading_path(self, start: int) -> tuple[str, ...]:
        while self._coming is not None and self._coming.start <= start:
            level = self._coming.level
            above = tuple(heading for heading in self._path if heading.level < level)
            self._path = (*above, self._coming)
            self._coming = next(self._headings, None)
        return tuple(heading.text for heading in self._path)


def _last_before(places: list[int], limit: int) -> int:
    place = bisect_right(places, limit)
    return places[place - 1] if place else -1


def _skip_space(text: str, start: int, stop: int) -> int:
    while start < stop and text[start].isspace():
        start += 1
    return start


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    start = _skip_space(text, start, end)
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
