"""A long conversation told in short: older turns become one summary that only the model's view has.

The log keeps every word. The summary is kept beside it, with the place up to which it tells.
"""

from collections.abc import Sequence
from itertools import accumulate

import msgspec

from dialoom.agent import Compaction, Summary
from dialoom.agent.compaction import AGAIN_AFTER, compact
from dialoom.conversation import Entry, TextEntry, prompt
from dialoom.conversation.cards import CardRegistry
from dialoom.dialog.settings import KeptSummary
from dialoom.llm import ChatOptions, Message, Provider, user


class Told(msgspec.Struct, frozen=True):
    """What a model reads of a conversation, the summary in it, and why there is no newer one."""

    messages: tuple[Message, ...]
    summary: KeptSummary | None = None
    problem: str = ""


async def tell_short(
    entries: Sequence[Entry],
    kept: KeptSummary | None,
    *,
    start: int,
    cards: CardRegistry,
    provider: Provider,
    options: ChatOptions,
    compaction: Compaction,
) -> Told:
    """Return the view of `entries`, the first of which stands at `start` in the log.

    Turns that `kept` tells of are left out. When the rest is too long, the provider is asked once for a
    summary of its older turns; the newest turn always stays as it was said.
    """
    if kept is not None:
        entries = entries[max(0, kept.entries - start) :]
        start = max(start, kept.entries)
    turns = _turns(entries)
    said = [_said(turn, cards) for turn in turns]
    before = Summary(text=kept.text if kept else "")
    messages = [message for turn in said for message in turn]
    if kept is not None and kept.tried and start + len(entries) < kept.tried + AGAIN_AFTER:
        return Told((*_summary_message(kept), *messages), kept)
    told = await compact(provider, messages, before, compaction=compaction, options=options)
    if told.problem:
        failed = msgspec.structs.replace(kept or KeptSummary(), tried=start + len(entries))
        return Told((*_summary_message(kept), *messages), failed, told.problem)
    ends = list(accumulate(len(turn) for turn in said[:-1]))
    whole = sum(end <= told.summary.covers for end in ends)
    if whole:
        place = start + sum(len(turn) for turn in turns[:whole])
        kept = KeptSummary(entries=place, text=told.summary.text)
    rest = tuple(message for turn in said[whole:] for message in turn)
    return Told((*_summary_message(kept), *rest), kept)


def _summary_message(kept: KeptSummary | None) -> tuple[Message, ...]:
    if kept is None or not kept.text:
        return ()
    words = f"Summary of the conversation so far:\n{kept.text}"
    return (msgspec.structs.replace(user(words), mark="summary"),)


def _turns(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return `entries` by turn; each begins with what a user said."""
    turns: list[list[Entry]] = []
    for entry in entries:
        if not turns or (isinstance(entry, TextEntry) and entry.role == "user"):
            turns.append([])
        turns[-1].append(entry)
    return turns


def _said(turn: Sequence[Entry], cards: CardRegistry) -> list[Message]:
    """Return the messages of one turn; system texts stand elsewhere."""
    return [message for message in prompt(turn, registry=cards) if message.role != "system"]
