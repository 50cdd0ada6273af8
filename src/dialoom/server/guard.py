"""What every request has to pass before anything looks at it, and the headers every answer has."""

import re
from collections.abc import Iterable, Mapping
from math import ceil
from urllib.parse import unquote_to_bytes

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.server.problems import ProblemError
from dialoom.server.rate import Buckets
from dialoom.server.settings import ServerSettings
from dialoom.server.tokens import Doorkeeper

CSP = (
    "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # without one, a browser would not tell the origin of a form
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
_GUARDED = ("/api/", "/v1/", "/agui/", "/mcp", "/metrics", "/plain")
_STARTING = ("/messages", "/regenerate", "/edit", "/completions")
"""The ends of the paths of calls that ask a model."""
_SAFE = frozenset({"GET", "HEAD"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_MAX_PATH = 2_048
_MAX_QUERY = 8_192
# an id is matched where it is used; here goes what no path of ours can hold, in any spelling
_HOSTILE = re.compile(rb"[\x00-\x1f\x7f\\]|(^|/)\.{1,2}(/|$)|//")

Headers = list[tuple[bytes, bytes]]


class Guard:
    """Asks of each request: a known host, a harmless path, no foreign page behind it, a caller we know.

    `/healthz`, `/login` and the page's own files need no sign-in and hold nothing of anybody's.
    """

    def __init__(
        self, app: ASGIApp, settings: ServerSettings, doorkeeper: Doorkeeper, *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._app = app
        self._settings = settings
        self._hosts = settings.hosts
        self._origins = settings.origins
        self._doorkeeper = doorkeeper
        self._calls = Buckets(settings.calls, clock=clock)
        self._runs = Buckets(settings.runs, clock=clock)
        self._logins = Buckets(settings.logins, clock=clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a websocket: there are none here
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            self._check(scope)
        except ProblemError as problem:
            await problem.response(scope["path"])(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> None:
        given = scope["headers"]
        host = _one(given, b"host")
        if host.lower() not in self._hosts:
            raise ProblemError(403, "host_not_allowed", "this server does not answer under that host name")
        _check_path(scope)
        method, path = scope["method"], scope["path"]
        if method not in _METHODS:
            raise ProblemError(405, "method_not_allowed", "this method is not used here")
        origin = _one(given, b"origin")
        # a link to the page itself may stand anywhere
        crossing = _one(given, b"sec-fetch-site") == "cross-site" and (path != "/" or method not in _SAFE)
        if crossing or (origin and origin not in self._origins):
            raise ProblemError(403, "origin_not_allowed", "pages of other origins may not call this server")
        if path.startswith("/login"):
            _wait(self._logins.take("all"))
        elif path.startswith(_GUARDED):
            self._admit(scope, needs_origin=method not in _SAFE and not origin)

    def _admit(self, scope: Scope, *, needs_origin: bool) -> None:
        given = scope["headers"]
        scheme, _, token = _one(given, b"authorization").partition(" ")
        key = token.strip() if scheme.lower() == "bearer" else _one(given, b"x-api-key")
        if key and self._doorkeeper.knows(key):
            caller = "machine"
        else:
            caller = next(filter(self._doorkeeper.admits, _cookies(given, self._settings.cookie)), "")
            if not caller:
                raise ProblemError(
                    401,
                    "signed_out",
                    "sign in: open the link the server printed, or send its token as bearer",
                    headers={"WWW-Authenticate": "Bearer"},
                )
            if needs_origin and _one(given, b"sec-fetch-site") not in {"same-origin", "none"}:
                raise ProblemError(403, "origin_missing", "a change needs an Origin header or a bearer token")
        _wait(self._calls.take(caller))
        if scope["method"] == "POST" and scope["path"].endswith(_STARTING):
            _wait(self._runs.take(caller))


def is_hostile(path: bytes) -> bool:
    """Tell whether a decoded path is refused, whatever it names."""
    # decoded twice: a proxy may do so once more, and nothing of ours is encoded twice
    return any(map(_HOSTILE.search, (path, unquote_to_bytes(path))))


def _check_path(scope: Scope) -> None:
    raw: bytes = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
    decoded = unquote_to_bytes(raw)
    if len(raw) > _MAX_PATH or len(scope["query_string"]) > _MAX_QUERY:
        raise ProblemError(400, "address_too_long", "the address is too long; shorten the query")
    if is_hostile(decoded):
        raise ProblemError(400, "bad_path", "the path cannot name anything here")
    try:
        decoded.decode()
    except UnicodeDecodeError:
        raise ProblemError(400, "bad_path", "the path is not UTF-8") from None


def _one(headers: Headers, name: bytes) -> str:
    """Return a header that may be given once, "" when it is missing."""
    found = [value for key, value in headers if key == name]
    if len(found) > 1:
        raise ProblemError(400, "header_twice", f"the header {name.decode()} may be given once")
    return found[0].decode("latin-1").strip() if found else ""


def _cookies(headers: Headers, name: str) -> Iterable[str]:
    for key, value in headers:
        if key == b"cookie":
            for part in value.decode("latin-1").split(";"):
                found, _, word = part.strip().partition("=")
                if found == name:
                    yield word


def _wait(seconds: float) -> None:
    if seconds:
        params: Mapping[str, object] = {"seconds": ceil(seconds)}
        raise ProblemError(
            429,
            "too_many_calls",
            f"too many calls; try again in {ceil(seconds)} s",
            params=params,
            headers={"Retry-After": str(ceil(seconds))},
        )
