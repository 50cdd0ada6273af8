"""Folders: every readable file once, in order, one at a time; what is left out is said, with the reason."""

import os
import stat
from collections.abc import Iterator
from typing import Literal

import msgspec

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.rag.errors import LoadError
from dialoom.rag.loaders.load import check_named, document_id, is_supported, load_file
from dialoom.rag.loaders.loader import Loaded, LoadOptions
from dialoom.rag.loaders.url import UrlLoader, is_url
from dialoom.rag.types import Document

SkipReason = Literal["hidden", "unsupported", "unreadable", "loop", "special", "depth", "outside"]


class FoundFile(msgspec.Struct, frozen=True):
    """A file worth reading: its document id, the path that opens it, its size and its time of change."""

    id: str
    path: str
    size: int
    modified_ns: int


class Skipped(msgspec.Struct, frozen=True):
    """A file or folder that was left out, by its document id, and why."""

    path: str
    reason: SkipReason


class LoadFailure(msgspec.Struct, frozen=True):
    """A file that could not be read, by its document id; `code` is a `LoadErrorCode`."""

    path: str
    code: str
    message: str


def load_document(path: str | os.PathLike[str], options: LoadOptions | None = None) -> list[Document]:
    """Read a file, a web page, or every readable file of a folder in the order of their paths.

    Raises `LoadError` for a file that cannot be read, `BlockedUrlError` for a URL that the policy of the
    options refuses. In a folder such a file is left out: use `iter_documents` to be told, and to hold one
    file at a time.
    """
    if is_url(os.fspath(path)):
        return UrlLoader().load(os.fspath(path), options).documents
    if not os.path.isdir(path):  # noqa: PTH112 - an empty name is no folder, and for Path it is this one
        return load_file(path, options).documents
    return [
        document
        for item in iter_documents(path, options)
        if isinstance(item, Loaded)
        for document in item.documents
    ]


def iter_documents(
    root: str | os.PathLike[str], options: LoadOptions | None = None, *, clock: Clock = SYSTEM_CLOCK
) -> Iterator[Loaded | LoadFailure | Skipped]:
    """Read the files of a folder, or one file, sorted by path. One broken file never hides the others.

    Raises `LoadError("unreadable")` when there is no such file or folder.
    """
    options = options or LoadOptions()
    for found in walk_files(root, options):
        if isinstance(found, Skipped):
            yield found
            continue
        try:
            yield load_file(found.path, options, clock=clock)
        except LoadError as error:
            yield LoadFailure(found.id, error.code, str(error))


def walk_files(root: str | os.PathLike[str], options: LoadOptions) -> Iterator[FoundFile | Skipped]:
    """Every file under `root` that has a loader, sorted by path; no folder twice.

    Links are followed within `root`, and out of it only when the options say so. A hidden folder is reported
    once and not entered; a `root` that is a file is found as it is. Raises `LoadError("unreadable")` when
    there is no such file or folder.
    """
    check_named(root)
    if os.path.isfile(root):  # noqa: PTH113 - str or PathLike alike
        status = os.stat(root)  # noqa: PTH116 - the same
        yield FoundFile(document_id(root), os.path.abspath(root), status.st_size, status.st_mtime_ns)  # noqa: PTH100
        return
    top = os.path.abspath(root)  # noqa: PTH100 - resolve() would follow links
    try:
        entries = _sorted_entries(top)
    except (OSError, ValueError) as error:
        name = document_id(root)
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        message = f"{name} is not a readable file or folder ({reason}); check the path"
        raise LoadError("unreadable", message, source=name) from error
    real = os.path.realpath(top)
    yield from _walk(entries, _Walk(options=options, root=real, seen={real}), 1)


class _Walk(msgspec.Struct, frozen=True):
    """What one walk carries along: its options, its real root, and the real folders it has entered."""

    options: LoadOptions
    root: str
    seen: set[str]

    def leaves(self, entry: os.DirEntry[str]) -> bool:
        """Whether an entry is a link that leads where this walk does not go."""
        if self.options.outside_links or not entry.is_symlink():
            return False
        return not os.path.realpath(entry.path).startswith(self.root.rstrip(os.sep) + os.sep)


def _sorted_entries(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name + "/" * _is_folder(entry))


def _walk(entries: list[os.DirEntry[str]], walk: _Walk, depth: int) -> Iterator[FoundFile | Skipped]:
    for entry in entries:
        if entry.path in walk.options.exclude:
            continue
        if entry.name.startswith(".") and not walk.options.hidden:
            yield Skipped(document_id(entry.path), "hidden")
        elif _is_folder(entry):
            yield from _enter(entry, walk, depth)
        elif not is_supported(entry.name, walk.options):
            yield Skipped(document_id(entry.path), "unsupported")
        elif walk.leaves(entry):
            yield Skipped(document_id(entry.path), "outside")
        else:
            yield _file(entry)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _enter(entry: os.DirEntry[str], walk: _Walk, depth: int) -> Iterator[FoundFile | Skipped]:
    if not walk.options.recursive:
        return
    folder, real = entry.path, os.path.realpath(entry.path)
    if real in walk.seen:
        yield Skipped(document_id(folder), "loop")
    elif walk.leaves(entry):
        yield Skipped(document_id(folder), "outside")
    elif depth >= walk.options.max_depth:
        yield Skipped(document_id(folder), "depth")
    else:
        walk.seen.add(real)
        try:
            entries = _sorted_entries(folder)
        except OSError:
            yield Skipped(document_id(folder), "unreadable")
            return
        yield from _walk(entries, walk, depth + 1)


def _file(entry: os.DirEntry[str]) -> FoundFile | Skipped:
    try:
        status = entry.stat()
    except OSError:
        return Skipped(document_id(entry.path), "unreadable")
    if not stat.S_ISREG(status.st_mode):
        return Skipped(document_id(entry.path), "special")
    if not os.access(entry.path, os.R_OK):
        return Skipped(document_id(entry.path), "unreadable")
    return FoundFile(document_id(entry.path), entry.path, status.st_size, status.st_mtime_ns)
