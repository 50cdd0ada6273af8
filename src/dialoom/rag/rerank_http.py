"""A cross-encoder behind HTTP: the endpoint of Cohere, Jina and vLLM, or of text-embeddings-inference."""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from dialoom.base.text import one_line, replace_surrogates
from dialoom.net.transport import HttpRequest, HttpTimeouts, HttpTransport, TransportError
from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.passage import indexed_text
from dialoom.rag.rerank import RerankError
from dialoom.rag.types import ScoredChunk

RerankShape = Literal["cohere", "tei"]
_MOST_BYTES = 4_000_000
_MOST_HITS = 1_000


class _Judged(msgspec.Struct, frozen=True):
    """One candidate's place in the request, and how well it fits the question."""

    index: int
    relevance_score: float


class _CohereAnswer(msgspec.Struct, frozen=True):
    """What Cohere, Jina and vLLM send."""

    results: list[_Judged]


class _TeiJudged(msgspec.Struct, frozen=True):
    """What text-embeddings-inference sends of one candidate."""

    index: int
    score: float


class HttpReranker:
    """Sends the question with the candidates to `url` and takes their order and scores from the answer.

    `url` is the whole address, such as `https://api.cohere.com/v2/rerank` or `http://127.0.0.1:8080/rerank`.
    A score is what the model says, mostly from 0 to 1. Raises `RerankError` when there is no usable answer.
    """

    def __init__(
        self,
        url: str,
        transport: HttpTransport,
        *,
        model: str = "",
        api_key: str = "",
        shape: RerankShape = "cohere",
        timeouts: HttpTimeouts | None = None,
    ) -> None:
        if shape not in ("cohere", "tei"):
            raise InvalidOptionsError(f'shape must be "cohere" or "tei", not {shape!r}')
        self._url = url
        self._transport = transport
        self._model = model
        self._key = api_key
        self._shape: RerankShape = shape
        self._timeouts = timeouts or HttpTimeouts(read=30.0, total=60.0)

    async def rerank(self, question: str, hits: Sequence[ScoredChunk], k: int) -> list[ScoredChunk]:
        asked = list(hits[:_MOST_HITS])
        if not asked or k <= 0:
            return []
        judged = await self._judge(question, asked, min(k, len(asked)))
        places = [each.index for each in judged]
        if len(set(places)) < len(places) or any(not 0 <= place < len(asked) for place in places):
            raise RerankError(f"the reranker at {self._url} names candidates that were not sent; check it")
        if not all(math.isfinite(each.relevance_score) for each in judged):
            raise RerankError(f"the reranker at {self._url} gave a score that is no number; check its model")
        best = sorted(judged, key=lambda each: -each.relevance_score)[:k]
        return [ScoredChunk(asked[each.index].chunk, each.relevance_score) for each in best]

    async def _judge(self, question: str, hits: Sequence[ScoredChunk], k: int) -> list[_Judged]:
        texts = [replace_surrogates(indexed_text(hit.chunk)) for hit in hits]
        body = await self._exchange(self._body(replace_surrogates(question), texts, k))
        try:
            if self._shape == "cohere":
                return msgspec.json.decode(body, type=_CohereAnswer).results
            scores = msgspec.json.decode(body, type=list[_TeiJudged])
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            message = f"the answer of the reranker at {self._url} cannot be read; check its shape"
            raise RerankError(message) from error
        return [_Judged(each.index, each.score) for each in scores]

    def _body(self, question: str, texts: Sequence[str], k: int) -> bytes:
        if self._shape == "tei":
            return msgspec.json.encode({"query": question, "texts": texts, "truncate": True})
        model = {"model": self._model} if self._model else {}
        return msgspec.json.encode({**model, "query": question, "documents": texts, "top_n": k})

    async def _exchange(self, body: bytes) -> bytes:
        headers = {"content-type": "application/json", "accept": "application/json"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        request = HttpRequest(
            method="POST",
            url=self._url,
            headers=headers,
            body=body,
            timeouts=self._timeouts,
            max_bytes=_MOST_BYTES,
        )
        try:
            async with self._transport.request(request) as response:
                answer = await response.aread(_MOST_BYTES)
                status = response.status
        except TransportError as error:
            raise RerankError(f"the reranker at {self._url} cannot be asked: {error}") from error
        if status != 200:
            said = one_line(answer.decode("utf-8", "replace"), 120)
            raise RerankError(f"the reranker at {self._url} answered {status}: {said}")
        return answer
