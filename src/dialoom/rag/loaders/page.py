"""HTML pages: the words people see, with the headings above them."""

import codecs
import re
from typing import TYPE_CHECKING

from dialoom.base.text import replace_surrogates
from dialoom.rag.blank import is_blank
from dialoom.rag.loaders.decode import Decoded, decode
from dialoom.rag.loaders.loader import HtmlMode, HtmlParser, Loaded, Source
from dialoom.rag.loaders.plain import finish
from dialoom.rag.types import Document, Heading, Metadata

if TYPE_CHECKING:
    from resiliparse.parse.html import HTMLTree

_META_CHARSET = re.compile(
    rb"""<meta[^>]{0,200}?charset\s{0,8}=\s{0,8}["']?\s{0,8}([A-Za-z0-9_:.-]{2,40})""", re.IGNORECASE
)
_XML_ENCODING = re.compile(rb"""^\s{0,64}<\?xml[^>]{0,200}?encoding\s?=\s?["']([A-Za-z0-9_.-]{2,40})""")
_HEAD = 4_096
# Browsers read these names as their supersets, and a page that can be read as ASCII is not UTF-16; so do we.
_READ_AS = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "big5": "big5hkscs",
    "utf-16": "utf-8",
    "utf-16-le": "utf-8",
    "utf-16-be": "utf-8",
}
# Python has codecs that are slow or no charset at all (punycode, idna); a page may not ask for those.
_CHARSETS = frozenset(
    {"utf-8", "gb18030", "big5hkscs", "cp932", "euc_jp", "iso2022_jp", "cp949", "koi8-r", "koi8-u"}
)
_CHARSET_FAMILIES = ("cp125", "iso8859-", "cp874", "mac-")
_MARK = "\ufdd0"  # a noncharacter: never in a page, so it can mark where a heading starts
_INVISIBLE = '[hidden], [style*="display:none"], [style*="display: none"]'
_MAIN = "main, [role=main]"
_BESIDE = ":is(main, [role=main], article) :is(nav, aside, footer, [role=navigation])"
_HEADINGS = "h1, h2, h3, h4, h5, h6"
_MARKED = re.compile(_MARK + "([1-6])")
_MOST_HEADINGS = 10_000


class HtmlLoader:
    """One document per page: all its text, or with `html_mode="main"` its article; the title as metadata.

    Elements hidden by attribute or style are left out; a page in which no article is found is read whole.
    A parser of your own, given here or as `html_parser`, makes the text alone.
    """

    def __init__(self, parser: HtmlParser | None = None) -> None:
        self._parser = parser

    def load(self, source: Source) -> Loaded:
        declared = source.charset or declared_charset(source.data)
        decoded = decode(source.data, source=source.id, declared=declared)
        parser = self._parser or source.options.html_parser
        if parser is not None:
            text = replace_surrogates(parser(decoded.text))
            return finish(source, Document(id=source.id, text=text), decoded)
        return self._read(source, decoded)

    def _read(self, source: Source, decoded: Decoded) -> Loaded:
        from resiliparse.parse.html import HTMLTree  # heavy, and a folder may hold no page

        tree = HTMLTree.parse(decoded.text.replace(_MARK, ""))
        title = " ".join((tree.title or "").split())
        text, headings = _read(tree, source.options.html_mode)
        metadata: Metadata = {"title": title} if title else {}
        document = Document(id=source.id, text=text, headings=headings, metadata=metadata)
        return finish(source, document, decoded)


def declared_charset(data: bytes) -> str | None:
    """The codec a page says it is in, as Python names it; None when it does not say."""
    found = _META_CHARSET.search(data, 0, _HEAD) or _XML_ENCODING.search(data, 0, _HEAD)
    return known_charset(found[1].decode("ascii")) if found else None


def known_charset(name: str | None) -> str | None:
    """The codec that a page's encoding is read with; None for a name that is none or not given."""
    try:
        name = codecs.lookup(name or "").name
    except LookupError:
        return None
    name = _READ_AS.get(name, name)
    return name if name in _CHARSETS or name.startswith(_CHARSET_FAMILIES) else None


def _read(tree: "HTMLTree", mode: HtmlMode) -> tuple[str, tuple[Heading, ...]]:
    from resiliparse.extract import html2text  # pyright: ignore[reportMissingModuleSource] - compiled

    body = tree.body
    if body is None:
        return "", ()
    for node in body.query_selector_all(_INVISIBLE):
        node.decompose()
    for node in body.query_selector_all(_HEADINGS)[:_MOST_HEADINGS]:
        mark = tree.create_text_node(_MARK + str(node.local_name)[1:])
        if mark is not None and node.first_child is not None:
            node.insert_before(mark, node.first_child)
    part = _main_part(tree) if mode == "main" else None
    text = "" if part is None else html2text.extract_plain_text(part)
    if mode == "main" and is_blank(text):
        text = html2text.extract_plain_text(tree, main_content=True)
    if is_blank(text):  # a page without an article is better read whole than not at all
        text = html2text.extract_plain_text(tree)
    return _take_marks(text.replace("\xa0", " "))


def _main_part(tree: "HTMLTree") -> "HTMLTree | None":
    """Return what the page itself says is its main part, without the links beside it; None when it does not.

    To guess what an article is costs words: short lists under a heading look like menus.
    """
    from resiliparse.parse.html import DOMNode, HTMLTree

    body = tree.body
    found: list[DOMNode] = []
    for kind in (_MAIN, "article"):
        if body is not None and not found:
            found = list(body.query_selector_all(kind))
    if body is None or len(found) != 1:
        return None
    for node in body.query_selector_all(_BESIDE):
        node.decompose()
    return HTMLTree.parse(str(found[0]))


def _take_marks(text: str) -> tuple[str, tuple[Heading, ...]]:
    pieces: list[str] = []
    headings: list[Heading] = []
    end, length = 0, 0
    for mark in _MARKED.finditer(text):
        pieces.append(text[end : mark.start()])
        length += mark.start() - end
        end = mark.end()
        line_end = text.find("\n", end)
        words = text[end : line_end if line_end >= 0 else len(text)]
        words = " ".join(_MARKED.sub("", words).split())
        if words:
            headings.append(Heading(int(mark[1]), words, length))
    pieces.append(text[end:])
    return "".join(pieces), tuple(headings)
