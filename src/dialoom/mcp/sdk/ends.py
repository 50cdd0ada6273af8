"""The ends of a stream in the form that the SDK wants: it reads one, writes the other, and closes both."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Generic, Self, TypeVar

import anyio

Item = TypeVar("Item")


class StreamEnd:
    """Closing it does nothing, unless a subclass says otherwise: whoever opened the connection closes it."""

    async def aclose(self) -> None:
        return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()


class Source(StreamEnd, ABC, Generic[Item]):
    """The end that is read, item by item, until `receive` raises `anyio.EndOfStream`."""

    @abstractmethod
    async def receive(self) -> Item: ...

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None
