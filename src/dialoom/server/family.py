"""Where conversations that branched from one another part: what a page's branch arrows lead to."""

import re
from itertools import count

import msgspec

from dialoom.conversation.entries import Entry
from dialoom.conversation.header import MAX_TITLE, Header
from dialoom.conversation.store import ConversationNotFoundError, ListedConversationStore

MAX_FAMILY = 50
_NUMBER = re.compile(r" \(\d{1,4}\)$")
_ROOM = len(" (9999)")


class Alternatives(msgspec.Struct, frozen=True, rename="camel"):
    """The conversations that have different entries at `index` and the same before it, oldest first."""

    index: int
    conversation_ids: list[str]


async def alternatives(store: ListedConversationStore, conversation_id: str) -> list[Alternatives]:
    """Return where a conversation has alternatives, among the 50 nearest of its family."""
    family = await _family(store, await store.header(conversation_id))
    logs = {each.id: (await store.load(each.id)).entries for each in family}
    own = logs[conversation_id]
    parts: dict[int, list[Header]] = {}
    for each in family:
        index = _parting(own, logs[each.id])
        if each.id != conversation_id and index < len(own) and index < len(logs[each.id]):
            parts.setdefault(index, []).append(each)
    mine = next(each for each in family if each.id == conversation_id)
    return [
        Alternatives(index, [each.id for each in _representatives([mine, *others], index, logs)])
        for index, others in sorted(parts.items())
    ]


async def version_title(store: ListedConversationStore, header: Header) -> str:
    """Return a title for a new version of a conversation: its family's, with the next number behind it."""
    taken = {each.title for each in await _family(store, header)}
    base = _NUMBER.sub("", header.title)
    if base not in taken:  # "Wells (2)" may be what somebody called it
        base = header.title
    base = base[: MAX_TITLE - _ROOM]
    return next(title for number in count(2) if (title := f"{base} ({number})") not in taken) if base else ""


async def _family(store: ListedConversationStore, header: Header) -> list[Header]:
    """Return the conversation, what it comes from and what came from any of these."""
    found = {header.id: header}
    ahead = [header]
    while ahead and len(found) < MAX_FAMILY:
        current = ahead.pop(0)
        relatives = [*await _parent(store, current), *await store.branches(current.id)]
        for each in relatives:
            if each.id not in found and len(found) < MAX_FAMILY:
                found[each.id] = each
                ahead.append(each)
    return list(found.values())


async def _parent(store: ListedConversationStore, header: Header) -> list[Header]:
    if header.branch_from is None:
        return []
    try:
        return [await store.header(header.branch_from)]
    except ConversationNotFoundError:  # deleted since
        return []


def _parting(one: tuple[Entry, ...], other: tuple[Entry, ...]) -> int:
    """Return the first index at which two logs differ, the shorter one's length when none does.

    Equal logs part at their last entry: an answer made anew may say the same again.
    """
    if one == other:
        return max(0, len(one) - 1)
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _representatives(headers: list[Header], index: int, logs: dict[str, tuple[Entry, ...]]) -> list[Header]:
    """Return one conversation for each different entry at `index`: the first given, oldest first.

    Those that are equal as a whole are each one of them.
    """
    different: list[Header] = []
    for each in headers:
        log = logs[each.id]
        if all(log[index] != logs[other.id][index] or log == logs[other.id] for other in different):
            different.append(each)
    return sorted(different, key=lambda header: (header.created, header.id))
