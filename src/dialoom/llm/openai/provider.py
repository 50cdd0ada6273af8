"""A provider that speaks chat completions, as OpenAI and most other servers do."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import partial
from typing import Self

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.ids import new_id
from dialoom.llm.assembly import Assembly
from dialoom.llm.attempts import answer_events
from dialoom.llm.capabilities import Model
from dialoom.llm.events import StreamEvent
from dialoom.llm.messages import Message, Origin
from dialoom.llm.openai.advice import CHAT_ADVICE, NOT_FOUND
from dialoom.llm.openai.decoder import ChatDecoder
from dialoom.llm.openai.request import chat_body
from dialoom.llm.openai.responses_decoder import ResponsesDecoder
from dialoom.llm.openai.responses_request import responses_body
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions, Timeouts
from dialoom.llm.profile import WireProfile, profile_for
from dialoom.llm.provider import ResponseStream
from dialoom.llm.wire.endpoint import Endpoint
from dialoom.llm.wire.exchange import AnswerDecoder, Exchange
from dialoom.llm.wire.listing import list_models
from dialoom.llm.wire.prompt_size import PromptSize
from dialoom.net.address import split_url
from dialoom.net.httpx2_transport import Httpx2Transport
from dialoom.net.transport import HttpTransport


class OpenAIProvider:
    """Any server with `/chat/completions`: OpenAI, Ollama, LM Studio, llama.cpp, vLLM and others.

    Use it as an async context manager, or `aclose` it. `base_url` goes up to and includes `/v1`. A model
    is named by the options of each request; without a name the server decides. A profile whose `api` is
    `responses` speaks `/responses` instead.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        transport: HttpTransport | None = None,
        headers: Mapping[str, str] | None = None,
        profile: WireProfile | None = None,
        id: str = "openai",  # noqa: A002 - a provider's name is its id
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """A `transport` passed in stays the caller's to close. Raises `UsageError` on a bad URL or key."""
        self.id = id
        self._endpoint = Endpoint(
            id,
            base_url,
            api_key,
            headers=headers or {},
            clock=clock,
            advice=CHAT_ADVICE,
            not_found=NOT_FOUND,
        )
        self._profile = profile or profile_for(split_url(self._endpoint.base_url).hostname or "")
        self._lent = transport is not None
        self._transport: HttpTransport = transport or Httpx2Transport()
        self._clock = clock

    @property
    def profile(self) -> WireProfile:
        """How this server departs from the common wire."""
        return self._profile

    def __repr__(self) -> str:
        return f"OpenAIProvider({self._endpoint!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, unless they are another's."""
        if not self._lent:
            await self._transport.aclose()

    async def models(self) -> tuple[Model, ...]:
        """Return what the server lists under `/models`. Raises `ProviderError`."""
        quota_codes = self._profile.quota_codes
        return await list_models(self._endpoint, self._transport, "/models", quota_codes=quota_codes)

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ResponseStream]:
        """Ask for one answer; the request goes out when the first event is asked for."""
        assembly = Assembly()
        path, body, new_decoder = self._wire(messages, options, assembly)
        request = self._endpoint.post(
            path, body, headers=options.extra_headers, connect=options.timeouts.connect
        )

        def ask(timeouts: Timeouts) -> AbstractAsyncContextManager[AsyncGenerator[StreamEvent, None]]:
            decoder = new_decoder()
            exchange = Exchange(self._endpoint, request, decoder, quota_codes=self._profile.quota_codes)
            return exchange.opened(self._transport, timeouts, scope=options.cancel, clock=self._clock)

        async with aclosing(answer_events(ask, options, assembly=assembly, clock=self._clock)) as events:
            yield ResponseStream(events, assembly)

    def _wire(
        self, messages: Sequence[Message], options: ChatOptions, assembly: Assembly
    ) -> tuple[str, bytes, Callable[[], AnswerDecoder]]:
        """Return path, body and the maker of a decoder, of the wire that the profile names."""
        origin = Origin(self.id, options.model or "")
        taken_ids = {call.id for message in messages for call in message.tool_calls}
        if self._profile.api == "responses":
            body = responses_body(messages, options, self._profile, provider=self.id)
            new_decoder = partial(ResponsesDecoder, assembly, origin, new_id=new_id, taken_ids=taken_ids)
            return "/responses", body, new_decoder
        body = chat_body(messages, options, self._profile)
        new_decoder = partial(
            ChatDecoder,
            assembly,
            origin,
            profile=self._profile,
            prompt=PromptSize.of(body, messages),
            new_id=new_id,
            taken_ids=taken_ids,
        )
        return "/chat/completions", body, new_decoder
