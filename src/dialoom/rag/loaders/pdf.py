"""PDF files: the text layer, page by page."""

import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from threading import Lock
from typing import Protocol, cast

from dialoom.rag.blank import is_blank
from dialoom.rag.errors import LoadError
from dialoom.rag.loaders.loader import Loaded, Source, TextExtractor
from dialoom.rag.loaders.plain import extracted
from dialoom.rag.types import Document, Heading, LoadWarning, Metadata, PageSpan

_PDFIUM = Lock()  # PDFium keeps global state: one call at a time in a process
_PASSWORD_NEEDED = 4
_SOFT_HYPHEN = re.compile("[\x02\ufffe]\n?|\u00ad\n")  # PDFium's marks for a word broken at a line's end
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_BETWEEN_PAGES = "\n\n"
_MOST_BOOKMARKS = 10_000


class _TextPage(Protocol):
    def get_text_bounded(self) -> str: ...
    def close(self) -> None: ...


class _Page(Protocol):
    def get_textpage(self) -> _TextPage: ...
    def close(self) -> None: ...


class _Destination(Protocol):
    def get_index(self) -> int | None: ...


class _Bookmark(Protocol):
    level: int

    def get_title(self) -> str: ...
    def get_dest(self) -> _Destination | None: ...


class _Pdf(Protocol):
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> _Page: ...
    def get_toc(self) -> Iterator[_Bookmark]: ...
    def get_metadata_value(self, key: str) -> str: ...
    def close(self) -> None: ...


class _Pdfium(Protocol):
    """What we use of pypdfium2, which ships no types."""

    PdfiumError: type[Exception]

    def PdfDocument(self, data: bytes) -> _Pdf: ...  # noqa: N802 - the library's own name


class PdfLoader:
    """One document per file with its pages and bookmarks.

    A file that opens with the empty password is read; one that needs another raises `LoadError("encrypted")`.
    A file whose pages are all images gives no document and the warning `no_text_layer`. An extractor of your
    own, such as OCR, makes the text in its place.
    """

    def __init__(self, extractor: TextExtractor | None = None) -> None:
        self._extractor = extractor

    def load(self, source: Source) -> Loaded:
        if self._extractor is not None:
            return extracted(source, self._extractor)
        pdfium = _pdfium()
        with _PDFIUM:
            pdf = _open(pdfium, source)
            try:
                return _read(pdf, source)
            except pdfium.PdfiumError as error:
                raise source.corrupt("is damaged inside") from error
            finally:
                pdf.close()


def _pdfium() -> _Pdfium:
    return cast("_Pdfium", import_module("pypdfium2"))


def _open(pdfium: _Pdfium, source: Source) -> _Pdf:
    try:
        return pdfium.PdfDocument(source.data)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == _PASSWORD_NEEDED:
            message = f"{source.id} is locked with a password; save it without one"
            raise LoadError("encrypted", message, source=source.id) from error
        raise source.corrupt("is not a readable PDF") from error


def _read(pdf: _Pdf, source: Source) -> Loaded:
    pieces: list[str] = []
    pages: list[PageSpan] = []
    length = 0
    for index in range(len(pdf)):
        source.check_time()
        text = _page_text(pdf[index])
        source.check_extracted(length + len(text))
        pages.append(PageSpan(index + 1, length, length + len(text)))
        pieces.append(text)
        length += len(text) + len(_BETWEEN_PAGES)
    whole = _BETWEEN_PAGES.join(pieces)
    if is_blank(whole):
        message = f"{source.id} has {len(pages)} pages and no text layer; run OCR on it first"
        warning = LoadWarning("no_text_layer", message, source.id)
        return Loaded(source=source.id, documents=[], warnings=[warning])
    metadata: Metadata = {"source": source.id, "pages": len(pages)}
    title = _label(pdf.get_metadata_value, "Title")
    if title and title.lower() != "untitled":
        metadata["title"] = title
    headings = _headings(pdf, whole, pages)
    document = Document(id=source.id, text=whole, metadata=metadata, pages=tuple(pages), headings=headings)
    return Loaded(source=source.id, documents=[document])


def _page_text(page: _Page) -> str:
    try:
        layer = page.get_textpage()
        try:
            text = layer.get_text_bounded()
        finally:
            layer.close()
    finally:
        page.close()
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", _SOFT_HYPHEN.sub("", text)).strip()


def _label(read: Callable[..., str], *key: str) -> str:
    """A title as one line; one that is not valid UTF-16 is no title."""
    try:
        return " ".join(read(*key).split())
    except UnicodeDecodeError:
        return ""


def _headings(pdf: _Pdf, text: str, pages: Sequence[PageSpan]) -> tuple[Heading, ...]:
    """The bookmarks, each where its title stands on its page, or else where the page begins."""
    found: list[Heading] = []
    after = 0
    for bookmark, _ in zip(pdf.get_toc(), range(_MOST_BOOKMARKS), strict=False):
        target = bookmark.get_dest()
        index = target.get_index() if target else None
        title = _label(bookmark.get_title)
        if index is None or not 0 <= index < len(pages) or not title:
            continue
        page = pages[index]
        at = text.find(title, max(page.start, after), page.end)
        start = at if at >= 0 else max(page.start, after)
        if start < page.end:
            found.append(Heading(min(bookmark.level + 1, 6), title, start))
            after = start + 1
    return tuple(found)
