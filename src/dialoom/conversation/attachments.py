"""Attachments: files that belong to a conversation, known by the hash of what they hold."""

import hashlib
import re
from typing import Protocol

import msgspec

from dialoom.base.errors import StoreError, UsageError
from dialoom.base.text import one_line

MAX_ATTACHMENT = 64 * 1024 * 1024
_HASH = re.compile("[0-9a-f]{64}")


class AttachmentNotFoundError(StoreError):
    """The conversation has no attachment with this hash."""

    code = "attachment_not_found"

    def __init__(self, content_hash: str) -> None:
        super().__init__(f"there is no attachment {one_line(content_hash, 64)!r}; list those there are")


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a conversation. `hash` is the SHA-256 of its bytes; `name` and `mime` are labels only."""

    hash: str
    name: str
    mime: str
    size: int


class AttachmentStore(Protocol):
    """Keeps files beside conversations: the same bytes once, until no conversation has them."""

    async def attach(self, conversation_id: str, content: bytes, *, name: str, mime: str) -> Attachment:
        """Keep at most 64 MiB; the same bytes again change nothing but their labels."""
        ...

    async def attachments(self, conversation_id: str) -> tuple[Attachment, ...]:
        """Return what was attached, in order of the hashes."""
        ...

    async def read_attachment(self, conversation_id: str, content_hash: str) -> bytes:
        """Return the bytes. Raises `AttachmentNotFoundError`."""
        ...


def describe_attachment(content: bytes, name: str, mime: str) -> Attachment:
    """Return the attachment that `content` is. Raises `UsageError` when it is too large."""
    if len(content) > MAX_ATTACHMENT:
        raise UsageError(f"a file of {len(content)} bytes is over the limit of {MAX_ATTACHMENT}; split it")
    return Attachment(
        hash=hashlib.sha256(content).hexdigest(),
        name=one_line(name, 255),
        mime=one_line(mime, 127),
        size=len(content),
    )


def check_hash(content_hash: str) -> str:
    """Return `content_hash`, or raise `AttachmentNotFoundError` when nothing can have it."""
    if _HASH.fullmatch(content_hash):
        return content_hash
    raise AttachmentNotFoundError(content_hash)
