"""Uploaded files: kept once by what they hold, given back as downloads. A name is only a label."""

import asyncio
import hashlib
import os
import re
import secrets
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, unquote

import msgspec
from starlette.responses import FileResponse, Response

from dialoom.base.errors import StoreError
from dialoom.base.text import one_line
from dialoom.server.problems import ProblemError, not_found
from dialoom.server.routes import AnyRoute, Call, Nothing, Route, body_pieces, content_type, too_large

_HASH = re.compile(r"[0-9a-f]{64}")
_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")
_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)
_UNNAMED = "file"


class StoredFile(msgspec.Struct, frozen=True):
    """A file that was uploaded; `id` is the SHA-256 of its bytes."""

    id: str
    name: str
    size: int
    mime: str


class NameQuery(msgspec.Struct, frozen=True):
    """What a download is called; "" is as the file was uploaded last."""

    name: Annotated[str, msgspec.Meta(max_length=255)] = ""


class FileStore:
    """Files of one folder, each under its hash; written beside and renamed, so that none is there by half."""

    def __init__(self, folder: Path, *, max_file: int, max_total: int) -> None:
        self._folder = folder
        self._max_file = max_file
        self._max_total = max_total
        self._incoming = folder / "incoming"
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # what was said is its owner's alone
            self._incoming.mkdir(parents=True, exist_ok=True)
            for left in self._incoming.iterdir():  # of a process that was killed
                left.unlink()
            self._total = sum(path.stat().st_size for path in folder.glob("??/*"))
        except OSError as error:
            raise _store_error(folder, error) from error

    async def take(self, pieces: AsyncIterable[bytes], *, name: str, mime: str) -> StoredFile:
        """Keep what `pieces` come to; the same bytes again only change the labels. Raises `ProblemError`."""
        partial = self._incoming / secrets.token_hex(16)
        try:
            digest, size = await self._receive(pieces, partial)
            info = StoredFile(digest, one_line(name, 255) or _UNNAMED, size, mime)
            await asyncio.to_thread(self._settle, partial, info)
        except OSError as error:
            raise _store_error(self._folder, error) from error
        finally:
            partial.unlink(missing_ok=True)
        return info

    async def keep(self, content: bytes, *, name: str, mime: str) -> StoredFile:
        """Keep bytes that are in memory already. Raises what `take` does."""

        async def whole() -> AsyncIterator[bytes]:
            yield content

        return await self.take(whole(), name=name, mime=mime)

    def find(self, file_id: str) -> StoredFile:
        """Return a file's labels. Raises `ProblemError` when there is none."""
        try:
            return msgspec.json.decode(self._labels(file_id).read_bytes(), type=StoredFile)
        except (FileNotFoundError, msgspec.DecodeError):
            raise _no_file(file_id) from None

    def remove(self, file_id: str) -> None:
        """Forget a file, whose room is free again. Raises `ProblemError` when there is none."""
        path = self.path(file_id)
        try:
            self._labels(file_id).unlink()  # of two calls at once, one finds it
            size = path.stat().st_size
            path.unlink()
        except FileNotFoundError:
            raise _no_file(file_id) from None
        except OSError as error:
            raise _store_error(self._folder, error) from error
        self._total -= size

    def path(self, file_id: str) -> Path:
        """Return where a file's bytes are. Raises `ProblemError` for what is no file's id."""
        if not _HASH.fullmatch(file_id):
            raise _no_file(file_id)
        return self._folder / file_id[:2] / file_id

    async def _receive(self, pieces: AsyncIterable[bytes], partial: Path) -> tuple[str, int]:
        digest, size = hashlib.sha256(), 0
        with partial.open("xb") as file:
            async for piece in pieces:
                size += len(piece)
                if size > self._max_file:
                    raise too_large(self._max_file)
                if self._total + size > self._max_total:
                    raise ProblemError(507, "no_space", "there is no space left for files; remove some")
                digest.update(piece)
                await asyncio.to_thread(file.write, piece)
            await asyncio.to_thread(_sync, file.fileno())
        return digest.hexdigest(), size

    def _settle(self, partial: Path, info: StoredFile) -> None:
        path, labels = self.path(info.id), self._labels(info.id)
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            partial.replace(path)
            self._total += info.size
        beside = self._incoming / secrets.token_hex(16)
        beside.write_bytes(msgspec.json.encode(info))
        beside.replace(labels)

    def _labels(self, file_id: str) -> Path:
        return self.path(file_id).with_suffix(".json")


class Files:
    """Calls on files."""

    def __init__(self, store: FileStore) -> None:
        self._store = store

    def routes(self) -> list[AnyRoute]:
        return [
            Route(
                "POST", "/api/v1/files", self.upload, answer=StoredFile, status=201, headers=("X-Filename",),
                takes=("application/octet-stream",), refusals=(507,),
                summary="Upload a file: its bytes are the body, X-Filename has its name, percent-encoded",
            ),
            Route(
                "GET", "/api/v1/files/{id}", self.download, query=NameQuery, media="*/*",
                summary="Download a file",
            ),
            Route("DELETE", "/api/v1/files/{id}", self.remove, summary="Delete a file for good"),
        ]  # fmt: skip

    async def upload(self, call: Call[Nothing, Nothing]) -> StoredFile:
        mime = content_type(call.request)
        if not _MIME.fullmatch(mime) or mime.startswith("multipart/"):
            raise ProblemError(415, "content_type", "send the bytes with the file's own content type")
        name = unquote(call.header("x-filename"), errors="replace")
        return await self._store.take(body_pieces(call.request), name=name, mime=mime)

    async def remove(self, call: Call[Nothing, Nothing]) -> None:
        await asyncio.to_thread(self._store.remove, call.name("id"))

    async def download(self, call: Call[NameQuery, Nothing]) -> Response:
        info = await asyncio.to_thread(self._store.find, call.name("id"))
        path = self._store.path(info.id)
        media = await asyncio.to_thread(picture_type, path)
        return FileResponse(path, headers=disposition(call.query.name or info.name), media_type=media)


def picture_type(path: Path) -> str:
    """Return the type of a picture by its first bytes, and `application/octet-stream` for all else.

    Never what the uploader said it is: nothing uploaded may run, or be a page, in our origin.
    """
    with path.open("rb") as file:
        head = file.read(16)
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media for magic, media in _PICTURES if head.startswith(magic)), "application/octet-stream")


def safe_name(name: str) -> str:
    """Return a name a file may have anywhere: no folders, no dots before it, at most 120 characters."""
    kept = re.sub(r"[^\w.() -]", "_", name).lstrip(". ")[-120:]
    return kept or _UNNAMED


def disposition(name: str) -> dict[str, str]:
    """Return the header that makes an answer a download of that name."""
    plain = re.sub(r"[^A-Za-z0-9 ._-]", "_", name)[:150]
    header = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name[:150], safe='')}"
    return {"Content-Disposition": header}


def _no_file(file_id: str) -> ProblemError:
    return not_found("file", file_id, then="upload it again")


def _sync(descriptor: int) -> None:
    os.fsync(descriptor)


def _store_error(folder: Path, error: OSError) -> StoreError:
    reason = (error.strerror or "error").lower()
    return StoreError(f"files cannot be kept in {folder} ({reason}); free some space or mend it")
