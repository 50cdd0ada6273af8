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
    """The conversations that have different entries at `index` and the same before it.

    What was said there first comes first, whichever of its versions is looked at.
    """

    index: int
    conversation_ids: list[str]


async def alternatives(store: ListedConversationStore, conversation_id: str) -> list[Alternatives]:
    """Return where a conversation has alternatives, among the 50 nearest of its family."""
    family = await _family(store, await store.header(conversation_id))
    logs = {each.id: (await store.load(each.id)).entries for each in family}
    own = logs[conversation_id]
    partings = {each.id: _parting(own, logs[each.id]) for each in family if each.id != conversation_id}
    parts: dict[int, list[Header]] = {}
    for each in family:
        index = partings.get(each.id, len(own))
        if index < len(own) and index < len(logs[each.id]):
            parts.setdefault(index, []).append(each)
    mine = next(each for each in family if each.id == conversation_id)
    found: list[Alternatives] = []
    for index, others in sorted(parts.items()):
        alike = [each for each in family if partings.get(each.id, index) >= index < len(logs[each.id])]
        ages = _ages(alike, index, logs)
        different = _representatives([mine, *others], index, logs)
        different.sort(key=lambda each: (ages[each.id], each.created, each.id))
        found.append(Alternatives(index, [each.id for each in different]))
    return found


async def version_title(store: ListedConversationStore, header: Header) -> str:
    """Return a title for a new version of a conversation: its family's, with the next number behind it."""
    taken = {each.title for each in await _family(store, header)}
    base = _NUMBER.sub("", header.title)
    if base not in taken:  # "Wells (2)" may be what somebody called it
        base = header.title
    base = base[: MAX_TITLE - _ROOM]
    return next(title for number in count(2) if (title := f"{base} ({number})") not in taken) if base else ""


def _ages(alike: list[Header], index: int, logs: dict[str, tuple[Entry, ...]]) -> dict[str, float]:
    """Return since when there is what each has at `index`: since the oldest that has the same there."""
    return {
        each.id: min(other.created for other in alike if logs[other.id][index] == logs[each.id][index])
        for each in alike
    }


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
    """Return one conversation for each different entry at `index`: the first given.

    Those that are equal as a whole are each one of them.
    """
    different: list[Header] = []
    for each in headers:
        log = logs[each.id]
        if all(log[index] != logs[other.id][index] or log == logs[other.id] for other in different):
            different.append(each)
    return different
