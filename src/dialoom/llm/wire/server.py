"""A server of models, whichever wire it speaks: what it sends, whole or as an answer on its way."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager

import msgspec

from dialoom.base.clock import Clock
from dialoom.base.ids import new_id
from dialoom.llm.assembly import Assembly
from dialoom.llm.attempts import answer_events
from dialoom.llm.capabilities import Model
from dialoom.llm.events import StreamEvent
from dialoom.llm.failures import MAX_ERROR_BYTES
from dialoom.llm.messages import Message, Origin
from dialoom.llm.options import ChatOptions, Timeouts
from dialoom.llm.provider import ResponseStream
from dialoom.llm.wire.body import AnswerBody
from dialoom.llm.wire.draft import AnswerDraft
from dialoom.llm.wire.endpoint import Endpoint
from dialoom.llm.wire.exchange import AnswerDecoder, BodyReader, Exchange
from dialoom.llm.wire.models import read_models
from dialoom.llm.wire.prompt_size import PromptSize
from dialoom.net.httpx2_transport import Httpx2Transport
from dialoom.net.transport import HttpRequest, HttpTransport, TransportError, read_head

MODELS_SECONDS = 30.0
_MAX_MODELS_BYTES = 8 * 1024 * 1024


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A request for an answer, and what reads it: both are made anew for each attempt."""

    path: str
    body: bytes
    new_decoder: Callable[[AnswerDraft], AnswerDecoder]
    new_body: Callable[[], BodyReader] = AnswerBody


class Server:
    """An endpoint and the transport to it. A `transport` that is lent stays its owner's to close."""

    def __init__(
        self,
        endpoint: Endpoint,
        transport: HttpTransport | None,
        *,
        quota_codes: frozenset[str],
        clock: Clock,
    ) -> None:
        self.endpoint = endpoint
        self._lent = transport is not None
        self._transport: HttpTransport = transport or Httpx2Transport()
        self._quota_codes = quota_codes
        self._clock = clock

    def __repr__(self) -> str:
        return repr(self.endpoint)

    async def aclose(self) -> None:
        """Close the connections, unless they are another's."""
        if not self._lent:
            await self._transport.aclose()

    async def models(self, path: str) -> tuple[Model, ...]:
        """Return what the server lists under `path`. Raises `ProviderError`."""
        request = self.endpoint.get(path, seconds=MODELS_SECONDS)
        listing = await self.fetch(request, model="", max_bytes=_MAX_MODELS_BYTES)
        models = read_models(listing, self.endpoint.provider_id)
        if models is None:
            raise self.endpoint.error("invalid_response", f"{self!r} sent no list of models", model="")
        return models

    async def fetch(self, request: HttpRequest, *, model: str, max_bytes: int) -> bytes:
        """Return the whole body of a reply. Raises `ProviderError` that names `model`."""
        try:
            async with self._transport.request(request) as response:
                if response.status // 100 == 2:
                    return await response.aread(max_bytes)
                body = await read_head(response, MAX_ERROR_BYTES)
                raise self.endpoint.refused(
                    response.status, response.headers, body, model=model, quota_codes=self._quota_codes
                )
        except TransportError as error:
            raise self.endpoint.unreachable(error, model=model, partial=None) from error

    @asynccontextmanager
    async def stream(
        self, question: Question, messages: Sequence[Message], options: ChatOptions
    ) -> AsyncGenerator[ResponseStream]:
        """Put the question that was made of `messages`, when the first event of its answer is asked for."""
        assembly = Assembly()
        prompt = PromptSize.of(question.body, messages)
        origin = Origin(self.endpoint.provider_id, options.model or "")
        taken_ids = {call.id for message in messages for call in message.tool_calls}
        request = self.endpoint.post(
            question.path, question.body, headers=options.extra_headers, connect=options.timeouts.connect
        )

        def ask(timeouts: Timeouts) -> AbstractAsyncContextManager[AsyncGenerator[StreamEvent, None]]:
            draft = AnswerDraft(assembly, origin, prompt=prompt, new_id=new_id, taken_ids=taken_ids)
            exchange = Exchange(
                self.endpoint,
                request,
                question.new_decoder(draft),
                quota_codes=self._quota_codes,
                body=question.new_body(),
            )
            return exchange.opened(self._transport, timeouts, scope=options.cancel, clock=self._clock)

        async with aclosing(answer_events(ask, options, assembly=assembly, clock=self._clock)) as events:
            yield ResponseStream(events, assembly)
