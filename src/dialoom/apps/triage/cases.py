"""Earlier cases, found by how near they are to a ticket: by a server's vectors, else by those made here."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from dialoom.apps.triage.rows import Case, Ticket
from dialoom.base.text import one_line
from dialoom.llm import ProviderError
from dialoom.rag import (
    Chunk,
    Embedder,
    EmbedderContractError,
    FloatMatrix,
    FloatVector,
    HashEmbedder,
    InMemoryVectorStore,
)
from dialoom.rag.embed import check_vectors
from dialoom.rag.question_words import about

EMBEDDED: Final = 2_000
"""So many characters of a text make its vector: models that make vectors refuse long texts."""


class Job(msgspec.Struct, frozen=True, eq=False):
    """A ticket with the vector it is looked up by, and the label of the embedder that made it."""

    ticket: Ticket
    query_vec: FloatVector
    embedder: str


class Found(msgspec.Struct, frozen=True):
    """A case, and how near it is: 1 is the same."""

    case: Case
    score: float


class CaseIndex:
    """Cases by their vectors, made with the first use. For one event loop.

    When `embedder` fails, for a case or for a ticket, `warn` is told, `HashEmbedder` takes its place for
    good and the index is built again.
    """

    def __init__(self, cases: Sequence[Case], embedder: Embedder, *, warn: Callable[[str], None]) -> None:
        self.cases = {case.id: case for case in cases}
        self._embedder = embedder
        self._warn = warn
        self._store = InMemoryVectorStore()
        self._indexed_by: Embedder | None = None
        self._indexing = asyncio.Lock()

    @property
    def label(self) -> str:
        """The embedder as people name it: `hash`, or like `openai:text-embedding-3-small`."""
        return self._embedder.id if self._is_offline else f"{self._embedder.id}:{self._embedder.model}"

    async def jobs(self, tickets: Sequence[Ticket]) -> list[Job]:
        """Embed the texts of all `tickets` in one batch."""
        vectors = await self._looked_up([ticket.text for ticket in tickets])
        return [Job(ticket, vector, self.label) for ticket, vector in zip(tickets, vectors, strict=True)]

    async def search(self, job: Job, k: int) -> list[Found]:
        """Return the `k` nearest cases, the nearest first.

        The vector of a job that another embedder made, before a restart say, is made anew.
        """
        await self._index()
        vector = job.query_vec
        if job.embedder != self.label:
            vector = (await self._looked_up([job.ticket.text]))[0]
        hits = self._store.search(vector, k)  # nothing is awaited since the label was compared
        return [Found(self.cases[hit.chunk.id], hit.score) for hit in hits]

    @property
    def _is_offline(self) -> bool:
        return isinstance(self._embedder, HashEmbedder)

    async def _looked_up(self, texts: Sequence[str]) -> FloatMatrix:
        while True:
            await self._index()
            # letters are compared here, so words that every ticket has must not count
            vectors = await self._embed([about(text) for text in texts] if self._is_offline else texts)
            if vectors is not None:
                return vectors

    async def _index(self) -> None:
        async with self._indexing:
            while self._indexed_by is not self._embedder:
                embedder = self._embedder
                cases = list(self.cases.values())
                vectors = await self._embed([f"{case.title}\n{case.text}" for case in cases])
                if vectors is not None:
                    self._store = InMemoryVectorStore()
                    self._store.add([Chunk(id=case.id, doc_id=case.id, text="") for case in cases], vectors)
                    self._indexed_by = embedder

    async def _embed(self, texts: Sequence[str]) -> FloatMatrix | None:
        """Return one row per text; None when the embedder failed and another has taken its place."""
        embedder = self._embedder
        try:
            vectors = await embedder.embed_documents([text[:EMBEDDED] for text in texts])
            return check_vectors(vectors, texts=len(texts), embedder=embedder)
        except (ProviderError, EmbedderContractError) as error:
            if embedder is self._embedder:
                self._embedder = HashEmbedder()
                self._warn(f"vectors are made offline from here on: {one_line(str(error))}")
            return None
