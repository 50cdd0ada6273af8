"""What a program wants to be told of: remembered through lost connections, answered when granted."""

import asyncio
from collections.abc import Iterable


class Wanted:
    """The resources to be told of. `changed` is set when they are others than before."""

    def __init__(self) -> None:
        self.uris: dict[str, None] = {}
        self.changed = asyncio.Event()
        self._granted: frozenset[str] = frozenset()
        self._refused: frozenset[str] = frozenset()
        self._tells_nothing = ""
        self._news = asyncio.Condition()

    def begin(self) -> None:
        """Forget what another connection granted and refused."""
        self._granted = self._refused = frozenset()
        self._tells_nothing = ""

    def add(self, uri: str) -> None:
        self.uris[uri] = None
        self._granted -= {uri}
        self._refused -= {uri}
        self.changed.set()

    def remove(self, uri: str) -> None:
        self.uris.pop(uri, None)
        self.changed.set()

    async def grant(self, asked: Iterable[str], granted: frozenset[str]) -> None:
        """Note which of the resources that it was asked for a server agreed to tell of."""
        async with self._news:
            self._granted = granted
            self._refused = frozenset(asked) - granted
            self._news.notify_all()

    async def refuse(self, why: str) -> None:
        """Note that a server tells of nothing, for as long as this connection lives."""
        async with self._news:
            self._tells_nothing = why
            self._news.notify_all()

    async def answer(self, uri: str) -> str | None:
        """Wait until `uri` is granted, and return None, or refused, and return why."""
        async with self._news:
            await self._news.wait_for(
                lambda: uri in self._granted or uri in self._refused or self._tells_nothing
            )
            if uri in self._granted:
                return None
            return self._tells_nothing or "it does not tell of this resource"
