"""A server of models, whichever wire it speaks: what it sends, whole or as an answer on its way."""

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import partial

import msgspec

from dialoom.base.clock import Clock
from dialoom.base.ids import new_id
from dialoom.llm.assembly import Assembly
from dialoom.llm.attempts import answer_events
from dialoom.llm.capabilities import Model
from dialoom.llm.errors import ErrorKind, ProviderError
from dialoom.llm.events import Retrying, StreamEvent, Warned
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
from dialoom.net.direct import DirectTransport
from dialoom.net.transport import HttpRequest, HttpTransport, TransportError, read_head

MODELS_SECONDS = 30.0
_ABOUT_FILES = re.compile(
    r"\b(images?|image_url|input_image|pictures?|vision|multi-?modal|modalit\w+|mmproj|documents?|pdf)\b",
    re.IGNORECASE,
)
_UNSUPPORTED = re.compile(r"not\W+support|unsupport|does not|cannot|unknown|mmproj", re.IGNORECASE)
"""The words of a server that takes none at all; any other picks on the one it was sent."""
_MAX_REMEMBERED = 1000
_MAX_MODELS_BYTES = 8 * 1024 * 1024


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A request for an answer, and what reads it: both are made anew for each attempt."""

    path: str
    body: bytes
    new_decoder: Callable[[AnswerDraft], AnswerDecoder]
    new_body: Callable[[], BodyReader] = AnswerBody
    without_files: bytes = b""
    """The body for a server that refuses what tools show; empty when they show nothing."""


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
        self._transport: HttpTransport = transport or DirectTransport()
        self._quota_codes = quota_codes
        self._clock = clock
        self._sightless: set[str | None] = set()

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

        def ask(
            body: bytes, timeouts: Timeouts
        ) -> AbstractAsyncContextManager[AsyncGenerator[StreamEvent, None]]:
            request = self.endpoint.post(
                question.path, body, headers=options.extra_headers, connect=options.timeouts.connect
            )
            draft = AnswerDraft(assembly, origin, prompt=prompt, new_id=new_id, taken_ids=taken_ids)
            exchange = Exchange(
                self.endpoint,
                request,
                question.new_decoder(draft),
                quota_codes=self._quota_codes,
                body=question.new_body(),
            )
            return exchange.opened(self._transport, timeouts, scope=options.cancel, clock=self._clock)

        answers = partial(answer_events, options=options, assembly=assembly, clock=self._clock)
        if not question.without_files:
            answer = answers(partial(ask, question.body))
        elif options.model in self._sightless:
            answer = answers(partial(ask, question.without_files))
        else:
            second = answers(partial(ask, question.without_files))
            answer = self._in_turn(answers(partial(ask, question.body)), second, options, assembly=assembly)
        async with aclosing(answer) as events:
            yield ResponseStream(events, assembly)

    async def _in_turn(
        self,
        first: AsyncGenerator[StreamEvent, None],
        second: AsyncGenerator[StreamEvent, None],
        options: ChatOptions,
        *,
        assembly: Assembly,
    ) -> AsyncGenerator[StreamEvent, None]:
        """Give the events of `first`, and those of `second` when what tools show is refused there."""
        async with aclosing(first), aclosing(second):
            refusal = ""
            try:
                async for event in first:
                    if isinstance(event, Retrying) and not event.restarts:
                        refusal = event.message
                        if _refuses_files(event.kind, refusal):
                            break  # asking the same again would be refused again
                    yield event
                else:
                    return
            except ProviderError as error:
                refusal = str(error)
                if error.partial is not None or not _refuses_files(error.kind, refusal):
                    raise
            if _UNSUPPORTED.search(refusal) and len(self._sightless) < _MAX_REMEMBERED:
                self._sightless.add(options.model)
            warned = Warned(code="files_refused", message=f"what tools show was left out, because {refusal}")
            assembly.add(warned)
            yield warned
            async for event in second:
                yield event


def _refuses_files(kind: ErrorKind, message: str) -> bool:
    return kind in {"bad_request", "server_error"} and _ABOUT_FILES.search(message) is not None
