"""A folder of `{id}.yaml` files: each read whole or not at all, each replaced in one step."""

import errno
import os
import re
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from dialoom.base.clock import Clock
from dialoom.base.errors import StoreError, UsageError
from dialoom.base.files import replace_file, sync_folder
from dialoom.base.text import one_line
from dialoom.conversation.document import from_document, read_yaml, to_document
from dialoom.conversation.file_text import decode_text
from dialoom.conversation.header import Header, to_rfc3339
from dialoom.conversation.records import Log
from dialoom.conversation.store import ConversationNotFoundError
from dialoom.conversation.yaml_text import MAX_CHARS, MAX_NODES, dump_yaml, load_yaml

SUFFIX = ".yaml"
_LEFTOVER = re.compile(r"\.[A-Za-z0-9_-]{1,64}\.[0-9a-f-]{36}\.tmp")
"""What `replace_file` leaves behind when its process dies."""
_MAX_BYTES = 4 * MAX_CHARS
_MAX_SET_ASIDE = 1000


class StoredConversation(NamedTuple):
    """What one file holds."""

    header: Header
    log: Log


class UnreadableFileError(StoreError):
    """A conversation's file holds no conversation; it was kept under the name the message gives."""

    code = "unreadable_file"


class Signature(NamedTuple):
    """Which state of a file this is: another one differs in some of it."""

    inode: int
    modified_ns: int
    size: int


def scan_folder(folder: Path) -> Iterator[tuple[str, Signature | None]]:
    """Yield name without suffix and state of each conversation file; None for what is no regular file."""
    with os.scandir(folder) as found:
        for item in found:
            if item.name.endswith(SUFFIX) and not item.name.startswith("."):
                yield item.name.removesuffix(SUFFIX), _signature(item)


def parse_file(path: Path, clock: Clock) -> StoredConversation:
    """Read a file that dialoom or seed 003's product wrote. Its name says the id, whatever it says inside.

    Raises `UsageError` when it holds no conversation, `ConversationNotFoundError` when it is not there,
    `StoreError` when it is over the size limits, and `OSError`.
    """
    text, modified = _read_text(path)
    fields = read_yaml(text)
    fields["sessionId"] = path.stem
    for name in ("createdAt", "updatedAt"):
        if fields.get(name) in (None, ""):
            fields[name] = to_rfc3339(modified)
    header, records = from_document(fields, clock)
    return StoredConversation(header, Log(records))


def read_or_set_aside(path: Path, clock: Clock) -> StoredConversation:
    """As `parse_file`, but a file that holds no conversation gets another name; the folder is locked."""
    try:
        return parse_file(path, clock)
    except UsageError as error:
        kept = _set_aside(path)
        raise UnreadableFileError(
            f"conversation {path.stem} cannot be read ({one_line(str(error), 100)}); its file is kept as "
            f"{kept.name}: repair it and rename it back"
        ) from error


def write_conversation(path: Path, stored: StoredConversation) -> None:
    """Replace a file in one step. Raises `StoreError` for what could not be read back, and `OSError`."""
    replace_file(path, _encode(path.stem, stored))


def remove_file(path: Path) -> None:
    """Remove a file for good. Raises `ConversationNotFoundError` when it is not there."""
    try:
        path.unlink()
    except FileNotFoundError as error:
        raise ConversationNotFoundError(path.stem) from error
    sync_folder(path.parent)


def leftovers(folder: Path) -> list[Path]:
    """Return what processes that died while writing left behind."""
    return [path for path in folder.glob(".*") if _LEFTOVER.fullmatch(path.name)]


@contextmanager
def translated_os_errors(folder: Path) -> Generator[None]:
    """Errors of the file system become ours: the seam of this store."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(f"the disk of {folder} is full; free some space, then try again") from error
        reason = (error.strerror or "error").lower()
        raise StoreError(f"{folder} cannot be used ({reason}); choose another folder or free it") from error


def _signature(item: os.DirEntry[str]) -> Signature | None:
    try:
        state = item.stat()
    except OSError:  # a link to nowhere
        return None
    return Signature(state.st_ino, state.st_mtime_ns, state.st_size) if stat.S_ISREG(state.st_mode) else None


def _read_text(path: Path) -> tuple[str, float]:
    """Return a file's text and the time it was changed."""
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):  # opening a pipe would wait for ever
            raise StoreError(f"{path} is not a regular file; move it away")
        if state.st_size > _MAX_BYTES:
            raise _too_large(path.stem, state.st_size, "bytes")
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES)
    except FileNotFoundError as error:
        raise ConversationNotFoundError(path.stem) from error
    text = decode_text(raw)
    if len(text) > MAX_CHARS:
        raise _too_large(path.stem, len(text), "characters")
    return text, state.st_mtime


def _encode(conversation_id: str, stored: StoredConversation) -> bytes:
    try:
        text = dump_yaml(to_document(stored.header, stored.log.records))
        if len(text) > MAX_CHARS:
            raise _too_large(conversation_id, len(text), "characters")
        if len(text) > 2 * MAX_NODES:  # only a long text can hold more nodes than are read back
            load_yaml(text, max_nodes=MAX_NODES)
    except UsageError as error:
        raise StoreError(f"conversation {conversation_id} cannot be kept as yaml: {error}") from error
    return text.encode()


def _too_large(conversation_id: str, size: int, unit: str) -> StoreError:
    return StoreError(
        f"conversation {conversation_id} has {size} {unit}, over the limit of a yaml file; "
        "go on in a branch, or keep it in SqliteConversationStore"
    )


def _set_aside(path: Path) -> Path:
    names = (f"{path.name}.unreadable{'' if at == 1 else f'-{at}'}" for at in range(1, _MAX_SET_ASIDE))
    kept = next((path.with_name(name) for name in names if not path.with_name(name).exists()), None)
    if kept is None:
        raise StoreError(f"{path.parent} keeps {_MAX_SET_ASIDE} unreadable files of {path.name}; remove some")
    path.rename(kept)
    sync_folder(path.parent)
    return kept
