"""A provider that speaks chat completions, as OpenAI and most other servers do."""

from collections.abc import Mapping, Sequence
from functools import partial

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.llm.capabilities import Model
from dialoom.llm.messages import Message
from dialoom.llm.openai.advice import CHAT_ADVICE, NOT_FOUND
from dialoom.llm.openai.decoder import ChatDecoder
from dialoom.llm.openai.request import chat_body
from dialoom.llm.openai.responses_decoder import ResponsesDecoder
from dialoom.llm.openai.responses_request import responses_body
from dialoom.llm.options import ChatOptions
from dialoom.llm.profile import WireProfile, profile_for
from dialoom.llm.wire.endpoint import Endpoint
from dialoom.llm.wire.served_provider import ServedProvider
from dialoom.llm.wire.server import Question
from dialoom.net.address import split_url
from dialoom.net.transport import HttpTransport


class OpenAIProvider(ServedProvider):
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
        endpoint = Endpoint(
            id,
            base_url,
            api_key,
            headers=headers or {},
            clock=clock,
            advice=CHAT_ADVICE,
            not_found=NOT_FOUND,
        )
        known = profile or profile_for(split_url(endpoint.base_url).hostname or "")
        super().__init__(endpoint, transport, profile=known, clock=clock)

    async def models(self) -> tuple[Model, ...]:
        """Return what the server lists under `/models`. Raises `ProviderError`."""
        return await self._server.models("/models")

    def _question(self, messages: Sequence[Message], options: ChatOptions, profile: WireProfile) -> Question:
        """Return the request and its reader on the wire that the profile names."""
        if profile.api == "responses":
            body = responses_body(messages, options, profile, provider=self.id)
            return Question(path="/responses", body=body, new_decoder=ResponsesDecoder)
        body = chat_body(messages, options, profile)
        new_decoder = partial(ChatDecoder, profile=profile)
        return Question(path="/chat/completions", body=body, new_decoder=new_decoder)
