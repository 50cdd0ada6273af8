"""One question to one server: sent, read as it comes, and ended in exactly one way."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Protocol

from dialoom.base.cancel import CancelScope
from dialoom.base.clock import Clock
from dialoom.llm.deadlines import Deadlines
from dialoom.llm.errors import ProviderError
from dialoom.llm.events import StreamEvent
from dialoom.llm.failures import MAX_ERROR_BYTES, kind_of
from dialoom.llm.messages import Message
from dialoom.llm.options import Timeouts
from dialoom.llm.switch import StopSwitch
from dialoom.llm.wire.broken import AnswerFailedError, MalformedChunkError
from dialoom.llm.wire.draft import AnswerDraft
from dialoom.llm.wire.endpoint import Endpoint
from dialoom.net.sse import EventTooLargeError, SseEvent
from dialoom.net.transport import HttpRequest, HttpResponse, HttpTransport, TransportError, read_head

TAIL_SECONDS = 5.0
"""How long token counts may come after the answer has ended."""
_LAST_BYTES_SECONDS = 0.05


class AnswerDecoder(Protocol):
    """Makes events of what one wire says. `done`: nothing more is needed; `finished`: the answer is whole."""

    done: bool

    @property
    def draft(self) -> AnswerDraft: ...

    @property
    def finished(self) -> bool: ...

    def feed(self, event: SseEvent) -> list[StreamEvent]:
        """Raises `MalformedChunkError` and `AnswerFailedError`."""
        ...

    def finish(self) -> list[StreamEvent]:
        """Return what the end completes, `ResponseCompleted` last. Raises `AnswerFailedError`."""
        ...

    def partial(self) -> Message | None: ...


class BodyReader(Protocol):
    """Cuts a body into events. `whole`: it is one JSON object; `streamed`: it is known to be a stream."""

    @property
    def whole(self) -> bool: ...

    @property
    def streamed(self) -> bool: ...

    def feed(self, piece: bytes) -> list[SseEvent]: ...

    def finish(self) -> list[SseEvent]: ...


class Exchange:
    """A request and the decoder of its answer."""

    def __init__(
        self,
        endpoint: Endpoint,
        request: HttpRequest,
        decoder: AnswerDecoder,
        *,
        quota_codes: frozenset[str],
        body: BodyReader,
    ) -> None:
        self._endpoint = endpoint
        self._request = request
        self._decoder = decoder
        self._quota_codes = quota_codes
        self._body = body
        self._began = False

    @asynccontextmanager
    async def opened(
        self, transport: HttpTransport, timeouts: Timeouts, *, scope: CancelScope | None, clock: Clock
    ) -> AsyncGenerator[AsyncGenerator[StreamEvent, None]]:
        """Give `events`, ended by `timeouts` and by `scope`; leaving closes the connection."""
        with StopSwitch(scope) as switch:
            async with (
                Deadlines(timeouts, switch, clock=clock, late=self._late) as deadlines,
                aclosing(self.events(transport, deadlines, switch)) as events,
            ):
                yield events

    async def events(
        self, transport: HttpTransport, deadlines: Deadlines, switch: StopSwitch
    ) -> AsyncGenerator[StreamEvent, None]:
        """Ask, and give the events of the answer. Raises `ProviderError`, or `Cancelled` by the switch."""
        decoder = self._decoder
        with self._translated_errors():
            async with AsyncExitStack() as stack:
                opening = partial(stack.enter_async_context, transport.request(self._request))
                response = await deadlines.wait(opening)
                if response.status // 100 != 2:
                    raise await self._refusal(response, deadlines)
                pieces = response.aiter_bytes()
                with self._only_counts_lost():
                    next_piece = partial(anext, pieces, None)
                    while not decoder.done and (piece := await deadlines.wait(next_piece)) is not None:
                        for event in self._body.feed(piece):
                            for said in self._decoded(event, deadlines):
                                switch.check()
                                yield said
                for said in self._ending(self._body):  # nothing can be late any more
                    yield said
                await _read_last_bytes(pieces)

    def _late(self, how: str) -> ProviderError:
        return self._endpoint.error("timeout", f"{self._endpoint!r} {how}", model=self._decoder.draft.model)

    @contextmanager
    def _only_counts_lost(self) -> Generator[None]:
        """Let an answer end whose connection breaks when all of it has come, and only counts have not."""
        try:
            yield
        except (TransportError, ProviderError):
            if not self._decoder.finished:
                raise

    def _decoded(self, event: SseEvent, deadlines: Deadlines) -> list[StreamEvent]:
        decoded = self._decoder.feed(event)
        if not self._began and self._decoder.draft.started:
            self._began = True
            deadlines.began()
        if self._decoder.finished:
            deadlines.shorten(TAIL_SECONDS)
        return decoded

    def _ending(self, body: BodyReader) -> list[StreamEvent]:
        decoder = self._decoder
        events: list[StreamEvent] = []
        for event in body.finish():
            try:
                events += decoder.feed(event)
            except MalformedChunkError:
                if not body.streamed:
                    raise
        if body.whole and not decoder.draft.started:
            raise MalformedChunkError("JSON that is no answer")
        decoder.done = decoder.done or body.whole
        if decoder.draft.started and not decoder.finished:
            raise self._endpoint.error(
                "incomplete_stream",
                f"{self._endpoint!r} ended its answer in the middle",
                model=decoder.draft.model,
                partial=decoder.partial(),
            )
        return [*events, *decoder.finish()]

    async def _refusal(self, response: HttpResponse, deadlines: Deadlines) -> ProviderError:
        body = b""
        with suppress(TransportError):
            body = await deadlines.wait(partial(read_head, response, MAX_ERROR_BYTES))
        return self._endpoint.refused(
            response.status,
            response.headers,
            body,
            model=self._decoder.draft.model,
            quota_codes=self._quota_codes,
        )

    @contextmanager
    def _translated_errors(self) -> Generator[None]:
        """The seam where everything that can go wrong with an answer becomes a `ProviderError`."""
        endpoint, decoder = self._endpoint, self._decoder
        try:
            yield
        except ProviderError as error:
            error.partial = error.partial or decoder.partial()
            raise
        except TransportError as error:
            so_far, model = decoder.partial(), decoder.draft.model
            raise endpoint.unreachable(error, model=model, partial=so_far) from error
        except AnswerFailedError as error:
            kind = error.kind or kind_of(error.error.status, error.error, self._quota_codes)
            so_far, model = decoder.partial(), decoder.draft.model
            raise endpoint.took_back(error.error, model=model, kind=kind, partial=so_far) from error
        except (MalformedChunkError, EventTooLargeError) as error:
            what = f"{endpoint!r} sent what is no answer: {error}"
            so_far, model = decoder.partial(), decoder.draft.model
            raise endpoint.error("invalid_response", what, model=model, partial=so_far) from error


async def _read_last_bytes(pieces: AsyncIterator[bytes]) -> None:
    """Read the end of a body that `[DONE]` has announced: a connection read to its end can be used again."""
    with suppress(TimeoutError, TransportError, StopAsyncIteration):
        async with asyncio.timeout(_LAST_BYTES_SECONDS):
            while True:
                await anext(pieces)
