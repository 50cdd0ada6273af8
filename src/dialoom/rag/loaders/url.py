"""Web pages become documents: fetched under the policy, then read as the file they say they are."""

import asyncio
import os.path
import re
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import msgspec

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.net.address import safe_url
from dialoom.net.fetch import FetchedPage, fetch_url
from dialoom.net.fetch_pinned import UrlFetcher
from dialoom.net.guard import UrlPolicy, UrlRefusal, UrlRefusedError
from dialoom.net.resolve import Resolver
from dialoom.net.transport import TransportError
from dialoom.rag.errors import LoadError
from dialoom.rag.loaders.load import load_source
from dialoom.rag.loaders.loader import DocumentLoader, Loaded, LoadOptions, Source
from dialoom.rag.loaders.page import known_charset

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}://")
_EXTENSIONS = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/markdown": ".md",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "application/jsonl": ".jsonl",
    "application/x-ndjson": ".jsonl",
    "application/pdf": ".pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
}
_TEXT_EXTENSIONS = frozenset({".md", ".markdown", ".csv", ".tsv", ".log", ".jsonl", ".ndjson"})


class BlockedUrlError(LoadError):
    """The policy does not let this URL, or what it led to, be read. `code` is one of `UrlRefusal`."""

    def __init__(self, refused: UrlRefusedError, *, source: str) -> None:
        super().__init__("unreadable", str(refused), source=source)
        self.reason: UrlRefusal = refused.reason
        vars(self)["code"] = refused.reason


class UrlLoader:
    """Fetches a page and reads it as one file; its id is the URL as it was asked for.

    `fetcher` and `resolver` take the places of those of the options, `extractor` that of the loader that
    the type of the page asks for.
    """

    def __init__(
        self,
        fetcher: UrlFetcher | None = None,
        *,
        resolver: Resolver | None = None,
        extractor: DocumentLoader | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._resolver = resolver
        self._extractor = extractor

    def load(self, url: str, options: LoadOptions | None = None, *, clock: Clock = SYSTEM_CLOCK) -> Loaded:
        """Read one page. Raises `BlockedUrlError` when it may not be, `LoadError` when it cannot be."""
        options = options or LoadOptions()
        page = self._fetch(url, options)
        if page.status >= 400:
            raise LoadError("unreadable", f"{safe_url(url)} answered {page.status}; check it", source=url)
        source = Source(
            id=url.partition("#")[0],
            data=page.body,
            options=options,
            clock=clock,
            started=clock.monotonic(),
            charset=known_charset(page.charset),
        )
        return self._extractor.load(source) if self._extractor else load_source(source, _extension(page))

    def _fetch(self, url: str, options: LoadOptions) -> FetchedPage:
        fetcher = self._fetcher or options.url_fetcher
        resolver = self._resolver or options.url_resolver
        fetching = fetch_url(url, _policy(options), fetcher=fetcher, resolver=resolver)
        try:
            # a thread of its own, because the caller's may be running an event loop already
            with ThreadPoolExecutor(1, thread_name_prefix="dialoom-fetch") as executor:
                return executor.submit(asyncio.run, fetching).result()
        except UrlRefusedError as error:
            raise BlockedUrlError(error, source=url) from error
        except TransportError as error:
            code = "timeout" if error.kind == "timeout" else "unreadable"
            raise LoadError(code, str(error), source=url) from error


def is_url(text: str) -> bool:
    """Whether `text` is meant as a URL, one that will be refused too, and not as a path."""
    return _URL.match(text) is not None


def _policy(options: LoadOptions) -> UrlPolicy:
    """The policy of the options, no wider than their bound on every source."""
    most = min(options.url_policy.max_bytes, options.max_source_bytes)
    return msgspec.structs.replace(options.url_policy, max_bytes=most)


def _extension(page: FetchedPage) -> str:
    """The kind of file a page is read as: by its type, and for plain text by the end of its path."""
    if page.content_type in _EXTENSIONS:
        return _EXTENSIONS[page.content_type]
    written = os.path.splitext(urlsplit(page.url).path)[1].lower()  # noqa: PTH122 - of a URL, not of a file
    return written if written in _TEXT_EXTENSIONS else ".txt"
