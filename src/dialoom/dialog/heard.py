"""A provider that remembers why its last answer broke off: an agent keeps the words of that alone."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from dialoom.llm import ChatOptions, Message, Provider, ProviderError, ResponseStream
from dialoom.llm.around import AroundProvider
from dialoom.llm.options import DEFAULT_OPTIONS


class HeardProvider(AroundProvider):
    """Passes everything on to `provider`; `failure` is why the newest answer broke off, if it did."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(provider)
        self.failure: ProviderError | None = None

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ResponseStream]:
        self.failure = None
        try:
            async with self._provider.stream(messages, options) as stream:
                yield stream
        except ProviderError as error:
            self.failure = error
            raise


def reason_of(failure: ProviderError) -> str:
    """Return the word for it: `auth` for a key that was refused, which a person mends, else `provider`."""
    return failure.kind if failure.kind == "auth" else failure.code
