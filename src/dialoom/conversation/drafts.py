"""Drafts: what someone has typed and not sent. They are not the log and change no conversation."""

from collections.abc import Mapping
from typing import Protocol

from dialoom.base.errors import UsageError
from dialoom.base.text import replace_surrogates

MAX_DRAFT = 256 * 1024
MAX_SLOT = 200
MAX_DRAFTS = 200


class DraftStore(Protocol):
    """Keeps drafts beside conversations, and forgets them with theirs."""

    async def save_draft(self, conversation_id: str, text: str, *, slot: str = "") -> None:
        """Keep `text`, at most 256 Ki characters; an empty one removes the draft.

        The slot names what is being written: "" the next message, a card's id the answers to that card. A
        conversation has at most 200; one more is a `UsageError`.
        """
        ...

    async def drafts(self, conversation_id: str) -> Mapping[str, str]:
        """Return the texts by slot, in order of the slots."""
        ...


def check_draft(text: str, slot: str) -> tuple[str, str]:
    """Return both as a store can hold them. Raises `UsageError` when one is too long."""
    if len(text) > MAX_DRAFT:
        raise UsageError(f"a draft of {len(text)} characters is over the limit of {MAX_DRAFT}; send it first")
    if len(slot) > MAX_SLOT:
        raise UsageError(f"a draft's slot of {len(slot)} characters is over {MAX_SLOT}; use the card's id")
    return replace_surrogates(text), replace_surrogates(slot)


def check_draft_count(count: int) -> None:
    """Raise `UsageError` unless a conversation with `count` drafts may have one more."""
    if count >= MAX_DRAFTS:
        raise UsageError(f"this conversation has {count} drafts; send or empty some of them first")
