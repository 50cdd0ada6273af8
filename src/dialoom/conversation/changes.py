"""What a conversation tells those who watch it: each notice says what changed, and where."""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from dialoom.conversation.entries import Entry
from dialoom.conversation.header import Header


class EntryAppended(msgspec.Struct, frozen=True, kw_only=True):
    """An entry stands at `index` of the visible list, which was its end."""

    index: int
    entry: Entry
    key: str | None = None


class EntriesRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """The visible list has only its first `keep` entries left; `removed` were behind them."""

    keep: int
    removed: int


class HeaderChanged(msgspec.Struct, frozen=True):
    """Title, mode or settings are now those of `header`."""

    header: Header


Change: TypeAlias = EntryAppended | EntriesRemoved | HeaderChanged
Listener: TypeAlias = Callable[[Change], None]
