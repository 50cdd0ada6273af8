"""A provider that speaks Ollama's own `/api/chat`."""

from collections.abc import Mapping, Sequence

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import UsageError
from dialoom.llm.capabilities import Model
from dialoom.llm.errors import ErrorKind
from dialoom.llm.messages import Message
from dialoom.llm.ollama.decoder import OllamaDecoder
from dialoom.llm.ollama.lines import JsonLines
from dialoom.llm.ollama.request import ollama_body
from dialoom.llm.options import ChatOptions
from dialoom.llm.profile import DEFAULT_PROFILE, WireProfile
from dialoom.llm.wire.endpoint import ADVICE, Endpoint, clean_base
from dialoom.llm.wire.served_provider import ServedProvider
from dialoom.llm.wire.server import Question
from dialoom.net.transport import HttpTransport

_ADVICE: Mapping[ErrorKind, str] = {
    **ADVICE,
    "invalid_response": "check that the base url is an Ollama server's",
    "context_window": "shorten the conversation or raise num_ctx",
}
_NOT_FOUND = "pull the model, or check the base url, which is the path before /api/chat"


class OllamaProvider(ServedProvider):
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
        endpoint = Endpoint(
            id,
            clean_base(base_url).removesuffix("/v1"),
            api_key,
            headers={},
            clock=clock,
            advice=_ADVICE,
            not_found=_NOT_FOUND,
        )
        super().__init__(endpoint, transport, profile=profile, clock=clock)
        self._num_ctx = num_ctx

    def __repr__(self) -> str:
        return f"OllamaProvider({self._server!r}, num_ctx={self._num_ctx})"

    async def models(self) -> tuple[Model, ...]:
        """Return what the server lists under `/api/tags`. Raises `ProviderError`."""
        return await self._server.models("/api/tags")

    def _question(self, messages: Sequence[Message], options: ChatOptions, profile: WireProfile) -> Question:
        body = ollama_body(messages, options, profile, num_ctx=self._num_ctx)
        return Question(path="/api/chat", body=body, new_decoder=OllamaDecoder, new_body=JsonLines)
