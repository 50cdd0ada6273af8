"""One table says what can be called: it checks and serves the calls, and is the OpenAPI document."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as PathRoute

from dialoom.base.text import one_line
from dialoom.server.problems import ProblemError, not_found, problem_of, wrong_method

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Q = TypeVar("Q")
B = TypeVar("B")
A = TypeVar("A")

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_NAME = 400
# an escape of JSON: a pair of halves, half a character, or any other
_ESCAPED = re.compile(
    rb"\\(?:u[dD][89aAbB]..\\u[dD][c-fC-F]..|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
PIECE_SECONDS = 30.0
SLOWEST = 10_000
"""Bytes a second that a body comes with at least, after the first minute."""
LET_PASS_SECONDS = 5.0
MAX_LET_PASS = 64 * 1024 * 1024
_EVERY_METHOD = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]


class Nothing(msgspec.Struct, frozen=True):
    """No query, or no body."""


class Call(Generic[Q, B]):
    """One request whose query and body have been read and checked."""

    def __init__(self, request: Request, query: Q, body: B) -> None:
        self.request = request
        self.query = query
        self.body = body

    def id(self, name: str = "id") -> str:
        """Return an id of the path; what could be none is not found."""
        value = self.name(name)
        if not _ID.fullmatch(value):
            raise not_found(name, value)
        return value

    def name(self, name: str) -> str:
        """Return a word of the path that is not an id: the name of a thing, at most 400 characters."""
        value: str = self.request.path_params[name]
        if len(value) > _MAX_NAME:
            raise not_found(name, value)
        return value

    def header(self, name: str) -> str:
        """Return a header, "" when it was not sent."""
        return self.request.headers.get(name, "")


@dataclass(frozen=True)
class Route(Generic[Q, B, A]):
    """One call of the table.

    `query` and `body` are structs that the request is read into, `answer` is what the handler returns and
    is sent as JSON with `status`. A `Response` is sent as it is; then `media` is its content type. `takes`
    lists the content types of a body the handler reads by itself, `headers` those it looks at.
    """

    method: Method
    path: str
    handler: Callable[[Call[Q, B]], Awaitable[A | Response]]
    _: KW_ONLY
    summary: str
    query: type[Q] = cast("type[Q]", Nothing)  # noqa: RUF009 - a constant, seen as the type it stands for
    body: type[B] = cast("type[B]", Nothing)  # noqa: RUF009 - as above
    answer: type[A] | None = None
    status: int = 200
    media: str = "application/json"
    also: tuple[str, ...] = ()
    """Further content types it may answer with."""
    takes: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    refusals: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Return the operation's name, like `conversations_entries` of `Conversations.entries`."""
        return "_".join(self.handler.__qualname__.split(".")[-2:]).lower()

    async def serve(self, request: Request, max_body: int) -> Response:
        """Answer one request. Raises `ProblemError` and errors of ours; `serve_table` translates them."""
        query = read_query(request, self.query)
        body = await self._read_body(request, max_body)
        answer = await self.handler(Call(request, query, body))
        if isinstance(answer, Response):
            return answer
        content = b"" if answer is None else encode(answer)
        media = None if answer is None else self.media
        return Response(content, 204 if answer is None else self.status, media_type=media)

    async def _read_body(self, request: Request, max_body: int) -> B:
        if self.body is Nothing:
            return cast("B", Nothing())
        if content_type(request) != "application/json":
            raise ProblemError(415, "json_needed", "send the body as application/json")
        return decode(await read_bytes(request, max_body), self.body)


AnyRoute: TypeAlias = Route[Any, Any, Any]


def serve_table(routes: Iterable[AnyRoute], max_body: int) -> list[BaseRoute]:
    """Return Starlette routes, one for each path, so that a wrong method is told all right ones."""
    table: dict[str, dict[str, AnyRoute]] = {}
    for route in routes:
        table.setdefault(route.path, {})[route.method] = route
    return [
        PathRoute(path, _endpoint(methods, max_body), methods=_EVERY_METHOD)
        for path, methods in table.items()
    ]


def _endpoint(methods: Mapping[str, AnyRoute], max_body: int) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        try:
            if method not in methods:
                raise wrong_method(methods)
            return await methods[method].serve(request, max_body)
        except Exception as error:  # noqa: BLE001 - seam: every failure becomes a problem document
            problem = problem_of(error)
            if problem.status == 413:
                await _let_pass(request)
            return problem.response(request.url.path)

    return answer


async def _let_pass(request: Request) -> None:
    """Read a body that is not wanted for a moment: a caller that cannot send it all finds no answer."""
    passed = 0
    with suppress(TimeoutError, ClientDisconnect, RuntimeError):  # the last: all of it was read
        async with asyncio.timeout(LET_PASS_SECONDS):
            async for piece in request.stream():
                passed += len(piece)
                if passed > MAX_LET_PASS:
                    return


def content_type(request: Request) -> str:
    """Return the media type of the body without its parameters, in lower case."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_bytes(request: Request, most: int) -> bytes:
    """Return the whole body. Raises `ProblemError` as soon as it is over `most` bytes."""
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > most:
        raise too_large(most)
    content = bytearray()
    async for piece in body_pieces(request):
        content += piece
        if len(content) > most:
            raise too_large(most)
    return bytes(content)


async def body_pieces(request: Request) -> AsyncGenerator[bytes]:
    """Yield the body as it comes. Raises `ProblemError` when nothing comes for 30 seconds, or too little."""
    stream = request.stream()
    clock = asyncio.get_running_loop().time
    began, size = clock(), 0
    while True:
        try:
            async with asyncio.timeout(PIECE_SECONDS):
                piece = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            detail = f"nothing came for {PIECE_SECONDS:g} s; send it again"
            raise ProblemError(408, "too_slow", detail) from error
        except ClientDisconnect as error:  # nobody reads this, and it is no error of ours
            raise ProblemError(408, "too_slow", "the body did not come to its end; send it again") from error
        size += len(piece)
        if clock() - began > 2 * PIECE_SECONDS + size / SLOWEST:
            raise ProblemError(408, "too_slow", f"less than {SLOWEST} bytes a second; send it again")
        yield piece


def too_large(most: int) -> ProblemError:
    return ProblemError(413, "too_large", f"more than {most} bytes; send less", params={"most": most})


def decode(content: bytes, kind: type[B]) -> B:
    """Read JSON into `kind`. Raises `ProblemError` with the place of what is wrong.

    Half a character, which JavaScript sends as it is, becomes U+FFFD.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        whole = _ESCAPED.sub(_whole, content)
        if whole != content:
            return decode(whole, kind)
        told = one_line(str(error), 120)
        raise ProblemError(400, "bad_json", f"the body is not readable as JSON: {told}") from error


def _whole(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape["half"] else escape[0]


def read_query(request: Request, kind: type[Q]) -> Q:
    """Read the query into `kind`: texts become numbers and truths where the field says so."""
    if kind is Nothing:
        return cast("Q", Nothing())
    given = dict(request.query_params)
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from error


def encode(answer: object) -> bytes:
    """Write an answer as JSON."""
    return msgspec.json.encode(answer)


def _invalid(told: str) -> ProblemError:
    message, _, place = told.partition(" - at `")
    path = place.rstrip("`").replace("$.", "/").replace(".", "/") or "/"
    violation = {"path": path, "message": one_line(message, 200)}
    return ProblemError(422, "invalid_input", one_line(told, 200), params={"violations": [violation]})
