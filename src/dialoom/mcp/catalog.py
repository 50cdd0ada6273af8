"""A server's lists, whole: every page of them, kept until the server says that they changed."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

import msgspec

from dialoom.mcp.changes import ListChanges, ListKind
from dialoom.mcp.errors import McpError

MOST_PAGES: Final = 1000
MOST_ITEMS: Final = 10_000

Item = TypeVar("Item")


class Skipped(msgspec.Struct, frozen=True):
    """An item that a listing left out: of which list, which, and what is wrong with it."""

    kind: str
    name: str
    reason: str


FetchPage = Callable[[str | None], Awaitable[tuple[Sequence[Item], str | None]]]
"""Asks for the page at a cursor; returns its items and the cursor of the next page."""


class Listing(Generic[Item]):
    """One list of one server. `fetch` asks anew, `current` only when something may have changed."""

    def __init__(
        self, fetch: Callable[[], Awaitable[tuple[Item, ...]]], changes: ListChanges, *, kind: ListKind
    ) -> None:
        self._fetch = fetch
        self._changes = changes
        self._kind: ListKind = kind
        self._kept: tuple[Item, ...] | None = None
        self._times = -1
        self._lock = asyncio.Lock()

    async def fetch(self) -> tuple[Item, ...]:
        """Ask the server, and keep what it says. Raises `McpError`."""
        async with self._lock:
            return await self._refresh()

    async def current(self) -> tuple[Item, ...]:
        """Return what is kept, asking the server first when it announced a change. Raises `McpError`."""
        async with self._lock:
            if self._kept is None or self._changes.times(self._kind) != self._times:
                return await self._refresh()
            return self._kept

    async def _refresh(self) -> tuple[Item, ...]:
        # a change that is announced while the list is on its way counts again
        times = self._changes.times(self._kind)
        self._kept = await self._fetch()
        self._times = times
        if times == self._changes.times(self._kind):
            self._changes.clear(self._kind)
        return self._kept


async def all_pages(
    fetch: FetchPage[Item], *, server: str, key: Callable[[Item], Hashable]
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Return the items of all pages, and beside them those that came a second time and were left out.

    Raises `McpError` for a server that repeats a cursor, or whose list has no end.
    """
    found: dict[Hashable, Item] = {}
    repeated: list[Item] = []
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page, cursor = await fetch(cursor)
        for item in page:
            if key(item) in found:
                repeated.append(item)
            else:
                found[key(item)] = item
        if not cursor:
            return tuple(found.values()), tuple(repeated)
        if cursor in seen:
            raise _endless(server, "repeats a cursor")
        if len(found) + len(repeated) > MOST_ITEMS:
            raise _endless(server, f"has more than {MOST_ITEMS} items")
        seen.add(cursor)
    raise _endless(server, f"has more than {MOST_PAGES} pages")


def _endless(server: str, what: str) -> McpError:
    return McpError(
        f"mcp server {server!r} {what} in a list, which would never end; report it to its makers",
        server=server,
        kind="protocol",
    )
