"""DOCX files: unzipped and read as a stream, counted against the limit before anything is kept."""

import io
import re
import zipfile
import zlib
from collections.abc import Callable
from xml.parsers import expat

import msgspec

from dialoom.rag.blank import is_blank
from dialoom.rag.errors import LoadError
from dialoom.rag.loaders.loader import Loaded, Source, TextExtractor
from dialoom.rag.loaders.plain import empty, extracted
from dialoom.rag.loaders.word_text import HeadingStyles, WordText
from dialoom.rag.types import Document, Metadata

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_LOCKED = "EncryptedPackage".encode("utf-16-le")
_MAIN_PART = re.compile(r"word/document\d*\.xml")
_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
_PIECE = 65_536

StartHandler = Callable[[str, dict[str, str]], None]
EndHandler = Callable[[str], None]
TextHandler = Callable[[str], None]


class _Handlers(msgspec.Struct, frozen=True):
    start: StartHandler
    end: EndHandler
    text: TextHandler


class DocxLoader:
    """One document per file: paragraphs, tables (nested ones too), text boxes and notes in reading order.

    Insertions under review are read, deletions are not. Raises `LoadError` with the code `limit` when the
    XML unpacks to more than allowed, `xml_entities` for a DTD, `encrypted` and `corrupt`. An extractor of
    your own makes the text in its place.
    """

    def __init__(self, extractor: TextExtractor | None = None) -> None:
        self._extractor = extractor

    def load(self, source: Source) -> Loaded:
        if self._extractor is not None:
            return extracted(source, self._extractor)
        if source.data.startswith(_OLE) and _OLE_LOCKED in source.data:
            message = f"{source.id} is locked with a password; save it without one"
            raise LoadError("encrypted", message, source=source.id)
        try:
            with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
                return _Package(source, archive).read()
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
            raise source.corrupt("is not a readable DOCX package") from error
        except RuntimeError as error:  # how zipfile says that a member has a password
            message = f"{source.id} is locked with a password; save it without one"
            raise LoadError("encrypted", message, source=source.id) from error


class _Package:
    """An open DOCX and how much of it has been unpacked so far, over all its parts."""

    def __init__(self, source: Source, archive: zipfile.ZipFile) -> None:
        self._source = source
        self._archive = archive
        self._names = frozenset(archive.namelist())
        self._unpacked = 0

    def read(self) -> Loaded:
        main = next((name for name in sorted(self._names) if _MAIN_PART.fullmatch(name)), None)
        if main is None:
            raise self._source.corrupt("has no word/document.xml inside")
        styles = HeadingStyles()
        self._parse("word/styles.xml", _Handlers(styles.start, styles.end, _ignore))
        body = WordText(styles.levels)
        for part in (main, *_NOTES):
            self._parse(part, _Handlers(body.start, body.end, body.characters))
        text, headings = body.result()
        if is_blank(text):
            return empty(self._source)
        metadata: Metadata = {"source": self._source.id}
        if headings:
            metadata["title"] = headings[0].text
        document = Document(id=self._source.id, text=text, metadata=metadata, headings=headings)
        return Loaded(source=self._source.id, documents=[document])

    def _parse(self, part: str, handlers: _Handlers) -> None:
        if part not in self._names:
            return
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = handlers.start
        parser.EndElementHandler = handlers.end
        parser.CharacterDataHandler = handlers.text
        parser.StartDoctypeDeclHandler = self._refuse_dtd
        try:
            with self._archive.open(part) as stream:
                while piece := stream.read(_PIECE):
                    self._unpacked += len(piece)
                    self._source.check_extracted(self._unpacked)
                    self._source.check_time()
                    parser.Parse(piece, False)  # noqa: FBT003 - the parser's own signature
                parser.Parse(b"", True)  # noqa: FBT003 - the parser's own signature
        except expat.ExpatError as error:
            raise self._source.corrupt(f"has broken XML in {part}") from error

    def _refuse_dtd(self, *_: object) -> None:
        raise LoadError(
            "xml_entities",
            f"{self._source.id} declares XML entities, which no DOCX needs; it was not read",
            source=self._source.id,
        )


def _ignore(_: str) -> None:
    """Character data that no one asked for."""
