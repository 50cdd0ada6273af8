"""A provider that speaks the Messages wire, as Anthropic and some local servers do."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Self

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.ids import new_id
from dialoom.llm.anthropic.decoder import MessageDecoder
from dialoom.llm.anthropic.request import message_body
from dialoom.llm.assembly import Assembly
from dialoom.llm.attempts import answer_events
from dialoom.llm.capabilities import Model
from dialoom.llm.errors import ErrorKind
from dialoom.llm.events import StreamEvent
from dialoom.llm.messages import Message, Origin
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions, Timeouts
from dialoom.llm.places import ANTHROPIC_URL
from dialoom.llm.profile import ANTHROPIC_PROFILE, WireProfile
from dialoom.llm.provider import ResponseStream
from dialoom.llm.wire.endpoint import ADVICE, Endpoint, clean_key
from dialoom.llm.wire.exchange import Exchange
from dialoom.llm.wire.listing import list_models
from dialoom.llm.wire.prompt_size import PromptSize
from dialoom.net.httpx2_transport import Httpx2Transport
from dialoom.net.transport import HttpTransport

VERSION = "2023-06-01"
"""The version of the wire, sent as `anthropic-version`; a header of the caller's own replaces it."""
_ADVICE: Mapping[ErrorKind, str] = {
    **ADVICE,
    "invalid_response": "check that the base url is one of a server with a messages api",
}
_NOT_FOUND = "check the model's name and the base url, which goes up to the path before /v1/messages"


class AnthropicProvider:
    """Any server with `/v1/messages`: Anthropic, and llama.cpp, LM Studio, Ollama and others.

    Use it as an async context manager, or `aclose` it. `base_url` goes up to `/v1`, with or without it. The
    key is sent as `x-api-key`; a bearer token goes into `headers` as `authorization`. An answer that ends
    with finish reason `pause` is sent back as it is, and the server goes on with it.
    """

    def __init__(
        self,
        base_url: str = ANTHROPIC_URL,
        api_key: str | None = None,
        *,
        transport: HttpTransport | None = None,
        headers: Mapping[str, str] | None = None,
        profile: WireProfile = ANTHROPIC_PROFILE,
        id: str = "anthropic",  # noqa: A002 - a provider's name is its id
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """A `transport` passed in stays the caller's to close. Raises `UsageError` on a bad URL or key."""
        self.id = id
        self._endpoint = Endpoint(
            id,
            base_url.strip().rstrip("/").removesuffix("/v1"),
            None,
            headers={"anthropic-version": VERSION, **_key_header(api_key), **_lower(headers or {})},
            clock=clock,
            advice=_ADVICE,
            not_found=_NOT_FOUND,
        )
        self._profile = profile
        self._lent = transport is not None
        self._transport: HttpTransport = transport or Httpx2Transport()
        self._clock = clock

    @property
    def profile(self) -> WireProfile:
        """How this server departs from the common wire."""
        return self._profile

    def __repr__(self) -> str:
        return f"AnthropicProvider({self._endpoint!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, unless they are another's."""
        if not self._lent:
            await self._transport.aclose()

    async def models(self) -> tuple[Model, ...]:
        """Return what the server lists under `/v1/models`. Raises `ProviderError`."""
        path, quota_codes = "/v1/models?limit=1000", self._profile.quota_codes
        return await list_models(self._endpoint, self._transport, path, quota_codes=quota_codes)

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ResponseStream]:
        """Ask for one answer; the request goes out when the first event is asked for."""
        body = message_body(messages, options, profile=self._profile, provider=self.id)
        assembly = Assembly()
        prompt = PromptSize.of(body, messages)
        taken_ids = {call.id for message in messages for call in message.tool_calls}
        request = self._endpoint.post(
            "/v1/messages", body, headers=options.extra_headers, connect=options.timeouts.connect
        )

        def ask(timeouts: Timeouts) -> AbstractAsyncContextManager[AsyncGenerator[StreamEvent, None]]:
            origin = Origin(self.id, options.model or "")
            decoder = MessageDecoder(assembly, origin, prompt=prompt, new_id=new_id, taken_ids=taken_ids)
            exchange = Exchange(self._endpoint, request, decoder, quota_codes=self._profile.quota_codes)
            return exchange.opened(self._transport, timeouts, scope=options.cancel, clock=self._clock)

        async with aclosing(answer_events(ask, options, assembly=assembly, clock=self._clock)) as events:
            yield ResponseStream(events, assembly)


def _key_header(api_key: str | None) -> dict[str, str]:
    return {"x-api-key": clean_key(api_key)} if api_key else {}


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
