"""Signing in and out: a one-time link or the token gives a browser its cookie."""

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.routing import Route as PathRoute

from dialoom.server.plain_html import page_html
from dialoom.server.problems import ProblemError, problem_of
from dialoom.server.routes import content_type, decode, read_bytes
from dialoom.server.settings import ServerSettings
from dialoom.server.tokens import Doorkeeper

_MAX_BODY = 4_096
_USED_UP = {
    "en": (
        "This link signs nobody in any more",
        "A link works once, and for a day. This one was used, perhaps in another browser, or it is older.",
        "Start the server again with <code>dialoom serve</code>: it prints a new link.",
        'Or <a href="/">open the page</a> and enter the token from the server’s file <code>token</code>.',
    ),
    "zh": (
        "此链接已不能登录",
        "每个链接只能使用一次，有效期一天。此链接已经用过（可能在另一个浏览器中），或者已经过期。",
        "请用 <code>dialoom serve</code> 重新启动服务器，它会给出新的链接。",
        '或者<a href="/">打开页面</a>，输入服务器令牌（服务器数据文件夹中的 <code>token</code> 文件）。',
    ),
}
"""A title, why, and two ways to go on, by language."""


class SignIn(msgspec.Struct, frozen=True):
    """The server's token, or the code of a link."""

    token: str


class Login:
    """`GET /login?token=` uses a link, `POST /login` takes the token, `POST /logout` ends the session."""

    def __init__(self, settings: ServerSettings, doorkeeper: Doorkeeper) -> None:
        self._settings = settings
        self._doorkeeper = doorkeeper

    def routes(self) -> list[BaseRoute]:
        return [
            PathRoute("/login", self.sign_in, methods=["GET", "POST"]),
            PathRoute("/logout", self.leave, methods=["POST"]),
        ]

    async def sign_in(self, request: Request) -> Response:
        return await self._use_token(request) if request.method == "POST" else self._use_link(request)

    async def leave(self, _request: Request) -> Response:
        response = Response(status_code=204)
        response.delete_cookie(self._settings.cookie, path="/", httponly=True, samesite="strict")
        return response

    def _use_link(self, request: Request) -> Response:
        """Open a session and go to the page; who has none, and a link that is none any more, is told so."""
        word = request.query_params.get("token", "")
        response = RedirectResponse("/", 303)
        if self._doorkeeper.use_link(word):
            self._set_cookie(response)
        elif word and not self._doorkeeper.admits(request.cookies.get(self._settings.cookie, "")):
            return _used_up(request.headers.get("accept-language", ""))
        return response

    async def _use_token(self, request: Request) -> Response:
        try:
            if content_type(request) != "application/json":
                raise ProblemError(415, "json_needed", "send the body as application/json")
            given = decode(await read_bytes(request, _MAX_BODY), SignIn)
            # people also paste the code of the link they were given
            if not self._doorkeeper.knows(given.token) and not self._doorkeeper.use_link(given.token):
                raise ProblemError(401, "wrong_token", "this is not the server's token")
        except ProblemError as problem:
            return problem_of(problem).response(request.url.path)
        response = Response(status_code=204)
        self._set_cookie(response)
        return response

    def _set_cookie(self, response: Response) -> None:
        response.set_cookie(
            self._settings.cookie,
            self._doorkeeper.new_cookie(),
            max_age=self._settings.session_days * 86_400,
            path="/",
            secure=self._settings.secure,
            httponly=True,
            samesite="strict",
        )


def _used_up(languages: str) -> Response:
    """Return the page on a link that opens no session, in the language its reader prefers of ours."""
    wanted = (each.strip().lower()[:2] for each in languages.split(","))
    language = next((each for each in wanted if each in _USED_UP), "en")
    title, why, *ways = _USED_UP[language]
    said = "".join(f"<li>{way}</li>" for way in ways)
    page = page_html(title, f"<h1>{title}</h1><p>{why}</p><ul>{said}</ul>", language=language)
    return HTMLResponse(page, 410, headers={"Content-Language": language, "Vary": "Accept-Language"})
