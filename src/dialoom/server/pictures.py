"""Pictures of other hosts, fetched when a person asks to see one: under the URL policy, and only pictures."""

import asyncio
from typing import Annotated, Final

import msgspec

from dialoom.net.fetch import fetch_url
from dialoom.net.fetch_pinned import UrlFetcher
from dialoom.net.guard import UrlPolicy
from dialoom.net.resolve import Resolver
from dialoom.net.transport import HttpTimeouts
from dialoom.server.files import FileStore, StoredFile, picture_type
from dialoom.server.problems import ProblemError
from dialoom.server.routes import AnyRoute, Call, Nothing, Route

POLICY: Final = UrlPolicy(
    content_types=frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"}),
    max_bytes=10_000_000,
    timeouts=HttpTimeouts(connect=5.0, read=10.0, total=20.0),
)
"""Public addresses only, as for documents; ten megabytes, twenty seconds."""


class PictureAt(msgspec.Struct, frozen=True):
    """Where a picture is."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]


class Pictures:
    """Fetches pictures into the files of a server. A browser never asks the other host itself."""

    def __init__(
        self, files: FileStore, *, fetcher: UrlFetcher | None = None, resolver: Resolver | None = None
    ) -> None:
        self._files = files
        self._fetcher = fetcher
        self._resolver = resolver

    def routes(self) -> list[AnyRoute]:
        return [
            Route(
                "POST", "/api/v1/fetch-image", self.fetch, body=PictureAt, answer=StoredFile, status=201,
                refusals=(502,), summary="Fetch a picture of another host into a file",
            )
        ]  # fmt: skip

    async def fetch(self, call: Call[Nothing, PictureAt]) -> StoredFile:
        page = await fetch_url(call.body.url, POLICY, fetcher=self._fetcher, resolver=self._resolver)
        if page.status != 200:
            raise ProblemError(502, "no_picture", f"the other host answered {page.status} and no picture")
        kept = await self._files.keep(page.body, name="picture", mime=page.content_type)
        if await asyncio.to_thread(picture_type, self._files.path(kept.id)) == "application/octet-stream":
            raise ProblemError(502, "no_picture", "what the other host sent is no picture")
        return kept
