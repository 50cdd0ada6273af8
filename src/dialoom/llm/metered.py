"""A provider that counts what its answers use, and stops before more is asked than was allowed."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from dialoom.llm.capabilities import Model
from dialoom.llm.messages import Message
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions
from dialoom.llm.profile import WireProfile, profile_of
from dialoom.llm.provider import Provider, ResponseStream
from dialoom.llm.usage import Usage
from dialoom.llm.usage_limits import UsageMeter


class MeteredProvider:
    """Asks another provider within the limits of a meter, which several providers may share.

    Answers that broke off count with what their server had reported; requests repeated on the way are one.
    """

    def __init__(self, provider: Provider, meter: UsageMeter) -> None:
        self.id = provider.id
        self.meter = meter
        self._provider = provider

    @property
    def profile(self) -> WireProfile | None:
        """What the provider asked says of its server."""
        return profile_of(self._provider)

    async def models(self) -> tuple[Model, ...]:
        return await self._provider.models()

    async def aclose(self) -> None:
        await self._provider.aclose()

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ResponseStream]:
        """Ask for one answer. Raises `UsageLimitError` when a limit is reached, before anything is sent."""
        self.meter.begin()
        async with self._provider.stream(messages, options) as stream:
            try:
                yield stream
            finally:
                said = stream.partial
                self.meter.add(said.usage or Usage(), options.model or "", provider=self.id)
