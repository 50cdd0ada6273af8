"""What a loader is given, within which bounds it works, and what it gives back."""

from collections.abc import Callable, Mapping
from typing import Literal, Protocol

import msgspec

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.net.fetch_pinned import UrlFetcher
from dialoom.net.guard import UrlPolicy
from dialoom.net.resolve import Resolver
from dialoom.rag.errors import InvalidOptionsError, LoadError
from dialoom.rag.types import Document, LoadWarning, Metadata, wrong_metadata

HtmlMode = Literal["all", "main"]
IsolatedFormat = Literal["pdf", "docx", "html"]
HtmlParser = Callable[[str], str]
"""From the source of a page to its text."""
TextExtractor = Callable[[bytes], str]
"""From the bytes of a file to its text. May raise `LoadError`."""


_POSITIVE = (
    "max_source_bytes",
    "max_extracted_bytes",
    "extractor_timeout",
    "extractor_memory_mb",
    "max_depth",
)


class LoadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds and choices for reading. Raises `InvalidOptionsError` for a bound that is not positive."""

    max_source_bytes: int = 100_000_000
    """A larger file is refused before it is read."""
    max_extracted_bytes: int = 50_000_000
    """More text, or more unpacked XML, than this stops the extraction."""
    extractor_timeout: float = 60.0
    """Seconds one file may take. A reader process that takes longer is ended."""
    extractor_memory_mb: int = 1_024
    """What a reader process may use, in megabytes, beside what it needs to start."""
    isolated: frozenset[IsolatedFormat] = frozenset({"pdf", "docx", "html"})
    """The formats that are read in limited child processes, where the system has limits (POSIX)."""
    html_mode: HtmlMode = "all"
    """`main` keeps the article of a page and drops menus and banners."""
    hidden: bool = False
    """Read files and folders whose name starts with a dot."""
    recursive: bool = True
    """Go into folders below the given one."""
    outside_links: bool = False
    """Follow links that lead out of the folder: nobody named what is there, and it may be the whole disk."""
    max_depth: int = 64
    """Folders deeper than this are reported and left out."""
    exclude: frozenset[str] = frozenset()
    """What a walk passes by without a word, by absolute path: an index among its documents."""
    loaders: Mapping[str, "DocumentLoader"] = {}
    """Your own loaders by extension (`.rst`), asked before the built-in ones."""
    html_parser: HtmlParser | None = None
    """Your own way from a page to its text, in place of ours."""
    metadata: Metadata = {}
    """Put on every document, over what its loader found."""
    url_policy: UrlPolicy = UrlPolicy()
    """What may be fetched."""
    url_fetcher: UrlFetcher | None = None
    """Your own way of sending a request; None for ours."""
    url_resolver: Resolver | None = None
    """Your own way of looking up names; None for the system's."""

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            if not getattr(self, name) > 0:
                raise InvalidOptionsError(f"{name} must be above 0, not {getattr(self, name)}")
        if wrong := wrong_metadata(self.metadata):
            raise InvalidOptionsError(wrong)


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of one file or page, its id (absolute path, or URL) and the bounds on reading it.

    `charset` is the codec that the transport named, if any.
    """

    id: str
    data: bytes
    options: LoadOptions
    clock: Clock = SYSTEM_CLOCK
    started: float = 0.0
    charset: str | None = None

    def check_time(self) -> None:
        """Raise `LoadError("timeout")` when reading has taken longer than the options allow."""
        if self.clock.monotonic() - self.started > self.options.extractor_timeout:
            raise self.too_slow()

    def check_extracted(self, size: int) -> None:
        """Raise `LoadError("limit")` when `size` characters of text, or bytes of XML, are too much."""
        if size > self.options.max_extracted_bytes:
            raise self.too_much()

    def too_slow(self) -> LoadError:
        """The error that says that the time is over."""
        return LoadError(
            "timeout",
            f"reading {self.id} took over {self.options.extractor_timeout:g} s; "
            "split the file or raise extractor_timeout",
            source=self.id,
        )

    def too_much(self) -> LoadError:
        """The error that says that there is more text than allowed."""
        return LoadError(
            "limit",
            f"{self.id} unpacks to more than {self.options.max_extracted_bytes} bytes; "
            "split the file or raise max_extracted_bytes",
            source=self.id,
        )

    def corrupt(self, what: str) -> LoadError:
        """The error that says what is broken in this source."""
        return LoadError("corrupt", f"{self.id} {what}; replace the file", source=self.id)


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """What one file held: its documents in order, and what a reader of the report should know."""

    source: str
    documents: list[Document]
    warnings: list[LoadWarning] = []


class DocumentLoader(Protocol):
    """Turns the bytes of one file into documents.

    Runs on any thread, keeps nothing between calls, raises `LoadError` and nothing else for bad content.
    """

    def load(self, source: Source) -> Loaded: ...
