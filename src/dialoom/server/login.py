"""Signing in and out: a one-time link or the token gives a browser its cookie."""

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.routing import Route as PathRoute

from dialoom.server.problems import ProblemError, problem_of
from dialoom.server.routes import content_type, decode, read_bytes
from dialoom.server.settings import ServerSettings
from dialoom.server.tokens import Doorkeeper

_MAX_BODY = 4_096


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
        """Open a session and go to the page; a link that was used already goes there without one."""
        response = RedirectResponse("/", 303)
        if self._doorkeeper.use_link(request.query_params.get("token", "")):
            self._set_cookie(response)
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
