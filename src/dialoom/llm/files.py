"""Pictures, recordings and documents as parts of a message, each with its bytes."""

import re
from base64 import b64encode
from mimetypes import guess_type
from os import PathLike
from pathlib import Path
from typing import Literal, Self, TypeAlias

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line

MAX_FILE_BYTES = 20 * 1024 * 1024
"""About the most that any server takes in one request."""
FileKind: TypeAlias = Literal["image", "audio", "document"]
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,62}/[a-z0-9][a-z0-9.+-]{0,62}")


class FilePart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="file"):
    """A file that a model looks at or listens to. Its `repr` shows what it is, and none of it.

    Raises `UsageError` when it is empty, larger than 20 MiB, or of no media type like `image/png`.
    """

    data: bytes
    media_type: str
    name: str = ""

    def __post_init__(self) -> None:
        if not _MEDIA_TYPE.fullmatch(self.media_type):
            raise UsageError(f"{one_line(self.media_type, 60)!r} is no media type; write one like image/png")
        if not 0 < len(self.data) <= MAX_FILE_BYTES:
            raise UsageError(f"a file of {len(self.data)} bytes cannot be sent; send 1 to {MAX_FILE_BYTES}")

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Self:
        """Return the file at `path`, whose name says what it is. Raises `UsageError`."""
        media_type = guess_type(path)[0]
        if media_type is None:
            raise UsageError(f"what {path} holds cannot be told from its name; give FilePart a media_type")
        try:
            with Path(path).open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except (OSError, ValueError) as error:  # a name with a NUL byte is a ValueError
            raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
        return cls(data=data, media_type=media_type, name=Path(path).name)

    @property
    def kind(self) -> FileKind:
        """How a model takes it in."""
        first = self.media_type.partition("/")[0]
        return "image" if first == "image" else "audio" if first == "audio" else "document"

    @property
    def told(self) -> str:
        """What it is, in words for whoever cannot see it: `image cat.png, image/png, 4096 bytes`."""
        facts = (one_line(self.name, 80), self.media_type, f"{len(self.data)} bytes")
        return f"{self.kind} {', '.join(filter(None, facts))}"

    @property
    def base64(self) -> str:
        return b64encode(self.data).decode()

    @property
    def data_url(self) -> str:
        return f"data:{self.media_type};base64,{self.base64}"

    def __repr__(self) -> str:
        return f"FilePart({self.media_type}, {len(self.data)} bytes)"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("media_type", self.media_type), ("bytes", len(self.data))]


def cannot_take(part: FilePart, wire: str) -> UsageError:
    """Return the error for a file that a wire has no room for."""
    return UsageError(f"{wire} takes no {part.media_type}; ask a model of another provider, or send its text")
