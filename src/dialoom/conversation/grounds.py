"""The passages a question is answered from: kept with it in the log, so that an answer's `[n]` stay true."""

from collections.abc import Iterable, Mapping
from typing import Final, cast

import msgspec

from dialoom.conversation.entries import Entry, TextEntry
from dialoom.llm.messages import SourcePart

KEY: Final = "sources"
"""The field of a text entry's `meta` that holds its passages."""
MAX_SOURCES = 100


def grounds_of(entry: Entry) -> tuple[SourcePart, ...]:
    """Return the passages kept with a user's text; what cannot be read as one is left out."""
    if not isinstance(entry, TextEntry) or entry.role != "user":
        return ()
    kept = entry.meta.get(KEY)
    items = cast("list[object]", kept)[:MAX_SOURCES] if isinstance(kept, list) else []
    return tuple(_readable(items))


def _readable(items: Iterable[object]) -> Iterable[SourcePart]:
    for item in items:
        if isinstance(item, Mapping):
            try:
                yield msgspec.convert({**cast("Mapping[str, object]", item), "type": "source"}, SourcePart)
            except msgspec.ValidationError:
                continue
