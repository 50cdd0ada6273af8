"""Vectors of texts, from any server with `/embeddings`."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import msgspec

from dialoom.base.cancel import CancelScope
from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import UsageError
from dialoom.base.text import replace_surrogates
from dialoom.llm.attempts import repeated
from dialoom.llm.closing import ClosedOnExit
from dialoom.llm.errors import ErrorKind
from dialoom.llm.given import expect_text, expect_texts
from dialoom.llm.openai.advice import NOT_FOUND
from dialoom.llm.openai.vectors import Embeddings, MalformedVectorsError, read_vectors
from dialoom.llm.profile import DEFAULT_PROFILE
from dialoom.llm.retry import RetryPolicy
from dialoom.llm.switch import StopSwitch
from dialoom.llm.usage import Usage
from dialoom.llm.wire.endpoint import ADVICE, Endpoint
from dialoom.llm.wire.server import Server
from dialoom.net.transport import HttpRequest, HttpTimeouts, HttpTransport

_ADVICE: Mapping[ErrorKind, str] = {
    **ADVICE,
    "context_window": "cut the texts into shorter pieces",
    "invalid_response": "check that the base url is one of an embeddings server",
    "bad_request": "check the model and its dimensions",
    "server_error": "ask again, or choose a model and server that serve embeddings",
}


class EmbeddingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How texts are sent. Times are in seconds."""

    dimensions: int | None = None
    """Ask for shorter vectors, where the model can."""
    max_texts: int = 96
    """Texts per request."""
    max_tokens: int = 100_000
    """Tokens per request, estimated at three bytes each; a longer text goes alone."""
    concurrency: int = 2
    """Requests at once."""
    connect: float = 10.0
    request: float = 120.0
    """For one request."""
    total: float = 3600.0
    """For all requests of a call, repeated ones and waits included."""
    retry: RetryPolicy = RetryPolicy()
    extra_headers: Mapping[str, str] = {}
    extra_body: Mapping[str, object] = {}


class OpenAIEmbeddings(ClosedOnExit):
    """Asks one model of one server for vectors. Use it as an async context manager, or `aclose` it."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        model: str,
        options: EmbeddingOptions | None = None,
        transport: HttpTransport | None = None,
        id: str = "openai",  # noqa: A002 - a provider's name is its id
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """A `transport` passed in stays the caller's to close. Raises `UsageError` on a bad URL or key."""
        self.id = id
        self.model = model
        self._options = options or EmbeddingOptions()
        endpoint = Endpoint(
            id,
            base_url,
            api_key,
            headers=self._options.extra_headers,
            clock=clock,
            advice=_ADVICE,
            not_found=NOT_FOUND,
        )
        self._server = Server(endpoint, transport, quota_codes=DEFAULT_PROFILE.quota_codes, clock=clock)
        self._clock = clock

    def __repr__(self) -> str:
        return f"OpenAIEmbeddings({self._server!r}, model={self.model!r})"

    async def aclose(self) -> None:
        """Close the connections, unless they are another's."""
        await self._server.aclose()

    async def embed(self, texts: Sequence[str], *, cancel: CancelScope | None = None) -> Embeddings:
        """Return one vector per text, in order, all of one length and finite.

        Raises `ProviderError`, `Cancelled`, and `UsageError` for what is no text, and for a blank one, which
        servers refuse.
        """
        expect_texts(texts, "texts")
        for text in texts:
            expect_text(text, "a text to embed", "'a river'")
        blank = next((at for at, text in enumerate(texts) if not text.strip()), None)
        if blank is not None:
            raise UsageError(f"text {blank} is blank; leave it out")
        ends_at = self._clock.monotonic() + self._options.total
        turns = asyncio.Semaphore(max(1, self._options.concurrency))

        async def embed_batch(batch: Sequence[str]) -> Embeddings:
            async with turns:
                with StopSwitch(cancel) as switch:
                    return await self._embed_batch(batch, switch, ends_at=ends_at)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(embed_batch(batch)) for batch in self._batches(texts)]
        except BaseExceptionGroup as several:
            raise _first_of(several) from None  # one batch failed and the others were stopped for it
        return self._joined([task.result() for task in tasks])

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        tokens = 0
        for text in texts:
            size = len(text.encode(errors="replace")) // 3 + 1
            full = len(batch) >= self._options.max_texts or tokens + size > self._options.max_tokens
            if batch and full:
                yield batch
                batch, tokens = [], 0
            batch.append(text)
            tokens += size
        if batch:
            yield batch

    async def _embed_batch(self, texts: Sequence[str], switch: StopSwitch, *, ends_at: float) -> Embeddings:
        ask = partial(self._ask, self._request(texts), len(texts))
        return await repeated(ask, self._options.retry, switch=switch, clock=self._clock, ends_at=ends_at)

    def _request(self, texts: Sequence[str]) -> HttpRequest:
        fields = {
            "model": self.model,
            "input": [replace_surrogates(text) for text in texts],
            **({"dimensions": self._options.dimensions} if self._options.dimensions else {}),
            **self._options.extra_body,
        }
        limits = HttpTimeouts(
            connect=self._options.connect, read=self._options.request, total=self._options.request
        )
        body = msgspec.json.encode(fields)
        request = self._server.endpoint.post("/embeddings", body, headers={}, connect=limits.connect)
        return msgspec.structs.replace(request, timeouts=limits)

    async def _ask(self, request: HttpRequest, texts: int) -> Embeddings:
        body = await self._server.fetch(request, model=self.model, max_bytes=request.max_bytes)
        try:
            return read_vectors(body, texts)
        except MalformedVectorsError as error:
            said = f"{self._server!r} sent no vectors that can be used: {error}"
            raise self._server.endpoint.error("invalid_response", said, model=self.model) from error

    def _joined(self, parts: Sequence[Embeddings]) -> Embeddings:
        usage = Usage()
        for part in parts:
            usage = usage.plus(part.usage)
        vectors = tuple(vector for part in parts for vector in part.vectors)
        if len({len(vector) for vector in vectors}) > 1:
            said = f"{self._server!r} sent vectors of different lengths"
            raise self._server.endpoint.error("invalid_response", said, model=self.model)
        model = next((part.model for part in parts if part.model), self.model)
        return Embeddings(vectors=vectors, usage=usage, model=model)


def _first_of(several: BaseExceptionGroup[BaseException]) -> BaseException:
    return several.exceptions[0]  # a batch makes no group of its own
