"""A provider that speaks the Messages wire, as Anthropic and some local servers do."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

import msgspec

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.llm.anthropic.decoder import MessageDecoder
from dialoom.llm.anthropic.request import count_body, message_body
from dialoom.llm.attempts import repeated
from dialoom.llm.capabilities import Model
from dialoom.llm.errors import ErrorKind
from dialoom.llm.messages import Message
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions
from dialoom.llm.places import ANTHROPIC_URL
from dialoom.llm.profile import ANTHROPIC_PROFILE, WireProfile
from dialoom.llm.switch import StopSwitch
from dialoom.llm.wire.endpoint import ADVICE, Endpoint, clean_base, clean_key, with_lower_names
from dialoom.llm.wire.served_provider import ServedProvider
from dialoom.llm.wire.server import Question
from dialoom.net.transport import HttpTimeouts, HttpTransport

VERSION = "2023-06-01"
"""The version of the wire, sent as `anthropic-version`; a header of the caller's own replaces it."""
_ADVICE: Mapping[ErrorKind, str] = {
    **ADVICE,
    "invalid_response": "check that the base url is one of a server with a messages api",
}
_MAX_COUNT_BYTES = 64 * 1024
_NOT_FOUND = "check the model's name and the base url, which goes up to the path before /v1/messages"


class AnthropicProvider(ServedProvider):
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
        endpoint = Endpoint(
            id,
            clean_base(base_url).removesuffix("/v1"),
            None,
            headers={"anthropic-version": VERSION, **_key_header(api_key), **with_lower_names(headers or {})},
            clock=clock,
            advice=_ADVICE,
            not_found=_NOT_FOUND,
        )
        super().__init__(endpoint, transport, profile=profile, clock=clock)
        self._clock = clock

    async def models(self) -> tuple[Model, ...]:
        """Return what the server lists under `/v1/models`. Raises `ProviderError`."""
        return await self._server.models("/v1/models?limit=1000")

    async def count_tokens(self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS) -> int:
        """Return the tokens that `messages` with the tools and instructions of `options` are, before asking.

        The server counts, with the tokenizer of the model. Raises `ProviderError`, and `Cancelled` by the
        scope of the options.
        """
        body = count_body(messages, options, profile=self._profile, provider=self.id)
        ends_at = self._clock.monotonic() + options.timeouts.total
        with StopSwitch(options.cancel) as switch:
            return await repeated(
                partial(self._counted, body, options),
                options.retry,
                switch=switch,
                clock=self._clock,
                ends_at=ends_at,
            )

    async def _counted(self, body: bytes, options: ChatOptions) -> int:
        server, model, timeouts = self._server, options.model or "", options.timeouts
        seconds = min(timeouts.first_event, timeouts.total)
        limits = HttpTimeouts(connect=timeouts.connect, read=seconds, total=seconds)
        request = server.endpoint.post(
            "/v1/messages/count_tokens", body, headers=options.extra_headers, connect=limits.connect
        )
        limited = msgspec.structs.replace(request, timeouts=limits)
        said = await server.fetch(limited, model=model, max_bytes=_MAX_COUNT_BYTES)
        try:
            return _count_decoder.decode(said).input_tokens
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise server.endpoint.error(
                "invalid_response", f"{server!r} sent no count of tokens", model=model
            ) from error

    def _question(self, messages: Sequence[Message], options: ChatOptions, profile: WireProfile) -> Question:
        body = message_body(messages, options, profile=profile, provider=self.id)
        return Question(path="/v1/messages", body=body, new_decoder=MessageDecoder)


class _Count(msgspec.Struct):
    input_tokens: Annotated[int, msgspec.Meta(ge=0)]


_count_decoder = msgspec.json.Decoder(_Count)


def _key_header(api_key: str | None) -> dict[str, str]:
    return {"x-api-key": clean_key(api_key)} if api_key else {}
