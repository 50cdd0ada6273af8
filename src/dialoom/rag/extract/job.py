"""What goes over the pipes between a reader process and its parent: frames of bytes, with typed content."""

from typing import BinaryIO

import msgspec

from dialoom.rag.errors import LoadErrorCode
from dialoom.rag.loaders.loader import HtmlMode, IsolatedFormat, Loaded

LENGTH_BYTES = 8


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One file to read. Its content follows in a frame of its own, so that it is never copied."""

    format: IsolatedFormat
    id: str
    charset: str | None
    html_mode: HtmlMode
    timeout: float
    elapsed: float
    max_extracted_bytes: int


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """A new process has its limits and waits for work."""


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The file was read."""

    loaded: Loaded


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The file could not be read, as a `LoadError` would say it."""

    code: LoadErrorCode
    message: str


Reply = Ready | Done | Failed
encode_reply = msgspec.msgpack.Encoder().encode
decode_reply = msgspec.msgpack.Decoder(Reply).decode
encode_job = msgspec.msgpack.Encoder().encode
decode_job = msgspec.msgpack.Decoder(Job).decode


def frame_head(size: int) -> bytes:
    """What stands before a frame of `size` bytes."""
    return size.to_bytes(LENGTH_BYTES, "big")


def read_frame(stream: BinaryIO) -> bytes | None:
    """The next frame; None when the other side has closed, in the middle of one too."""
    head = stream.read(LENGTH_BYTES)
    size = int.from_bytes(head, "big")
    body = stream.read(size) if len(head) == LENGTH_BYTES else b""
    return body if len(head) == LENGTH_BYTES and len(body) == size else None


def write_frame(stream: BinaryIO, body: bytes) -> None:
    """Send one frame."""
    stream.write(frame_head(len(body)))
    stream.write(body)
    stream.flush()
