"""Tags: words people sort conversations by, kept with their settings."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, TypeAlias, cast

import msgspec

from dialoom.base.text import one_line
from dialoom.conversation.header import Header
from dialoom.conversation.store import MAX_PAGE, ListedConversationStore, Page, page_of

KEY: Final = "tags"
"""Where the settings of a conversation keep its tags."""
MAX_TAG: Final = 60
MAX_TAGS: Final = 20
MAX_LOOKED_AT: Final = 10_000
"""So many conversations are looked at for one page; a page may have less than was asked for, and go on."""

Tag: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TAG)]
TagList: TypeAlias = Annotated[list[Tag], msgspec.Meta(max_length=MAX_TAGS)]


def tags_in(header: Header) -> list[str]:
    """Return the tags of a conversation; what is damaged is left out."""
    kept = header.settings.get(KEY)
    return (
        [each for each in cast("Sequence[object]", kept) if isinstance(each, str)]
        if isinstance(kept, list)
        else []
    )


def with_tags(settings: Mapping[str, object], tags: Sequence[str]) -> dict[str, object]:
    """Return settings with these tags, each once and on one line, in place of those there are."""
    words = dict.fromkeys(filter(None, (one_line(each, MAX_TAG).strip() for each in tags)))
    return {
        **{name: settings[name] for name in settings if name != KEY},
        **({KEY: list(words)} if words else {}),
    }


async def tagged(
    store: ListedConversationStore, tag: str, *, query: str, cursor: str | None, limit: int
) -> Page:
    """Return the page of those conversations that have a tag, as the store's `page` does."""
    found: list[Header] = []
    looked_at = 0
    while True:
        page = await store.page(query=query, cursor=cursor, limit=MAX_PAGE)
        found += [each for each in page.headers if tag in tags_in(each)]
        looked_at += len(page.headers)
        if len(found) > limit or page.cursor is None:
            return page_of(found[: limit + 1], limit)
        if looked_at >= MAX_LOOKED_AT:
            return Page(tuple(found), page.cursor)
        cursor = page.cursor
