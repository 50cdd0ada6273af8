"""Calls on cards: which types there are, showing one, and what people do with it."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.conversation.cards.card import Card
from dialoom.conversation.cards.form_check import InvalidAnswersError
from dialoom.conversation.cards.unknown import UnknownCard
from dialoom.conversation.entries import CardEntry
from dialoom.conversation.records import Append
from dialoom.conversation.store import ListedConversationStore
from dialoom.conversation.yaml_text import dump_yaml
from dialoom.server.problems import ProblemError, not_found
from dialoom.server.routes import AnyRoute, Call, Nothing, Route
from dialoom.server.shown import Shelf, card_fields

Fields: TypeAlias = dict[str, Any]
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_META = "idempotencyKey"


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


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """An action that was done: who asked in which conversation, and the card before and after it."""

    conversation_id: str
    action: str
    fields: Fields
    before: Card
    after: Card


Followed: TypeAlias = Callable[[Done], Awaitable[None]]
"""What happens after an action, such as a waiting run going on."""


class Cards:
    """Shows cards and does their actions; of two at once on one card, one is done and one is refused."""

    def __init__(self, store: ListedConversationStore, shelf: Shelf, followed: Followed) -> None:
        self._store = store
        self._shelf = shelf
        self._followed = followed
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def routes(self) -> list[AnyRoute]:
        cards = "/api/v1/conversations/{id}/cards"
        return [
            Route("GET", "/api/v1/card-types", self.types, answer=CardTypes, summary="List card types"),
            Route("GET", "/api/v1/forms", self.forms, answer=FormList, summary="List forms"),
            Route(
                "POST", cards, self.show, body=NewCard, answer=AddedEntry, status=201, refusals=(413, 415),
                summary="Show a card",
            ),
            Route(
                "POST", cards + "/{card}/actions/{name}", self.act, body=dict[str, Any], answer=CardState,
                headers=("If-Match", "Idempotency-Key"), refusals=(409, 413, 415, 428),
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
        text = dump_yaml({"type": new.type, **new.payload})
        card = self._shelf.cards.decode(new.type, text)
        if isinstance(card, UnknownCard):
            raise UsageError(f"this is no {one_line(new.type, 80)} card: {card.reason}")
        entry = self._shelf.cards.encode(card)
        conversation_id = call.id()
        async with self._turn(conversation_id):
            await self._store.append(conversation_id, [Append(entry)])
            total = (await self._store.window(conversation_id, limit=1)).total
        return AddedEntry(total - 1)

    async def act(self, call: Call[Nothing, Fields]) -> CardState:
        conversation_id, card_id, action = call.id(), call.name("card"), call.name("name")
        key = _key(call.header("idempotency-key"))
        expected = _rev(call.header("if-match"))
        async with self._turn(conversation_id):
            rev, entry, card = await self._find(conversation_id, card_id)
            if key and entry.meta.get(_META) == key:
                return CardState(card_fields(card), rev)  # done before; the answer got lost
            if rev != expected:
                raise _refusal(card, rev, "card_changed", "the card has changed; look at it again")
            after = self._after(card, rev, action, call.body)
            if after != card:
                entry = msgspec.structs.replace(
                    self._shelf.cards.encode(after), meta={_META: key} if key else {}
                )
                await self._store.append(conversation_id, [Append(entry)])
                rev, _, _ = await self._find(conversation_id, card_id)
        await self._followed(
            Done(conversation_id=conversation_id, action=action, fields=call.body, before=card, after=after)
        )
        return CardState(card_fields(after), rev)

    def _after(self, card: Card, rev: int, action: str, fields: Fields) -> Card:
        try:
            return self._shelf.cards.act(card, action, fields)
        except InvalidAnswersError:
            raise
        except UsageError as error:
            if card.is_done:
                raise _refusal(card, rev, "card_decided", str(error)) from error
            raise

    async def _find(self, conversation_id: str, card_id: str) -> tuple[int, CardEntry, Card]:
        """Return a card's newest state: the entry's index, the entry, the card. Raises `ProblemError`."""
        total = (await self._store.window(conversation_id, limit=1)).total
        transcript = await self._shelf.transcript(conversation_id, total)
        first = transcript.find(card_id)
        if first is None:
            raise not_found("card", card_id)
        rev, entry = transcript.newest(first)
        card = self._shelf.cards.decode_entry(entry, self._shelf.forms)
        if isinstance(card, UnknownCard):
            raise UsageError(f"this card can only be looked at: {card.reason}")
        return rev, entry, card

    def _turn(self, conversation_id: str) -> asyncio.Lock:
        return self._turns.setdefault(conversation_id, asyncio.Lock())


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
