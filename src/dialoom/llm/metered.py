"""A provider that counts what its answers use, and stops before more is asked than was allowed."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from dialoom.llm.around import AroundProvider
from dialoom.llm.messages import Message
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions
from dialoom.llm.provider import Provider, ResponseStream
from dialoom.llm.usage import Usage
from dialoom.llm.usage_limits import UsageMeter


class MeteredProvider(AroundProvider):
    """Asks another provider within the limits of a meter, which several providers may share.

    Answers that broke off count with what their server had reported; requests repeated on the way are one.
    """

    def __init__(self, provider: Provider, meter: UsageMeter) -> None:
        super().__init__(provider)
        self.meter = meter

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
