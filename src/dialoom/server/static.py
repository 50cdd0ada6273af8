"""The built page, served from this package; without it, the way to the plain one."""

import logging
import mimetypes
from html import escape
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.routing import Route as PathRoute

from dialoom.base.text import one_line
from dialoom.server.plain_html import NOT_BUILT, page_html
from dialoom.server.problems import not_found, wrong_method

_log = logging.getLogger("dialoom.server")

PAGE = Path(__file__).parent / "page"
_READING = ("GET", "HEAD")
_ALL = (*_READING, "POST", "PUT", "PATCH", "DELETE")
_FOR_EVER = "public, max-age=31536000, immutable"


class PageFiles:
    """The files of the built page, some 3 MB, read once: an upgrade under a running server is not seen.

    One that is being built just now, and loses files while it is read, counts as not built.
    """

    def __init__(self, folder: Path = PAGE) -> None:
        self._files = _read(folder)
        if not self.are_built:
            _log.warning(NOT_BUILT)

    @property
    def are_built(self) -> bool:
        return "index.html" in self._files

    def routes(self) -> list[BaseRoute]:
        return [
            PathRoute("/", self.index, methods=["GET"]),
            # a conversation's own address, for reloads and links
            PathRoute("/c/{id}", self.index, methods=["GET"]),
            PathRoute("/{path:path}", self.file, methods=list(_ALL)),
        ]

    async def index(self, request: Request) -> Response:
        if not self.are_built:
            return RedirectResponse("/plain", 303)
        return self._sent("index.html", request)

    async def file(self, request: Request) -> Response:
        name: str = request.path_params["path"]
        if name not in self._files:
            if request.method in _READING and "text/html" in request.headers.get("Accept", ""):
                return _nothing_here(name)
            return not_found("page", name, then="/openapi.json says what is here").response(request.url.path)
        if request.method not in _READING:
            return wrong_method(_READING).response(request.url.path)
        return self._sent(name, request)

    def _sent(self, name: str, request: Request) -> Response:
        """Return a file, or the compressed twin that the build made of it where the browser takes that."""
        headers = {"Cache-Control": _FOR_EVER if name.startswith("assets/") else "no-cache"}
        twin = self._files.get(f"{name}.gz")
        content = self._files[name]
        if twin is not None:
            headers["Vary"] = "Accept-Encoding"
            if "gzip" in request.headers.get("Accept-Encoding", ""):
                headers["Content-Encoding"] = "gzip"
                content = twin
        media = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(content, media_type=media, headers=headers)


def _read(folder: Path) -> dict[str, bytes]:
    """Return every file by its path in `folder`; none when one is gone before it is read."""
    try:
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
    except FileNotFoundError:
        return {}


def _nothing_here(name: str) -> Response:
    """Return what a person reads who mistyped an address."""
    words = f"<h1>Nothing here</h1><p>This server has no page /{escape(one_line(name, 80))}.</p>"
    return HTMLResponse(page_html("Nothing here", f'{words}<p><a href="/">Conversations</a></p>'), 404)
