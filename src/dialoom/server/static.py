"""The built page, served from this package; without it, a sentence that says how to get it."""

import mimetypes
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute
from starlette.routing import Route as PathRoute

from dialoom.server.problems import not_found, wrong_method

PAGE = Path(__file__).parent / "page"
_READING = ("GET", "HEAD")
_ALL = (*_READING, "POST", "PUT", "PATCH", "DELETE")
_FOR_EVER = "public, max-age=31536000, immutable"
_NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>dialoom</title>
<p>The page is not built in this checkout: run <code>npm ci &amp;&amp; npm run build</code> in
<code>web/</code>. The API is at <code>/api/v1</code>, its description at <code>/openapi.json</code>.</p>
"""


class PageFiles:
    """The files of the built page, listed once: a path that is not in the list is not looked for."""

    def __init__(self, folder: Path = PAGE) -> None:
        self._files = (
            {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
            if folder.is_dir()
            else {}
        )

    def routes(self) -> list[BaseRoute]:
        return [
            PathRoute("/", self.index, methods=["GET"]),
            PathRoute(
                "/c/{id}", self.index, methods=["GET"]
            ),  # a conversation's own address, for reloads and links
            PathRoute("/{path:path}", self.file, methods=list(_ALL)),
        ]

    async def index(self, _request: Request) -> Response:
        page = self._files.get("index.html")
        if page is None:
            return HTMLResponse(_NOT_BUILT)
        return FileResponse(page, headers={"Cache-Control": "no-cache"})

    async def file(self, request: Request) -> Response:
        name: str = request.path_params["path"]
        path = self._files.get(name)
        if path is None:
            return not_found("page", name).response()
        if request.method not in _READING:
            return wrong_method(_READING).response()
        media = mimetypes.guess_type(name)[0] or "application/octet-stream"
        caching = _FOR_EVER if name.startswith("assets/") else "no-cache"
        return FileResponse(path, media_type=media, headers={"Cache-Control": caching})
