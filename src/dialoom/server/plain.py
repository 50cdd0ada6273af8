"""A small page without scripts: lists, reads, sends and submits where the built page is not there."""

from html import escape
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.routing import Route as PathRoute

from dialoom.base.errors import DialoomError, UsageError
from dialoom.conversation.conversation import Conversation
from dialoom.conversation.header import check_id
from dialoom.conversation.store import ListedConversationStore
from dialoom.server.cards import Cards
from dialoom.server.plain_html import CSS, conversation_html, list_html, page_html
from dialoom.server.problems import ProblemError, problem_of
from dialoom.server.routes import content_type, read_bytes
from dialoom.server.shown import Shelf
from dialoom.server.static import PAGE
from dialoom.server.talks import Talks

FORM = "application/x-www-form-urlencoded"
_MAX_BODY = 1024 * 1024
_MAX_FIELDS = 1_000

Form = dict[str, list[str]]


class PlainPage:
    """Serves conversations as HTML to signed-in browsers; what they send goes the way of every other call."""

    def __init__(self, store: ListedConversationStore, shelf: Shelf, talks: Talks, cards: Cards) -> None:
        self._store = store
        self._shelf = shelf
        self._talks = talks
        self._cards = cards
        self._is_built = (PAGE / "index.html").is_file()

    def routes(self) -> list[BaseRoute]:
        one = "/plain/{id}"
        return [
            PathRoute("/plain.css", self.css, methods=["GET"]),
            PathRoute("/plain", self.list_all, methods=["GET"]),
            PathRoute("/plain", self.begin, methods=["POST"]),
            PathRoute(one, self.read, methods=["GET"]),
            PathRoute(one + "/messages", self.send, methods=["POST"]),
            PathRoute(one + "/cancel", self.cancel, methods=["POST"]),
            PathRoute(one + "/cards/{card}/{action}", self.act, methods=["POST"]),
        ]

    async def css(self, _request: Request) -> Response:
        return PlainTextResponse(CSS, media_type="text/css")

    async def list_all(self, request: Request) -> Response:
        query, cursor = request.query_params.get("q", ""), request.query_params.get("cursor")
        try:
            page = await self._store.page(query=query, cursor=cursor or None)
        except DialoomError as error:
            return _told(error)
        headers = [self._shelf.header(header) for header in page.headers]
        return HTMLResponse(list_html(headers, query=query, cursor=page.cursor, is_built=self._is_built))

    async def begin(self, _request: Request) -> Response:
        conversation = Conversation()
        await self._store.create(conversation)
        return _to(conversation.id)

    async def read(self, request: Request) -> Response:
        before = request.query_params.get("before", "")
        return await self._show(
            request, before=int(before) if before.isdecimal() and len(before) < 10 else None
        )

    async def send(self, request: Request) -> Response:
        try:
            form = await _read(request)
            text = "".join(form.get("text", ())).replace("\r\n", "\n")
            await self._talks.send(_id(request), text, attachments=[], key="")
        except DialoomError as error:
            return await self._show(request, problem=error)
        return _to(_id(request))

    async def cancel(self, request: Request) -> Response:
        run_id = self._talks.runs.running(_id(request))
        if run_id is not None:
            await self._talks.cancel(run_id)
        return _to(_id(request))

    async def act(self, request: Request) -> Response:
        card_id, action = request.path_params["card"], request.path_params["action"]
        try:
            form = await _read(request)
            rev = "".join(form.get("rev", ()))
            if not (rev.isdecimal() and len(rev) < 12):
                raise UsageError("this form names no state of the card; load the page again")
            card = await self._cards.find(_id(request), card_id)
            fields = (
                {"approved": "true" in form.get("approved", ())}
                if action == "decide"
                else _values(form, card)
            )
            await self._cards.do(_id(request), card_id, action, fields, rev=int(rev))
        except DialoomError as error:
            return await self._show(request, problem=error)
        return _to(_id(request))

    async def _show(
        self, request: Request, *, before: int | None = None, problem: DialoomError | None = None
    ) -> Response:
        try:
            header = self._shelf.header(await self._store.header(_id(request)))
            window, entries = await self._shelf.window(header.id, before=before, limit=60)
        except DialoomError as error:
            return _told(error)
        run = self._talks.runs.current(header.id)
        words = "" if problem is None else str(problem)
        body = conversation_html(header, entries, start=window.start, run=run, problem=words)
        return HTMLResponse(body, 200 if problem is None else problem_of(problem).status)


def _id(request: Request) -> str:
    return check_id(request.path_params["id"])


async def _read(request: Request) -> Form:
    """Read the body of a form. Raises `ProblemError`."""
    if content_type(request) != FORM:
        raise ProblemError(415, "form_needed", f"send the form as {FORM}")
    body = await read_bytes(request, _MAX_BODY)
    try:
        return parse_qs(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError as error:
        raise UsageError("the form cannot be read; send it again") from error


def _values(form: Form, card: dict[str, Any]) -> dict[str, Any]:
    """Return a form's answers in the types of its fields; what was left empty is left out."""
    answers: dict[str, object] = {}
    for field in card.get("fields", ()):
        given = form.get(f"field.{field['id']}", [])
        kind = field.get("type")
        if kind == "bool":
            answers[field["id"]] = bool(given)
        elif kind == "multiselect" and given:
            answers[field["id"]] = given
        elif given and given[0] != "":
            answers[field["id"]] = _typed(kind, given[0])
    return {"values": answers}


def _typed(kind: object, text: str) -> object:
    """Return a number where one is asked for; what is none stays a text, and the form's own check says so."""
    try:
        if kind == "integer":
            return int(text)
        return float(text) if kind == "number" else text
    except ValueError:
        return text


def _to(conversation_id: str) -> Response:
    return RedirectResponse(f"/plain/{conversation_id}", 303)


def _told(error: DialoomError) -> Response:
    problem = problem_of(error)
    words = f'<p><a href="/plain">Conversations</a></p><p class="problem">{escape(str(problem))}</p>'
    return HTMLResponse(page_html("Not here", words), problem.status)
