"""The view for people: texts and cards in order, each card once and at its newest."""

import logging
from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from dialoom.conversation.cards.builtin import DEFAULT_CARDS
from dialoom.conversation.cards.card import Card
from dialoom.conversation.cards.form_registry import FormRegistry
from dialoom.conversation.cards.registry import CardRegistry
from dialoom.conversation.cards.unknown import UnknownCard
from dialoom.conversation.entries import CardEntry, Entry, TextEntry
from dialoom.llm.messages import Role

_log = logging.getLogger("dialoom.conversation")

Author: TypeAlias = Literal["user", "ai", "tool"]
_AUTHORS: dict[Role, Author] = {"user": "user", "assistant": "ai", "tool": "tool"}


class ShownText(msgspec.Struct, frozen=True, kw_only=True):
    """A text on the screen; `index` is its entry's place in the list of visible entries."""

    index: int
    author: Author
    entry: TextEntry
    is_last: bool = False

    @property
    def content(self) -> str:
        return self.entry.content


class ShownCard(msgspec.Struct, frozen=True, kw_only=True):
    """A card on the screen, in its first place; `updated_index` is the entry with its newest payload."""

    index: int
    updated_index: int
    card: Card | UnknownCard
    author: Author = "ai"
    is_last: bool = False

    @property
    def type(self) -> str:
        return self.card.type


Shown: TypeAlias = ShownText | ShownCard


class Screen:
    """What is shown, growing entry by entry: the same as building it anew from all of them."""

    def __init__(self, registry: CardRegistry = DEFAULT_CARDS, forms: FormRegistry | None = None) -> None:
        self._registry = registry
        self._forms = forms
        self._items: list[Shown] = []
        self._places: dict[str, int] = {}
        self._count = 0

    def add(self, entry: Entry) -> None:
        """Show the next visible entry. A system text is not for people and takes a place, but no item."""
        index, self._count = self._count, self._count + 1
        if isinstance(entry, CardEntry):
            self._add_card(index, entry)
        elif entry.role != "system":
            self._items.append(ShownText(index=index, author=_AUTHORS[entry.role], entry=entry))

    @property
    def items(self) -> tuple[Shown, ...]:
        """What is shown, the last item marked."""
        if not self._items:
            return ()
        return (*self._items[:-1], msgspec.structs.replace(self._items[-1], is_last=True))

    def _add_card(self, index: int, entry: CardEntry) -> None:
        card = self._registry.decode_entry(entry, self._forms)
        if card.locked:
            # the reason may quote the payload, so it stays on the screen
            _log.warning("card shown as a placeholder", extra={"card_type": card.type[:64], "entry": index})
        place = len(self._items) if card.id is None else self._places.setdefault(card.id, len(self._items))
        if place < len(self._items):
            self._items[place] = msgspec.structs.replace(self._items[place], card=card, updated_index=index)
        else:
            self._items.append(ShownCard(index=index, updated_index=index, card=card))


def screen(
    entries: Iterable[Entry], registry: CardRegistry = DEFAULT_CARDS, *, forms: FormRegistry | None = None
) -> tuple[Shown, ...]:
    """Return what people see of `entries`.

    A card that cannot be read is a placeholder and one line in the log; its entry stays as it is. With
    `forms`, a form is shown as its definition asks it today; when that is gone it is locked, and logged too.
    """
    view = Screen(registry, forms)
    for entry in entries:
        view.add(entry)
    return view.items
