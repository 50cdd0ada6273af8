"""HTTP that fails softly: one bad exchange costs the one request it was for, and says why.

In the SDK's own transport a refused connection ends the client for good, and a status loses its number.
"""

import re
import socket
import ssl
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import httpx2
import msgspec
from mcp.client.auth import OAuthFlowError
from mcp_types import INTERNAL_ERROR, METHOD_NOT_FOUND

from dialoom.base.clock import SYSTEM_CLOCK
from dialoom.base.errors import DialoomError
from dialoom.base.text import one_line
from dialoom.llm.failures import read_retry_after
from dialoom.mcp.errors import McpError, McpErrorKind
from dialoom.mcp.sdk.notices import NoticeStream
from dialoom.mcp.sdk.outlet import Outlet, read_bounded
from dialoom.mcp.sdk.streams import Link
from dialoom.mcp.transport import MAX_MESSAGE_BYTES

HTTP: Final = "dialoom.http"
"""Key in the data of an error that stands for an exchange that failed; its value is an `HttpFailure`."""
MOST_RESUMED: Final = 20
"""So often one place of a cut answer is asked for again; a server that only cuts is given up."""
MOST_PLACES: Final = 1_000
GOODBYE_SECONDS: Final = 1.0
"""For the request that ends a session; a server that does not answer it forgets the session by itself."""
_ERROR_BODY: Final = 64 * 1024
_SESSION: Final = "mcp-session-id"
_KEPT: Final = ("content-type", _SESSION)
_LAST_EVENT: Final = "last-event-id"
_OAUTH_CODE: Final = re.compile(r'"error"\s*:\s*"([a-z_]{1,64})"')


class HttpFailure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why an exchange did not bring an answer, in words that hold nothing of what was sent or received."""

    kind: McpErrorKind
    words: str
    status: int | None = None
    retry_after: float | None = None


class _Asked(msgspec.Struct, frozen=True):
    """What of a posted message says whether it waits for an answer."""

    id: int | str | None = None
    method: str | None = None


class _RpcError(msgspec.Struct, frozen=True):
    code: int
    message: str
    data: Any = None


class _ErrorBody(msgspec.Struct, frozen=True):
    error: _RpcError


class SoftClient(httpx2.AsyncClient):
    """Sends through `outlet`, and turns what goes wrong into answers that the SDK can read.

    A request that fails is answered with a JSON-RPC error whose data hold an `HttpFailure` under `HTTP`.
    The first GET is answered with the notices that `notices` makes. A failed login is not tried again.
    """

    def __init__(
        self,
        outlet: Outlet,
        link: Link,
        *,
        notices: Callable[["SoftClient", httpx2.Request], NoticeStream | None],
    ) -> None:
        super().__init__(transport=httpx2.AsyncBaseTransport())  # never used: all goes through `outlet`
        self._outlet = outlet
        self._link = link
        self._notices = notices
        self._login_failed: HttpFailure | None = None
        self._resumed: Counter[str] = Counter()

    def build_request(self, method: str, url: httpx2.URL | str, **options: Any) -> httpx2.Request:
        """Build it with what `outlet` adds."""
        return self._outlet.build(method, url, **options)

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """Send it as the SDK wants it: unread, no redirect followed. A POST never raises."""
        match request.method:
            case "POST":
                return await self._posted(request)
            case "GET" if _LAST_EVENT not in request.headers:
                stream = self._notices(self, request)
                if stream is None:
                    return httpx2.Response(405, request=request)
                return httpx2.Response(
                    200, headers={"content-type": "text/event-stream"}, stream=stream, request=request
                )
            case "GET" if self._is_spent(request.headers[_LAST_EVENT]):
                return httpx2.Response(410, request=request)
            case "DELETE":
                request.extensions["timeout"] = httpx2.Timeout(GOODBYE_SECONDS).as_dict()
                return await self._outlet.send(request)
            case _:
                return await self._outlet.send(request)

    @asynccontextmanager
    async def open_notices(self, request: httpx2.Request, last_id: str) -> AsyncGenerator[httpx2.Response]:
        """Ask for the stream of notices as `request` did, after the event `last_id`."""
        headers = dict(request.headers) | ({_LAST_EVENT: last_id} if last_id else {})
        again = httpx2.Request("GET", request.url, headers=headers, extensions=request.extensions)
        response = await self._outlet.send(again)
        try:
            yield response
        finally:
            await response.aclose()

    async def _posted(self, request: httpx2.Request) -> httpx2.Response:
        asked = msgspec.json.decode(request.content, type=_Asked)
        if self._login_failed is not None:
            return _answer(request, asked, self._login_failed)
        try:
            response = await self._outlet.send(request)
            return await self._softened(request, asked, response)
        except Exception as error:  # noqa: BLE001 - seam: whatever HTTP or a login raises
            failure = failure_of(error)
            if failure.kind == "auth":
                self._login_failed = failure
            return _answer(request, asked, failure)

    async def _softened(
        self, request: httpx2.Request, asked: _Asked, response: httpx2.Response
    ) -> httpx2.Response:
        if response.status_code >= 400:
            said = _rpc_error(await read_bounded(response, _ERROR_BODY))
            failure = _refusal(request, response, said)
            if failure.kind == "session":
                self._link.lost.set()
            elif said is not None and failure.kind == "status" and 400 <= response.status_code < 429:
                # newer revisions send the errors of the protocol itself with such a status
                return _answer(request, asked, None, said=said)
            return _answer(request, asked, failure, said=said)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.is_redirect or kind != "application/json":
            return response
        length = response.headers.get("content-length", "")
        if (
            length.isdecimal()
            and int(length) <= MAX_MESSAGE_BYTES
            and "content-encoding" not in response.headers
        ):
            await response.aread()
            return response
        body = await read_bounded(response, MAX_MESSAGE_BYTES)
        if body is None:
            return _answer(request, asked, HttpFailure(kind="too_large", words="the answer is too large"))
        kept = {name: response.headers[name] for name in _KEPT if name in response.headers}
        return httpx2.Response(response.status_code, headers=kept, content=body, request=request)

    def _is_spent(self, event_id: str) -> bool:
        if len(self._resumed) > MOST_PLACES:
            self._resumed.clear()
        self._resumed[event_id] += 1
        return self._resumed[event_id] > MOST_RESUMED


def failure_of(error: Exception) -> HttpFailure:
    """Return what an exception of HTTP or of a login means."""
    kind: McpErrorKind
    match error:
        case McpError():
            kind, words = error.kind, str(error)
        case DialoomError():
            kind, words = "config", str(error)
        case OAuthFlowError():
            code = _OAUTH_CODE.search(str(error))
            kind, words = "auth", f"the login failed ({code[1] if code else type(error).__name__})"
        case httpx2.ConnectError() | httpx2.ConnectTimeout() | httpx2.ProxyError() | httpx2.PoolTimeout():
            kind, words = "connect", f"no connection could be made{_why(error)}"
        case httpx2.TimeoutException():
            kind, words = "timeout", "the server did not answer in time"
        case httpx2.NetworkError() | httpx2.RemoteProtocolError():
            kind, words = "closed", "the server closed the connection"
        case _:
            kind, words = "protocol", f"the exchange failed ({type(error).__name__})"
    return HttpFailure(kind=kind, words=words)


def _why(error: BaseException | None) -> str:
    """Say of a connection what only its innermost cause tells."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            reason = getattr(error, "reason", None)  # which only those have that OpenSSL made
            return f": TLS failed ({one_line(str(reason or error), 80)})"
        if isinstance(error, socket.gaierror):
            return ": its host name is not known"
        error = error.__cause__ or error.__context__
    return ""


def http_failure(data: object) -> HttpFailure | None:
    """Return the failure that the data of a JSON-RPC error stand for, None when they are a server's own."""
    if isinstance(data, dict) and HTTP in data:
        return msgspec.convert(cast("dict[str, object]", data)[HTTP], HttpFailure)
    return None


def refusal_of(response: httpx2.Response) -> HttpFailure:
    """Return what a response with an error status, or a redirect that is not followed, means."""
    status = response.status_code
    phrase = f" {response.reason_phrase}" if response.reason_phrase else ""
    return HttpFailure(
        kind="auth" if status == 401 else "status",
        words=f"the server answered HTTP {status}{phrase}",
        status=status,
        retry_after=read_retry_after(response.headers, SYSTEM_CLOCK.now()),
    )


def _refusal(request: httpx2.Request, response: httpx2.Response, said: _RpcError | None) -> HttpFailure:
    status = response.status_code
    # 404 is what the protocol asks for; many servers send 400 and say it in words
    knows_not = status == 404 or (status == 400 and said is not None and "session" in said.message.lower())
    if knows_not and _SESSION in request.headers:
        return HttpFailure(kind="session", words="the server has forgotten the session", status=status)
    return refusal_of(response)


def _answer(
    request: httpx2.Request, asked: _Asked, failure: HttpFailure | None, *, said: _RpcError | None = None
) -> httpx2.Response:
    """Return the answer the SDK takes as the server's: `said`, if the server gave a reason of its own."""
    if asked.id is None or asked.method is None:
        return httpx2.Response(202, request=request)
    note = {} if failure is None else {HTTP: msgspec.to_builtins(failure)}
    if said is None:
        code = METHOD_NOT_FOUND if failure and failure.status == 404 else INTERNAL_ERROR
        said = _RpcError(code, failure.words if failure else "", None)
    data: object = said.data
    own = cast("dict[str, object]", data) if isinstance(data, dict) else {"data": data} if data else {}
    problem = {"code": said.code, "message": said.message, "data": own | note}
    return httpx2.Response(200, json={"jsonrpc": "2.0", "id": asked.id, "error": problem}, request=request)


def _rpc_error(body: bytes | None) -> _RpcError | None:
    if body is None:
        return None
    try:
        return msgspec.json.decode(body, type=_ErrorBody).error
    except (msgspec.DecodeError, RecursionError):
        return None
