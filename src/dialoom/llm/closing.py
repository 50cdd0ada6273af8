"""What holds connections lets them go at the end of `async with`."""

from abc import ABC, abstractmethod
from typing import Self


class ClosedOnExit(ABC):
    """An async context manager that is closed when it is left."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @abstractmethod
    async def aclose(self) -> None:
        """Let go of what is held."""
