"""What a card's action does outside the card: handlers by type and action, and what they work with.

A handler is called with the action checked and applied, and returns the card's next state. What takes
longer it starts as a job, which changes the card and shows further ones as it goes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from dialoom.base.errors import UsageError
from dialoom.conversation.cards.actions import CardInput
from dialoom.conversation.cards.card import Card
from dialoom.conversation.cards.unknown import UnknownCard
from dialoom.conversation.entries import CardEntry
from dialoom.conversation.records import Append
from dialoom.conversation.store import ListedConversationStore
from dialoom.server.background import Background
from dialoom.server.dataset_store import DatasetStore
from dialoom.server.files import FileStore
from dialoom.server.problems import ProblemError, not_found
from dialoom.server.shown import Shelf
from dialoom.server.talks import Talks


@dataclass(frozen=True)
class Keep:
    """Where handlers find and put what does not fit into a card."""

    files: FileStore
    datasets: DatasetStore
    background: Background


class Desk:
    """Finds cards, and changes them one change of a conversation at a time. One for all conversations."""

    def __init__(self, store: ListedConversationStore, shelf: Shelf, talks: Talks, keep: Keep) -> None:
        self._store = store
        self._shelf = shelf
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._jobs: dict[str, asyncio.Task[None]] = {}
        self.talks = talks
        self.keep = keep

    def turn(self, conversation_id: str) -> asyncio.Lock:
        """Return what is held while a card of the conversation is looked at and changed."""
        return self._turns.setdefault(conversation_id, asyncio.Lock())

    async def find(self, conversation_id: str, card_id: str) -> tuple[int, Card]:
        """Return the index of a card's newest state, and that. Raises `ProblemError`."""
        transcript = await self._shelf.transcript(conversation_id, await self._count(conversation_id))
        first = transcript.find(card_id)
        if first is None:
            raise await self._no_card(conversation_id, card_id)
        rev, entry = transcript.newest(first)
        card = self._shelf.cards.decode_entry(entry, self._shelf.forms)
        if isinstance(card, UnknownCard):
            raise UsageError(f"this card can only be looked at: {card.reason}")
        return rev, card

    async def of_type(self, conversation_id: str, name: str) -> list[Card]:
        """Return a conversation's cards of one type as they are now, those that can be read."""
        transcript = await self._shelf.transcript(conversation_id, await self._count(conversation_id))
        decoded = (self._shelf.cards.decode_entry(each) for each in transcript.cards_of(name))
        return [card for card in decoded if isinstance(card, Card)]

    async def show(self, conversation_id: str, card: Card) -> None:
        """Show a card, or a new state of one, as soon as no answer is under way there."""
        await self.talks.show_later(conversation_id, self._shelf.cards.encode(card))

    async def change(self, conversation_id: str, card_id: str, change: Callable[[Card], Card]) -> None:
        """Show what `change` makes of a card; nothing happens when that is the card as it is."""
        async with self.turn(conversation_id):
            _, card = await self.find(conversation_id, card_id)
            changed = change(card)
            if changed != card:
                await self.show(conversation_id, changed)

    def start(self, work: Coroutine[Any, Any, None], job: str) -> None:
        """Begin `work`, which `stop(job)` cancels. Raises `ProblemError` when too much is under way."""
        task = self.keep.background.start(work, job)
        self._jobs[job] = task
        task.add_done_callback(lambda _: self._jobs.pop(job, None))

    def is_going(self, job: str) -> bool:
        """Tell whether a job is under way."""
        return job in self._jobs

    def stop(self, job: str) -> bool:
        """Cancel a job; return whether it was under way."""
        task = self._jobs.get(job)
        return task is not None and task.cancel()

    async def _no_card(self, conversation_id: str, card_id: str) -> ProblemError:
        """Return the refusal for a card that is not seen: taken back with its messages, or never there."""
        records = (await self._store.load(conversation_id)).records
        entries = (record.entry for record in records if isinstance(record, Append))
        if any(isinstance(entry, CardEntry) and entry.card_id == card_id for entry in entries):
            detail = "this card was taken back with its messages; load the conversation again"
            return ProblemError(409, "card_decided", detail, params={"status": "expired"})
        return not_found("card", card_id, then="load the conversation again")

    async def _count(self, conversation_id: str) -> int:
        return (await self._store.window(conversation_id, limit=1)).total


@dataclass(frozen=True)
class CardWork:
    """One action that a person did: `card` is its state with the action's input, `given`, applied."""

    conversation_id: str
    card: Card
    given: CardInput
    desk: Desk

    @property
    def card_id(self) -> str:
        """The card's id; a card without one takes no actions."""
        assert self.card.id is not None
        return self.card.id

    async def show(self, card: Card) -> None:
        """Show a further card in the conversation."""
        await self.desk.show(self.conversation_id, card)

    async def change(self, change: Callable[[Card], Card]) -> None:
        """Change the card from a job: after the handler has returned, never in it."""
        await self.desk.change(self.conversation_id, self.card_id, change)


CardHandler: TypeAlias = Callable[[CardWork], Awaitable[Card]]
"""Does an action's work, or begins it, and returns the card's next state. Raises errors of ours to refuse."""
CardHandlers: TypeAlias = Mapping[tuple[str, str], CardHandler]
"""Handlers by the type of card and the name of the action."""


def no_handler(card: Card, action: str) -> ProblemError:
    """Return the refusal of an action whose work nobody does here."""
    return ProblemError(
        501,
        "no_handler",
        f"nothing here does {action!r} of a {card.type} card; ask who runs this server to wire it",
        params={"type": card.type, "action": action},
    )
