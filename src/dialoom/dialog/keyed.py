"""Entries on their way into a log: each under the name of its delivery, with the files that belong to it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, cast

import msgspec

from dialoom.conversation import Append, Entry, TextEntry
from dialoom.llm import FilePart

ATTACHMENTS = "attachments"
KeepFile: TypeAlias = Callable[[FilePart], Awaitable[dict[str, object] | None]]
"""Keeps a file that a tool returned, and returns what a log notes of it; None when it cannot be kept."""


class KeyedEntry(msgspec.Struct, frozen=True):
    """An entry on its way into a log, and the name of its delivery: the same one made twice adds one."""

    key: str
    entry: Entry
    files: tuple[FilePart, ...] = ()


async def records_of(entries: Sequence[KeyedEntry], keep: KeepFile | None) -> list[Append]:
    """Return what adds `entries` to a log, once their files are kept; without `keep` these are left out."""
    return [Append(await _noted(each, keep), each.key) for each in entries]


async def _noted(keyed: KeyedEntry, keep: KeepFile | None) -> Entry:
    entry = keyed.entry
    if keep is None or not isinstance(entry, TextEntry):
        return entry
    kept = [note for file in keyed.files if (note := await keep(file)) is not None]
    if not kept:
        return entry
    return msgspec.structs.replace(entry, meta={**entry.meta, ATTACHMENTS: kept})


def words_of(entry: TextEntry) -> str:
    """Return what a person said, without the lines behind it that name what is attached."""
    noted = entry.meta.get(ATTACHMENTS)
    lines = entry.content.split("\n")
    for _ in cast("list[object]", noted) if isinstance(noted, list) else ():
        if len(lines) > 1 and lines[-1].startswith("[file: "):
            lines.pop()
    return "\n".join(lines)
