"""One provider after another is asked, until one answers."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from itertools import zip_longest

import msgspec

from dialoom.base.errors import UsageError
from dialoom.llm.assembly import Assembly
from dialoom.llm.attempts import SAYS_NOTHING
from dialoom.llm.capabilities import Model
from dialoom.llm.closing import ClosedOnExit
from dialoom.llm.errors import ErrorKind, ProviderError
from dialoom.llm.events import FellBack, Retrying, StreamEvent
from dialoom.llm.messages import Message
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions
from dialoom.llm.profile import WireProfile, profile_of
from dialoom.llm.provider import Provider, ResponseStream

FALL_ON: frozenset[ErrorKind] = frozenset(
    (
        "rate_limit",
        "quota",
        "overloaded",
        "server_error",
        "timeout",
        "connection",
        "auth",
        "invalid_response",
        "incomplete_stream",
        "empty_response",
    )
)
"""What another provider may do better; a request that is wrong itself is wrong everywhere."""


class Alternative(msgspec.Struct, frozen=True):
    """A provider, and the model to ask it for; None keeps the one the request names."""

    provider: Provider
    model: str | None = None


class FallbackProvider(ClosedOnExit):
    """Asks `alternatives` in order; when one fails before it spoke, with a kind in `on`, the next is asked.

    Each provider first retries as the options say. A change is told by a `FellBack`; when all have failed,
    the last error is raised. It owns its providers: `aclose` closes them.
    """

    def __init__(
        self,
        *alternatives: Provider | Alternative,
        on: frozenset[ErrorKind] = FALL_ON,
        id: str = "fallback",  # noqa: A002 - a provider's name is its id
    ) -> None:
        """Raises `UsageError` without any alternative."""
        if not alternatives:
            raise UsageError("there is nobody to ask; give at least one provider")
        self.id = id
        self._alternatives = [
            each if isinstance(each, Alternative) else Alternative(each) for each in alternatives
        ]
        self._on = on

    @property
    def profile(self) -> WireProfile | None:
        """How the first provider's server speaks."""
        return profile_of(self._alternatives[0].provider)

    async def aclose(self) -> None:
        """Close every provider, also when closing one of them fails."""
        async with AsyncExitStack() as stack:
            for alternative in self._alternatives:
                stack.push_async_callback(alternative.provider.aclose)

    async def models(self) -> tuple[Model, ...]:
        """Return the models of every provider that can tell. Raises `ProviderError` when none can."""
        found: list[Model] = []
        failed: list[ProviderError] = []
        for alternative in self._alternatives:
            try:
                found += await alternative.provider.models()
            except ProviderError as error:
                failed.append(error)
        if len(failed) == len(self._alternatives):
            raise failed[-1]
        return tuple(found)

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ResponseStream]:
        """Ask for one answer. Raises `ProviderError`."""
        assembly = Assembly()
        async with aclosing(self._events(messages, options, assembly)) as events:
            yield ResponseStream(events, assembly)

    async def _events(
        self, messages: Sequence[Message], options: ChatOptions, assembly: Assembly
    ) -> AsyncGenerator[StreamEvent, None]:
        for asked, following in zip_longest(self._alternatives, self._alternatives[1:]):
            spoke = False
            try:
                async with asked.provider.stream(messages, _options_for(asked, options)) as stream:
                    async for event in stream:
                        spoke = not isinstance(event, SAYS_NOTHING) or (
                            spoke and not isinstance(event, Retrying)
                        )
                        assembly.add(event)
                        yield event
                return
            except ProviderError as error:
                if spoke or following is None or error.kind not in self._on:
                    raise
                fell = FellBack(provider=following.provider.id, kind=error.kind, message=str(error))
            assembly.add(fell)
            yield fell


def _options_for(asked: Alternative, options: ChatOptions) -> ChatOptions:
    return options if asked.model is None else msgspec.structs.replace(options, model=asked.model)
