"""The one interface to a model: a stream of events. A blocking answer is that stream, read to its end."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, Self

from dialoom.base.errors import UsageError
from dialoom.llm.assembly import Assembly
from dialoom.llm.capabilities import Model
from dialoom.llm.events import ResponseCompleted, StreamEvent
from dialoom.llm.messages import Message
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions
from dialoom.llm.response import ChatResponse


class ResponseStream:
    """One answer on its way. Iterate it; afterwards `response` holds the whole.

    It ends in exactly one of three ways: a last `ResponseCompleted`; a `ProviderError`; or, when its scope
    was cancelled, `Cancelled`. However it ends, `partial` is what had arrived.
    """

    def __init__(self, events: AsyncGenerator[StreamEvent, None], assembly: Assembly) -> None:
        """Wrap `events`, whose maker adds each of them to `assembly` before it is seen here."""
        self._events = events
        self._assembly = assembly
        self._response: ChatResponse | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamEvent:
        event = await anext(self._events)
        if isinstance(event, ResponseCompleted):
            self._response = event.response
        return event

    @property
    def response(self) -> ChatResponse:
        """The whole answer. Raises `UsageError` before the stream was read to its end."""
        if self._response is None:
            raise UsageError("the answer is not complete; read the stream to its end first")
        return self._response

    @property
    def partial(self) -> Message:
        """What has arrived so far, as a message; calls that are not whole are marked `truncated`."""
        return self._assembly.message()


class Provider(Protocol):
    """A place models answer from. Implementations hold connections; `aclose` lets them go."""

    @property
    def id(self) -> str: ...

    async def models(self) -> tuple[Model, ...]:
        """Return the models on offer. Raises `ProviderError`."""
        ...

    def stream(
        self, messages: Sequence[Message], options: ChatOptions = ...
    ) -> AbstractAsyncContextManager[ResponseStream]:
        """Ask for one answer. Leaving the context early closes the connection and stops the model."""
        ...

    async def aclose(self) -> None: ...


async def chat(
    provider: Provider, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
) -> ChatResponse:
    """Return one whole answer: the stream of `provider`, read to its end, with its errors."""
    async with provider.stream(messages, options) as stream:
        async for _ in stream:
            pass
        return stream.response
