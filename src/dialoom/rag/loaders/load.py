"""One file: found to be what its name or its first bytes say, read within bounds, handed to its loader."""

import os
import re
import stat
from pathlib import Path

import msgspec

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import UsageError
from dialoom.base.text import REPLACEMENT
from dialoom.llm.given import named
from dialoom.rag.errors import LoadError
from dialoom.rag.extract.isolate import IsolatedLoader
from dialoom.rag.loaders.loader import DocumentLoader, Loaded, LoadOptions, Source
from dialoom.rag.loaders.page import HtmlLoader
from dialoom.rag.loaders.pdf import PdfLoader
from dialoom.rag.loaders.plain import MarkdownLoader, TextLoader
from dialoom.rag.loaders.records import JsonlLoader
from dialoom.rag.loaders.table import CsvLoader
from dialoom.rag.loaders.word import DocxLoader
from dialoom.rag.types import wrong_metadata

_PIECE = 1 << 20
_NOT_ITSELF = re.compile(f"[\ud800-\udfff]|{REPLACEMENT}(?=[0-9a-f]{{2}}|[{REPLACEMENT}\ud800-\udfff])")
"""A byte of a name that is no UTF-8, and a character that would read as one that was written out."""
_TEXT = TextLoader()
_PDF = IsolatedLoader("pdf", PdfLoader())
_DOCX = IsolatedLoader("docx", DocxLoader())
_HTML = IsolatedLoader("html", HtmlLoader())
_BUILT_IN: dict[str, DocumentLoader] = {
    **dict.fromkeys((".txt", ".text", ".log"), _TEXT),
    **dict.fromkeys((".md", ".markdown"), MarkdownLoader()),
    **dict.fromkeys((".html", ".htm", ".xhtml"), _HTML),
    **dict.fromkeys((".csv", ".tsv"), CsvLoader()),
    **dict.fromkeys((".jsonl", ".ndjson"), JsonlLoader()),
    ".pdf": _PDF,
    ".docx": _DOCX,
}


def document_id(path: str | os.PathLike[str]) -> str:
    """The id of the document in a file: its absolute normalised path with forward slashes, valid as UTF-8.

    Bytes of a name that are no UTF-8 are written out, so that no two names have one id.
    """
    absolute = os.path.abspath(path)  # noqa: PTH100 - resolve() would follow links
    return _NOT_ITSELF.sub(_written_out, Path(absolute).as_posix())


def _written_out(found: re.Match[str]) -> str:
    return REPLACEMENT + (REPLACEMENT if found[0] == REPLACEMENT else f"{ord(found[0]) & 0xFF:02x}")


def check_named(path: object) -> None:
    """Refuse what is no name, and an empty one, which would stand for the current folder: it was not set."""
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"the path is {named(path)}; name a file or folder")
    if not os.fspath(path):
        raise LoadError("unreadable", "the path is empty; name a file or folder", source="")


def is_supported(name: str, options: LoadOptions) -> bool:
    """Whether a file of this name has a loader."""
    extension = os.path.splitext(name)[1].lower()  # noqa: PTH122 - names in a walk are plain strings
    return extension in options.loaders or extension in _BUILT_IN


def load_file(
    path: str | os.PathLike[str], options: LoadOptions | None = None, *, clock: Clock = SYSTEM_CLOCK
) -> Loaded:
    """Read one file into documents. Raises `LoadError` when it cannot be read.

    The name's extension chooses the loader; a PDF under the name of a text file is read as a PDF, and a
    name without an extension is judged by its content.
    """
    options = options or LoadOptions()
    return load_bytes(read_bytes(path, options), path, options=options, clock=clock)


def load_bytes(
    data: bytes, path: str | os.PathLike[str], *, options: LoadOptions, clock: Clock = SYSTEM_CLOCK
) -> Loaded:
    """Read the content of a file that has been read already; `path` names it."""
    source = Source(id=document_id(path), data=data, options=options, clock=clock, started=clock.monotonic())
    return load_source(source, Path(path).suffix)


def load_source(source: Source, extension: str) -> Loaded:
    """Read what has been read or fetched already, as a file of this extension would be."""
    loaded = _choose(source, extension.lower()).load(source)
    for document in loaded.documents:
        if wrong := wrong_metadata(document.metadata):  # of somebody's own loader
            raise LoadError("corrupt", f"{source.id} cannot be kept: {wrong}", source=source.id)
    added = source.options.metadata
    if not added:
        return loaded
    documents = [
        msgspec.structs.replace(document, metadata={**document.metadata, **added})
        for document in loaded.documents
    ]
    return msgspec.structs.replace(loaded, documents=documents)


def read_bytes(path: str | os.PathLike[str], options: LoadOptions) -> bytes:
    """The content of a regular file no larger than the options allow; `LoadError` otherwise."""
    check_named(path)
    name = document_id(path)
    try:
        # Without O_NONBLOCK a pipe among the files would stop the walk for ever.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise LoadError("unreadable", f"{name} is not a regular file; name a file", source=name)
            pieces: list[bytes] = []
            size = 0
            while piece := file.read(_PIECE):
                pieces.append(piece)
                size += len(piece)
                _check_size(size, name, options)
            return b"".join(pieces)
    except FileNotFoundError as error:
        raise LoadError("unreadable", f"{name} does not exist; check the path", source=name) from error
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        message = f"{name} cannot be read ({reason}); check its permissions"
        raise LoadError("unreadable", message, source=name) from error


def _check_size(size: int, name: str, options: LoadOptions) -> None:
    if size > options.max_source_bytes:
        message = (
            f"{name} is larger than {options.max_source_bytes} bytes; split it or raise max_source_bytes"
        )
        raise LoadError("limit", message, source=name)


def _choose(source: Source, extension: str) -> DocumentLoader:
    if extension in source.options.loaders:
        return source.options.loaders[extension]
    if source.data.startswith(b"{\\rtf"):
        message = f"{source.id} is RTF, whatever its name says; save it as text or DOCX"
        raise LoadError("unsupported", message, source=source.id)
    loader = _BUILT_IN.get(extension)
    if loader is None and extension:
        known = " ".join(sorted(_BUILT_IN))
        message = f"{source.id} has no loader for {extension!r}; known are {known}"
        raise LoadError("unsupported", message, source=source.id)
    if loader not in (_PDF, _DOCX) and source.data.startswith(b"%PDF-"):
        return _PDF
    return loader or _TEXT
