"""How often is the answer found, and cited? Measured with the chunker and the retriever inside."""

from collections.abc import Callable, Sequence
from itertools import product

import msgspec

from dialoom.llm import OfflineProvider, Provider
from dialoom.rag.chunk import Chunker, SlidingWindowChunker
from dialoom.rag.context import ContextSource
from dialoom.rag.embed import Embedder, HashEmbedder, languages_of
from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.evaluate_metrics import DEPTH, Figure, Outcome, figure, ndcg, recall_at, reciprocal_rank
from dialoom.rag.evaluate_set import Answered, EvalSet
from dialoom.rag.fusion import fuse_ranks
from dialoom.rag.hybrid import FusionWeights, HybridRetriever
from dialoom.rag.ingest import replace_documents
from dialoom.rag.memory_store import InMemoryVectorStore
from dialoom.rag.query import RagConfig, build_rag_query_graph
from dialoom.rag.retrieve import LexicalRetriever, Retriever, Search, VectorRetriever
from dialoom.rag.types import FloatVector, ScoredChunk

_POOL = 50
_NAME_WIDTH = 21
_WORDS = (0.0, 0.5, 1.0, 2.0, 4.0)
_CONSTANTS = (5, 20, 60)


class RetrievalScores(msgspec.Struct, frozen=True, kw_only=True):
    """What a retriever found, over all questions of a set."""

    recall_1: Figure
    recall_5: Figure
    recall_10: Figure
    mrr: Figure
    ndcg: Figure


class CitationScores(msgspec.Struct, frozen=True, kw_only=True):
    """What answers cited. `precision`: cited sources with the answer, of those cited, per answer that cites.

    `recall`: questions for which at least one such source is cited.
    """

    precision: Figure
    recall: Figure


class Tuned(msgspec.Struct, frozen=True):
    """The best weights for one half of the questions, and what they and the plain ones do on the other."""

    weights: FusionWeights
    recall_5: Figure
    plain_recall_5: Figure


async def build_eval_index(questions: EvalSet, embedder: Embedder, chunker: Chunker) -> InMemoryVectorStore:
    """An index in memory of a set's documents."""
    store = InMemoryVectorStore()
    report = await replace_documents(store, embedder, chunker, questions.documents)
    if report.failures:
        first = report.failures[0]
        raise InvalidOptionsError(f"document {first.doc_id} cannot be indexed: {first.message}")
    return store


async def evaluate(questions: EvalSet, store: InMemoryVectorStore, retriever: Retriever) -> RetrievalScores:
    """Ask every question and count; a chunk that overlaps the answer counts as found."""
    outcomes: list[Outcome] = []
    for asked in questions.questions:
        hits = await retriever.retrieve(Search(text=asked.question, k=DEPTH))
        outcomes.append(_outcome(asked, hits, store))
    return _scores(outcomes)


async def evaluate_citations(
    questions: EvalSet,
    store: InMemoryVectorStore,
    embedder: Embedder,
    *,
    provider: Provider | None = None,
    config: RagConfig | None = None,
) -> CitationScores:
    """Answer every question through the query graph, by quoting unless a `provider` is given, and count."""
    graph = build_rag_query_graph(store, embedder, provider or OfflineProvider(), config).build()
    precision: list[float] = []
    recall: list[float] = []
    for asked in questions.questions:
        result = (await graph.run({"query": asked.question})).raise_for_error()
        cited: list[ContextSource] = result.state["answer_sources"]
        right = [
            asked.overlaps(source.doc_id, source.start, source.start + len(source.text)) for source in cited
        ]
        precision += [sum(right) / len(right)] if right else []
        recall.append(float(any(right)))
    return CitationScores(precision=figure(precision), recall=figure(recall))


async def tune(questions: EvalSet, store: InMemoryVectorStore, embedder: Embedder) -> Tuned:
    """Try weights of words against vectors for `HybridRetriever(fusion="rrf")`.

    Every other question chooses and the rest judge the choice: it must do well on what it was not made of.
    Raises `InvalidOptionsError` for fewer than two questions.
    """
    if len(questions.questions) < 2:
        raise InvalidOptionsError("tuning needs two questions or more; add some")
    words, near = LexicalRetriever(store), VectorRetriever(store, embedder)
    rankings = [
        [await each.retrieve(Search(text=asked.question, k=_POOL)) for each in (words, near)]
        for asked in questions.questions
    ]

    def values(weights: FusionWeights, first: int, value: Callable[[Outcome], float]) -> list[float]:
        shares = (weights.words, weights.vectors)
        return [
            value(_outcome(asked, fuse_ranks(ranked, shares, constant=weights.constant)[:DEPTH], store))
            for asked, ranked in zip(questions.questions[first::2], rankings[first::2], strict=True)
        ]

    def worth(weights: FusionWeights) -> float:
        return sum(values(weights, 0, recall_at(5))) + sum(values(weights, 0, reciprocal_rank))

    tried = [FusionWeights(words=share, constant=constant) for share, constant in product(_WORDS, _CONSTANTS)]
    best = max(tried, key=worth)
    judged, plain = (figure(values(each, 1, recall_at(5))) for each in (best, FusionWeights()))
    return Tuned(best, judged, plain)


async def eval_lines(
    questions: EvalSet,
    *,
    embedder: Embedder | None = None,
    chunker: Chunker | None = None,
    provider: Provider | None = None,
    tuned: bool = False,
) -> list[str]:
    """The lines of `dialoom rag eval`: a table of retrievers, what answers cite, and weights if asked for."""
    embedder, chunker = embedder or HashEmbedder(), chunker or SlidingWindowChunker()
    if not isinstance(embedder, HashEmbedder):  # which costs nothing, and which retrievers have to know
        embedder = _AskedOnce(embedder)
    store = await build_eval_index(questions, embedder, chunker)
    retrievers: dict[str, Retriever] = {
        "words": LexicalRetriever(store),
        embedder.id: VectorRetriever(store, embedder),
        "default": HybridRetriever(store, embedder),
        "rrf": HybridRetriever(store, embedder, fusion="rrf"),
    }
    counts = (
        f"{len(questions.questions)} questions, {len(questions.documents)} documents, {len(store)} chunks"
    )
    lines = [
        f"{counts} ({chunker.signature()}, {embedder.model}); mean [95 % interval]",
        _row("retriever", ["recall@1", "recall@5", "recall@10", f"MRR@{DEPTH}", f"nDCG@{DEPTH}"]),
    ]
    for name, retriever in retrievers.items():
        scores = await evaluate(questions, store, retriever)
        lines.append(_row(name, [str(each) for each in msgspec.structs.astuple(scores)]))
    cited = await evaluate_citations(questions, store, embedder, provider=provider)
    lines.append(f"citations: precision {cited.precision}, recall {cited.recall}")
    if tuned:
        found = await tune(questions, store, embedder)
        weights = f"words {found.weights.words:g}, vectors {found.weights.vectors:g}"
        lines.append(f"tuned on one half: {weights}, constant {found.weights.constant}")
        lines.append(f"on the other half: recall@5 {found.recall_5}, untuned {found.plain_recall_5}")
    return lines


class _AskedOnce:
    """An embedder that is asked for the vector of a question once, whatever looks for it."""

    def __init__(self, embedder: Embedder) -> None:
        self.id, self.model, self.dim = embedder.id, embedder.model, embedder.dim
        self.languages = languages_of(embedder)
        self.embed_documents = embedder.embed_documents
        self._embedder = embedder
        self._known: dict[str, FloatVector] = {}

    async def embed_query(self, text: str) -> FloatVector:
        if text not in self._known:
            self._known[text] = await self._embedder.embed_query(text)
        return self._known[text]


def _outcome(asked: Answered, hits: Sequence[ScoredChunk], store: InMemoryVectorStore) -> Outcome:
    relevant = sum(asked.is_in(chunk) for chunk in store.chunks_of(asked.doc_id))
    found = [asked.is_in(hit.chunk) for hit in hits]
    return Outcome((*found, *[False] * (DEPTH - len(found))), relevant)


def _scores(outcomes: Sequence[Outcome]) -> RetrievalScores:
    def over(value: Callable[[Outcome], float]) -> Figure:
        return figure([value(outcome) for outcome in outcomes])

    return RetrievalScores(
        recall_1=over(recall_at(1)),
        recall_5=over(recall_at(5)),
        recall_10=over(recall_at(10)),
        mrr=over(reciprocal_rank),
        ndcg=over(ndcg),
    )


def _row(name: str, cells: Sequence[str]) -> str:
    return "  ".join([f"{name:{_NAME_WIDTH}}", *(f"{cell:20}" for cell in cells)]).rstrip()
