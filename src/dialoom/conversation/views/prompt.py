"""The view for models: what was said as messages, cards as one short note, within limits."""

from collections.abc import Sequence

import msgspec

from dialoom.conversation.cards.builtin import DEFAULT_CARDS
from dialoom.conversation.cards.registry import CardRegistry
from dialoom.conversation.entries import CardEntry, Entry, TextEntry
from dialoom.conversation.grounds import grounds_of
from dialoom.llm.messages import Message, assistant, tool_result, user
from dialoom.llm.messages import system as system_message
from dialoom.llm.trim import Bounds, TurnWindow, refuse_below_one


class PromptLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a conversation a model gets. None is no limit.

    Limits leave out whole turns, oldest first; a turn runs from one user text to the next. System messages
    and the newest turn always stay. `max_messages` counts all messages, `max_chars` their text with the
    arguments of tool calls.
    """

    max_turns: int | None = None
    max_messages: int | None = None
    max_chars: int | None = None

    def __post_init__(self) -> None:
        refuse_below_one(self, self.__struct_fields__)

    @property
    def bounds(self) -> Bounds:
        """These limits as the rule that trims takes them."""
        return Bounds(turns=self.max_turns, messages=self.max_messages, characters=self.max_chars)


def prompt(
    entries: Sequence[Entry],
    *,
    system: str | None = None,
    limits: PromptLimits | None = None,
    registry: CardRegistry = DEFAULT_CARDS,
) -> tuple[Message, ...]:
    """Return what a model reads of `entries`. Pure, and linear in their number.

    `system` is the one system message; without it the stored system texts are, in front. Reasoning is left
    out. A card is one assistant note of at most 200 characters, where its newest state was shown, so that
    limits keep what was submitted last. The passages kept with the newest question go before it, and those of
    older ones nowhere. The results of a tool call follow it at once, a result without a call is left out; a
    call that has no result is the wire's to answer.
    """
    guides = _guides(entries) if system is None else (system_message(system),)
    messages = (*guides, *_messages(entries, registry))
    return messages if limits is None else TurnWindow(limits.bounds).fit(messages)


class _Blocks:
    """Messages, those with tool calls together with the results behind them."""

    def __init__(self) -> None:
        self.blocks: list[list[Message]] = []
        self._waiting: dict[str, list[Message]] = {}

    def add(self, message: Message) -> None:
        block = [message]
        self.blocks.append(block)
        for call in message.tool_calls:
            self._waiting[call.id] = block

    def add_result(self, call_id: str, message: Message) -> None:
        """Put a result behind its call; the first one counts."""
        block = self._waiting.pop(call_id, None)
        if block is not None:
            block.append(message)


def _messages(entries: Sequence[Entry], registry: CardRegistry) -> tuple[Message, ...]:
    notes = _newest_notes(entries, registry)
    newest = max((index for index, entry in enumerate(entries) if _is_question(entry)), default=-1)
    grouped = _Blocks()
    for index, entry in enumerate(entries):
        match entry:
            case CardEntry() if index in notes:
                grouped.add(assistant(notes[index]))
            case TextEntry(role="tool", tool_call_id=str(call_id)):
                result = tool_result(call_id, entry.content, name=entry.tool_name, is_error=entry.is_error)
                grouped.add_result(call_id, result)
            case TextEntry(role="user"):
                grouped.add(user(entry.content, sources=grounds_of(entry) if index == newest else ()))
            case TextEntry(role="assistant") if entry.content or entry.tool_calls:
                grouped.add(assistant(entry.content, calls=entry.tool_calls))
            case _:
                pass  # system texts stand in front, older states of a card and empty answers say nothing
    return tuple(message for block in grouped.blocks for message in block)


def _is_question(entry: Entry) -> bool:
    return isinstance(entry, TextEntry) and entry.role == "user"


def _guides(entries: Sequence[Entry]) -> tuple[Message, ...]:
    return tuple(
        system_message(entry.content)
        for entry in entries
        if isinstance(entry, TextEntry) and entry.role == "system" and entry.content
    )


def _newest_notes(entries: Sequence[Entry], registry: CardRegistry) -> dict[int, str]:
    """Return the note of each card at the place of its newest state."""
    notes: dict[int, str] = {}
    places: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if isinstance(entry, CardEntry):
            note = registry.note_of(entry)
            notes[index] = note.text
            if note.card_id is not None:
                notes.pop(places.get(note.card_id, -1), None)
                places[note.card_id] = index
    return notes
