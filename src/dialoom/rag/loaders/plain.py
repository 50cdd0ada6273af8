"""Text, Markdown and log files."""

import re

import msgspec

from dialoom.base.text import replace_surrogates
from dialoom.rag.blank import is_blank
from dialoom.rag.loaders.decode import Decoded, decode
from dialoom.rag.loaders.loader import Loaded, Source, TextExtractor
from dialoom.rag.types import Document, Heading, LoadWarning, Metadata

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})[ \t]")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_LONGEST_HEADING = 500
_LONGEST_FRONT_MATTER = 4_096


class TextLoader:
    """Plain text and logs: one document per file."""

    def load(self, source: Source) -> Loaded:
        decoded = decode(source.data, source=source.id, declared=source.charset)
        return finish(source, Document(id=source.id, text=decoded.text), decoded)


class MarkdownLoader:
    """Markdown as it is written; its headings outside code fences become the document's headings."""

    def load(self, source: Source) -> Loaded:
        decoded = decode(source.data, source=source.id, declared=source.charset)
        headings = tuple(markdown_headings(decoded.text))
        metadata: Metadata = {"title": headings[0].text} if headings else {}
        document = Document(id=source.id, text=decoded.text, headings=headings, metadata=metadata)
        return finish(source, document, decoded)


def finish(source: Source, document: Document, decoded: Decoded) -> Loaded:
    """A document with the bounds checked and its source and encoding noted; a blank one becomes a warning."""
    source.check_extracted(len(document.text))
    if is_blank(document.text):
        return empty(source)
    metadata: Metadata = {"source": source.id, "encoding": decoded.encoding, **document.metadata}
    document = msgspec.structs.replace(document, metadata=metadata)
    return Loaded(source=source.id, documents=[document], warnings=decode_warnings(source, decoded))


def extracted(source: Source, extract: TextExtractor) -> Loaded:
    """What somebody else's extractor makes of a file."""
    text = extract(source.data)
    source.check_time()
    source.check_extracted(len(text))
    if is_blank(text):
        return empty(source)
    document = Document(id=source.id, text=replace_surrogates(text), metadata={"source": source.id})
    return Loaded(source=source.id, documents=[document])


def empty(source: Source) -> Loaded:
    """What a file without a word in it comes to."""
    warning = LoadWarning("empty", f"{source.id} holds no text; nothing was taken from it", source.id)
    return Loaded(source=source.id, documents=[], warnings=[warning])


def decode_warnings(source: Source, decoded: Decoded) -> list[LoadWarning]:
    """One warning when some bytes could not be read."""
    if decoded.bad_bytes == 0:
        return []
    message = f"{decoded.bad_bytes} bytes of {source.id} are not valid {decoded.encoding}; they became U+FFFD"
    return [LoadWarning("decode", message, source.id)]


def markdown_headings(text: str) -> list[Heading]:
    """The `#` and underlined headings of Markdown; front matter and code fences hold none."""
    found: list[Heading] = []
    start = _front_matter_end(text)
    fence = ""
    paragraph: list[tuple[int, str]] = []
    for line in text[start:].split("\n"):
        if fence:
            fence = "" if _closes(fence, line) else fence
        elif opened := _FENCE.match(line):
            fence, paragraph = opened[1], []
        elif (heading := _atx(line, start)) is not None:
            found.append(heading)
            paragraph = []
        elif len(paragraph) == 1 and (under := _UNDERLINE.match(line)):
            found.append(Heading(1 if under[1][0] == "=" else 2, paragraph[0][1], paragraph[0][0]))
            paragraph = []
        elif line.strip() and len(line) <= _LONGEST_HEADING and not _UNDERLINE.match(line):
            paragraph = [*paragraph[:1], (start, line.strip())]
        else:
            paragraph = []
        start += len(line) + 1
    return found


def _front_matter_end(text: str) -> int:
    if not text.startswith("---\n"):
        return 0
    end = text.find("\n---\n", 3, _LONGEST_FRONT_MATTER)
    blank = text.find("\n\n", 3, _LONGEST_FRONT_MATTER)
    return end + 5 if end >= 0 and not 0 <= blank < end else 0


def _atx(line: str, start: int) -> Heading | None:
    marks = _ATX.match(line)
    if marks is None or len(line) > _LONGEST_HEADING:
        return None
    words = line[marks.end() :].strip()
    bare = words.rstrip("#")
    if not bare or bare != bare.rstrip():
        words = bare.rstrip()  # closing marks belong to the heading line only after a space
    return Heading(len(marks[1]), words, start) if words else None


def _closes(fence: str, line: str) -> bool:
    mark = line.strip()
    return len(mark) >= len(fence) and not mark.strip(fence[0])
