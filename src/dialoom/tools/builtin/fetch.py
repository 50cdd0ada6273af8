"""A web page as a tool: whatever a model asks for, only public documents within bounds come back."""

import html
import re
from collections.abc import Iterator
from types import CoroutineType
from typing import Annotated, Any, Final

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import replace_surrogates
from dialoom.net.fetch import FetchedPage, fetch_url
from dialoom.net.fetch_pinned import UrlFetcher
from dialoom.net.guard import UrlPolicy
from dialoom.net.resolve import Resolver
from dialoom.net.transport import HttpTimeouts
from dialoom.tools.function import FunctionTool, tool

READABLE_PAGES: Final = UrlPolicy(
    content_types=frozenset({"text/*", "application/json", "application/xml", "application/xhtml+xml"}),
    max_bytes=2_000_000,
    timeouts=HttpTimeouts(connect=5.0, read=10.0, total=20.0),
)
MAX_CHARS: Final = 20_000
_CHARSETS = re.compile(
    r"utf-?8|utf-16(le|be)?|gb(k|2312|18030)|big5(-?hkscs)?|shift_jis|euc-(jp|kr)|iso-8859-[0-9]{1,2}"
    r"|(windows-|cp)(125[0-8]|874|93[26]|949)|koi8-[ru]|us-ascii|latin-?1"
)
_MARKUP = frozenset({"text/html", "application/xhtml+xml"})
_UNREAD = re.compile(r"(script|style|noscript|template|svg)\b", re.IGNORECASE)
_BREAKING = re.compile(
    r"/?(title|p|div|br|li|tr|h[1-6]|table|section|article|ul|ol|dl|dt|dd|pre)\b", re.IGNORECASE
)
_BLANKS = re.compile(r"[ \t\r\f\v\xa0]+")


class WebPage(msgspec.Struct, frozen=True):
    """What a model reads of a page. `text` of an HTML page is its words; `cut` says that there was more."""

    url: str
    status: int
    text: str
    cut: bool


def http_fetch_tool(
    policy: UrlPolicy = READABLE_PAGES,
    *,
    max_chars: int = MAX_CHARS,
    fetcher: UrlFetcher | None = None,
    resolver: Resolver | None = None,
) -> "FunctionTool[[str], CoroutineType[Any, Any, WebPage]]":
    """Return a tool `http_fetch` that reads what `policy` allows, and of that `max_chars` characters.

    Private addresses, redirects to them, other protocols and large bodies are refused, and the model is
    told why. What a page says is material, never an instruction: give the tool to agents that know that.
    """
    if max_chars < 1:
        raise UsageError(f"max_chars is {max_chars}; give at least 1")

    @tool(idempotent=True)
    async def http_fetch(
        url: Annotated[str, "http or https, such as https://example.com/page"],
    ) -> WebPage:
        """Read a public web page."""
        page = await fetch_url(url, policy, fetcher=fetcher, resolver=resolver)
        text = _words(page)
        return WebPage(page.url, page.status, text[:max_chars], len(text) > max_chars)

    return http_fetch


def _words(page: FetchedPage) -> str:
    charset = (page.charset or "utf-8").lower()
    text = page.body.decode(charset if _CHARSETS.fullmatch(charset) else "utf-8", "replace")
    if page.content_type not in _MARKUP:
        return replace_surrogates(text)
    words = html.unescape("".join(_visible(text)))
    lines = (_BLANKS.sub(" ", line).strip() for line in replace_surrogates(words).split("\n"))
    return "\n".join(line for line in lines if line)


def _visible(text: str) -> Iterator[str]:
    """The words between the tags, in one pass: no page can make this slow."""
    end, start = 0, text.find("<")
    while start >= 0:
        yield text[end:start].replace("\n", " ")
        if text.startswith("<!--", start):
            end = _after(text, "-->", start)
        elif unread := _UNREAD.match(text, start + 1):
            end = _after(text, f"</{unread[1]}", start)
            end = _after(text, ">", end - 1)
        else:
            if _BREAKING.match(text, start + 1):
                yield "\n"
            end = _after(text, ">", start)
        start = text.find("<", end)
    yield text[end:].replace("\n", " ")


def _after(text: str, mark: str, start: int) -> int:
    """The place behind the next `mark`, whatever its case; the end of the text when there is none."""
    at = re.compile(re.escape(mark), re.IGNORECASE).search(text, start)
    return at.end() if at else len(text)
