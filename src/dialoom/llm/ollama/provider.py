"""A provider that speaks Ollama's own `/api/chat`."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Self

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import UsageError
from dialoom.base.ids import new_id
from dialoom.llm.assembly import Assembly
from dialoom.llm.attempts import answer_events
from dialoom.llm.capabilities import Model
from dialoom.llm.errors import ErrorKind
from dialoom.llm.events import StreamEvent
from dialoom.llm.messages import Message, Origin
from dialoom.llm.ollama.decoder import OllamaDecoder
from dialoom.llm.ollama.lines import JsonLines
from dialoom.llm.ollama.request import ollama_body
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions, Timeouts
from dialoom.llm.profile import DEFAULT_PROFILE, WireProfile
from dialoom.llm.provider import ResponseStream
from dialoom.llm.wire.endpoint import ADVICE, Endpoint
from dialoom.llm.wire.exchange import Exchange
from dialoom.llm.wire.listing import list_models
from dialoom.llm.wire.prompt_size import PromptSize
from dialoom.net.httpx2_transport import Httpx2Transport
from dialoom.net.transport import HttpTransport

_ADVICE: Mapping[ErrorKind, str] = {
    **ADVICE,
    "invalid_response": "check that the base url is an Ollama server's",
    "context_window": "shorten the conversation or raise num_ctx",
}
_NOT_FOUND = "pull the model, or check the base url, which is the path before /api/chat"


class OllamaProvider:
    """Ollama by its native wire: the one that takes a context window.

    Ollama cuts a longer prompt silently, system message first, and its default window is small. For all
    else `OpenAIProvider` at `/v1` serves as well, and it can force tool calls. `num_ctx` is the window in
    tokens; None leaves it to the server. Use it as an async context manager, or `aclose` it.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:11434",
        api_key: str | None = None,
        *,
        num_ctx: int | None = None,
        transport: HttpTransport | None = None,
        profile: WireProfile = DEFAULT_PROFILE,
        id: str = "ollama",  # noqa: A002 - a provider's name is its id
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """A `transport` passed in stays the caller's to close. Raises `UsageError` on a bad URL or window."""
        if num_ctx is not None and num_ctx < 1:
            raise UsageError(f"num_ctx is {num_ctx}; use the number of tokens of the context window")
        self.id = id
        self._endpoint = Endpoint(
            id,
            base_url.strip().rstrip("/").removesuffix("/v1"),
            api_key,
            headers={},
            clock=clock,
            advice=_ADVICE,
            not_found=_NOT_FOUND,
        )
        self._num_ctx = num_ctx
        self._profile = profile
        self._lent = transport is not None
        self._transport: HttpTransport = transport or Httpx2Transport()
        self._clock = clock

    @property
    def profile(self) -> WireProfile:
        """How this server departs from the common wire."""
        return self._profile

    def __repr__(self) -> str:
        return f"OllamaProvider({self._endpoint!r}, num_ctx={self._num_ctx})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, unless they are another's."""
        if not self._lent:
            await self._transport.aclose()

    async def models(self) -> tuple[Model, ...]:
        """Return what the server lists under `/api/tags`. Raises `ProviderError`."""
        quota_codes = self._profile.quota_codes
        return await list_models(self._endpoint, self._transport, "/api/tags", quota_codes=quota_codes)

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ResponseStream]:
        """Ask for one answer; the request goes out when the first event is asked for."""
        body = ollama_body(messages, options, self._profile, num_ctx=self._num_ctx)
        assembly = Assembly()
        prompt = PromptSize.of(body, messages)
        taken_ids = {call.id for message in messages for call in message.tool_calls}
        request = self._endpoint.post(
            "/api/chat", body, headers=options.extra_headers, connect=options.timeouts.connect
        )

        def ask(timeouts: Timeouts) -> AbstractAsyncContextManager[AsyncGenerator[StreamEvent, None]]:
            origin = Origin(self.id, options.model or "")
            decoder = OllamaDecoder(assembly, origin, prompt=prompt, new_id=new_id, taken_ids=taken_ids)
            exchange = Exchange(
                self._endpoint, request, decoder, quota_codes=self._profile.quota_codes, body=JsonLines
            )
            return exchange.opened(self._transport, timeouts, scope=options.cancel, clock=self._clock)

        async with aclosing(answer_events(ask, options, assembly=assembly, clock=self._clock)) as events:
            yield ResponseStream(events, assembly)
