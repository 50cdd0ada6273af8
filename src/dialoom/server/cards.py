"""Calls on cards: which types there are, showing one, and what people do with it."""

import re
from collections import OrderedDict
from typing import Any, TypeAlias

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.ids import new_id
from dialoom.base.text import one_line
from dialoom.conversation.cards.card import Card
from dialoom.conversation.cards.unknown import UnknownCard
from dialoom.conversation.yaml_text import dump_yaml
from dialoom.dialog import AlreadyAnsweredError
from dialoom.server.card_work import CardHandlers, CardWork, Desk, no_handler
from dialoom.server.guard import is_hostile
from dialoom.server.problems import ProblemError
from dialoom.server.routes import AnyRoute, Call, Nothing, Route
from dialoom.server.shown import Shelf, card_fields

Fields: TypeAlias = dict[str, Any]
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
MAX_KEYS = 5_000
"""So many actions are remembered by their key, so that one whose answer got lost is not done twice."""


class CardTypeShape(msgspec.Struct, frozen=True):
    """A card type: JSON Schemas of its payload and of the input of each action."""

    type: str
    version: int
    names: dict[str, str]
    renderer: str
    schema: Fields
    actions: dict[str, Fields]


class CardTypes(msgspec.Struct, frozen=True):
    """The card types known here."""

    items: list[CardTypeShape]


class KnownForm(msgspec.Struct, frozen=True):
    """A form that can be asked; `card` is the payload that asks it."""

    id: str
    title: str
    card: Fields


class FormList(msgspec.Struct, frozen=True):
    """The forms known here."""

    items: list[KnownForm]


class NewCard(msgspec.Struct, frozen=True):
    """A card to show."""

    type: str
    payload: Fields


class AddedEntry(msgspec.Struct, frozen=True):
    """Where an entry now stands."""

    index: int


class CardState(msgspec.Struct, frozen=True):
    """A card after an action; `rev` is what the next one has to match."""

    card: Fields
    rev: int


class Cards:
    """Shows cards and does their actions; of two at once on one card, one is done and one is refused."""

    def __init__(self, shelf: Shelf, desk: Desk, handlers: CardHandlers) -> None:
        self._shelf = shelf
        self._desk = desk
        self._handlers = handlers
        self._done: OrderedDict[tuple[str, str, str], CardState] = OrderedDict()

    def routes(self) -> list[AnyRoute]:
        cards = "/api/v1/conversations/{id}/cards"
        return [
            Route("GET", "/api/v1/card-types", self.types, answer=CardTypes, summary="List card types"),
            Route("GET", "/api/v1/forms", self.forms, answer=FormList, summary="List forms"),
            Route(
                "POST", cards, self.show, body=NewCard, answer=AddedEntry, status=201,
                summary="Show a card",
            ),
            Route(
                "POST", cards + "/{card:path}/actions/{name}", self.act,
                body=dict[str, Any], answer=CardState,
                headers=("If-Match", "Idempotency-Key"), refusals=(409, 428),
                summary="Do an action of a card that is at the revision given in If-Match",
            ),
        ]  # fmt: skip

    async def types(self, _call: Call[Nothing, Nothing]) -> CardTypes:
        found = self._shelf.cards.describe().values()
        return CardTypes([msgspec.convert(each, CardTypeShape) for each in found])

    async def forms(self, _call: Call[Nothing, Nothing]) -> FormList:
        definitions = self._shelf.forms.definitions
        return FormList([KnownForm(each.form_id, each.title, each.card().stored()) for each in definitions])

    async def show(self, call: Call[Nothing, NewCard]) -> AddedEntry:
        new = call.body
        named = {"id": new_id(), **new.payload}  # an action has to name its card
        text = dump_yaml({"type": new.type, **named})
        card = self._shelf.cards.decode(new.type, text)
        if isinstance(card, UnknownCard):
            raise UsageError(f"this is no {one_line(new.type, 80)} card: {card.reason}")
        if is_hostile(f"/{card.id}/".encode()):  # its actions would never be reached
            raise UsageError("the card's id cannot stand in an address; use letters, digits and - . _")
        return AddedEntry(await self._desk.talks.show(call.id(), self._shelf.cards.encode(card)))

    async def act(self, call: Call[Nothing, Fields]) -> CardState:
        key = (call.id(), call.name("card"), _key(call.header("idempotency-key")))
        expected = _rev(call.header("if-match"))
        async with self._desk.turn(call.id()):
            if key[2] and key in self._done:
                return self._done[key]  # done before; the answer got lost
            state = await self._do(call.id(), key[1], call.name("name"), call.body, rev=expected)
            if key[2]:
                self._done[key] = state
                while len(self._done) > MAX_KEYS:
                    self._done.popitem(last=False)
        return state

    async def find(self, conversation_id: str, card_id: str) -> Fields:
        """Return a card as it is now. Raises `ProblemError` when there is none."""
        return card_fields((await self._desk.find(conversation_id, card_id))[1])

    async def do(
        self, conversation_id: str, card_id: str, action: str, fields: Fields, *, rev: int
    ) -> CardState:
        """Do an action on a card that is at `rev`. Raises `ProblemError`, telling what became of the card."""
        async with self._desk.turn(conversation_id):
            return await self._do(conversation_id, card_id, action, fields, rev=rev)

    async def _do(
        self, conversation_id: str, card_id: str, action: str, fields: Fields, *, rev: int
    ) -> CardState:
        current, card = await self._desk.find(conversation_id, card_id)
        if current != rev:
            raise _refusal(card, current, "card_changed", "the card has changed; look at it again")
        try:
            if not await self._work(conversation_id, card, action, fields):
                await self._desk.talks.act(conversation_id, card_id, action, fields)
        except AlreadyAnsweredError as error:
            current, card = await self._desk.find(conversation_id, card_id)
            raise _refusal(card, current, "card_decided", str(error)) from error
        current, card = await self._desk.find(conversation_id, card_id)
        return CardState(card_fields(card), current)

    async def _work(self, conversation_id: str, card: Card, action: str, fields: Fields) -> bool:
        """Have an action's handler do its work; return whether that is all there is to do.

        Raises `ProblemError` for one that needs work nobody does here: it must not look done.
        """
        handler = self._handlers.get((card.type, action))
        given = self._shelf.cards.read_input(card, action, fields)
        if handler is None:
            if given.needs_work:
                raise no_handler(card, action)
            return False
        if await self._desk.talks.waits_for(conversation_id, card.id or ""):
            return False  # answering it is what the run goes on with
        if action != "cancel":  # which is for what is under way
            self._desk.talks.runs.check_idle(conversation_id)
        if card.is_closed:
            raise AlreadyAnsweredError(card.names.get("en", card.type), card.status or "done")
        applied = self._shelf.cards.act(card, action, fields)
        changed = await handler(CardWork(conversation_id, applied, given, self._desk))
        if changed != card:
            await self._desk.show(conversation_id, changed)
        return True


def _refusal(card: Card, rev: int, code: str, detail: str) -> ProblemError:
    """Refuse with what became of the card, so that a page can show it."""
    code = "card_decided" if card.is_done else code
    params = {"status": card.status, "card": card_fields(card), "rev": rev}
    return ProblemError(409, code, one_line(detail, 300), params=params)


def _rev(header: str) -> int:
    if not header:
        raise ProblemError(428, "if_match_needed", "send the card's rev in If-Match")
    text = header.strip().strip('"')
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise ProblemError(422, "invalid_input", 'If-Match holds a card\'s rev, like "12"')
    return int(text)


def _key(header: str) -> str:
    if header and not _KEY.fullmatch(header):
        raise ProblemError(422, "invalid_input", "Idempotency-Key is 1 to 200 visible ASCII characters")
    return header
