"""Rows beside the log: drafts, and attachments by the hash of their bytes."""

import hashlib
import sqlite3

from dialoom.base.errors import StoreError
from dialoom.conversation.attachments import Attachment
from dialoom.conversation.drafts import check_draft_count


def write_draft(connection: sqlite3.Connection, number: int, slot: str, text: str) -> None:
    """Keep one draft, or remove it when the text is empty. Raises `UsageError` when there are too many."""
    if not text:
        connection.execute("DELETE FROM draft WHERE conversation = ? AND slot = ?", (number, slot))
        return
    (others,) = connection.execute(
        "SELECT count(*) FROM draft WHERE conversation = ? AND slot != ?", (number, slot)
    ).fetchone()
    check_draft_count(others)
    connection.execute("INSERT OR REPLACE INTO draft VALUES (?, ?, ?)", (number, slot, text))


def read_drafts(connection: sqlite3.Connection, number: int) -> dict[str, str]:
    rows = connection.execute("SELECT slot, text FROM draft WHERE conversation = ? ORDER BY slot", (number,))
    return dict(rows.fetchall())


def write_attachment(
    connection: sqlite3.Connection, number: int, attachment: Attachment, content: bytes
) -> None:
    """Link a file to its conversation, and keep its bytes unless they are there."""
    connection.execute("INSERT OR IGNORE INTO content VALUES (?, ?)", (attachment.hash, content))
    connection.execute(
        "INSERT OR REPLACE INTO attachment VALUES (?, ?, ?, ?, ?)",
        (number, attachment.hash, attachment.name, attachment.mime, attachment.size),
    )


def read_attachments(connection: sqlite3.Connection, number: int) -> tuple[Attachment, ...]:
    rows = connection.execute(
        "SELECT hash, name, mime, size FROM attachment WHERE conversation = ? ORDER BY hash", (number,)
    )
    return tuple(
        Attachment(hash=content_hash, name=name, mime=mime, size=size)
        for content_hash, name, mime, size in rows
    )


def read_content(connection: sqlite3.Connection, number: int, content_hash: str) -> bytes | None:
    """Return the bytes of an attachment of this conversation, or None when it has none of that hash."""
    row: tuple[bytes] | None = connection.execute(
        "SELECT bytes FROM attachment JOIN content USING (hash) WHERE conversation = ? AND hash = ?",
        (number, content_hash),
    ).fetchone()
    if row is None:
        return None
    if hashlib.sha256(row[0]).hexdigest() != content_hash:
        raise StoreError(f"attachment {content_hash} is damaged; restore the file from a copy")
    return row[0]
