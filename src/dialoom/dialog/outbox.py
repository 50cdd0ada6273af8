"""The outbox: what a checkpoint has said, as entries under keys. Pure, so a crash changes nothing of it.

A checkpoint is saved first, then its outbox is delivered. Delivered again, after a crash between the two or
at any time, the keys make it nothing new.
"""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from dialoom.conversation import TextEntry
from dialoom.conversation.cards import DEFAULT_CARDS, CardRegistry
from dialoom.dialog.keyed import KeyedEntry
from dialoom.dialog.shown import card_entry, card_id_from
from dialoom.dialog.standing import messages_of, turn_of
from dialoom.graph import Checkpoint
from dialoom.llm import FilePart, Message


def outbox(
    checkpoint: Checkpoint, *, after: int = 0, registry: CardRegistry = DEFAULT_CARDS
) -> tuple[KeyedEntry, ...]:
    """Return what the turn has said from its message number `after` on, in order: a card behind its call."""
    turn, messages = turn_of(checkpoint).id, messages_of(checkpoint)
    broken: dict[int, Literal["cancelled", "incomplete"]] = dict(checkpoint.state.get("broken") or ())
    cards = _cards(checkpoint)
    found: list[KeyedEntry] = []
    for at in range(after, len(messages)):
        message = messages[at]
        for number, (entry, files) in enumerate(_left_by(message)):
            marked = msgspec.structs.replace(entry, status=broken[at]) if at in broken else entry
            found.append(KeyedEntry(key_of(turn, at, number), marked, files))
        for result in message.tool_results:
            name = card_id_from(key_of(turn, at, "card", result.call_id))
            card = card_entry(cards.pop(result.call_id, None), name, registry)
            if card is not None:
                found.append(KeyedEntry(key_of(turn, at, "card"), card))
    return tuple(found)


def key_of(turn: str, *parts: int | str) -> str:
    """Return the name of a delivery; equal only for equal arguments."""
    return msgspec.json.encode([turn, *parts]).decode()


def entries_of(message: Message) -> Iterator[TextEntry]:
    """Yield what a message leaves in a log: a text, or one for each result it carries."""
    return (entry for entry, _ in _left_by(message))


def _left_by(message: Message) -> Iterator[tuple[TextEntry, tuple[FilePart, ...]]]:
    if message.role != "tool":
        text = TextEntry(
            role=message.role,
            content=message.text or message.refusal,
            reasoning=message.reasoning,
            tool_calls=message.tool_calls,
        )
        yield text, ()
    for result in message.tool_results:
        answer = TextEntry(
            role="tool",
            content=result.content,
            tool_call_id=result.call_id,
            tool_name=result.name,
            is_error=result.is_error,
        )
        yield answer, result.files


def _cards(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the newest card of each call."""
    shown: Any = checkpoint.state.get("cards") or ()
    return {each["call_id"]: each["card"] for each in shown}
