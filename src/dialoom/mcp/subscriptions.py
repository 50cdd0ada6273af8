"""What a program wants to be told of: remembered through lost connections, answered when granted."""

import asyncio


class Wanted:
    """The resources to be told of. `changed` is set when they are others than before."""

    def __init__(self) -> None:
        self.uris: dict[str, None] = {}
        self.changed = asyncio.Event()
        self._granted: frozenset[str] = frozenset()
        self._refusal: str | None = None
        self._news = asyncio.Condition()

    def add(self, uri: str) -> None:
        self.uris[uri] = None
        self._granted -= {uri}
        self._refusal = None
        self.changed.set()

    def remove(self, uri: str) -> None:
        self.uris.pop(uri, None)
        self.changed.set()

    async def grant(self, uris: frozenset[str]) -> None:
        """Note what a server agreed to tell of."""
        async with self._news:
            self._granted = uris
            self._refusal = None if uris.issuperset(self.uris) else "it does not tell of this resource"
            self._news.notify_all()

    async def refuse(self, why: str) -> None:
        """Note that a server tells of nothing."""
        async with self._news:
            self._refusal = why
            self._news.notify_all()

    async def answer(self, uri: str) -> str | None:
        """Wait until `uri` is granted, and return None, or refused, and return why."""
        async with self._news:
            await self._news.wait_for(lambda: uri in self._granted or self._refusal is not None)
            return None if uri in self._granted else self._refusal
