"""Several rankings of one question become one. Pure functions over lists that are in order."""

from collections.abc import Sequence

from dialoom.rag.types import Chunk, ScoredChunk

RANK_CONSTANT = 60
"""How much the first places weigh against the later ones; the value of the method's authors."""

Ranking = Sequence[ScoredChunk]


def one_after_the_other(rankings: Sequence[Ranking]) -> list[ScoredChunk]:
    """All of the first ranking, then what the next one adds. The score falls with the place, from 1."""
    chunks = {hit.chunk.id: hit.chunk for ranking in reversed(rankings) for hit in ranking}
    order = dict.fromkeys(hit.chunk.id for ranking in rankings for hit in ranking)
    return [
        ScoredChunk(chunks[chunk_id], (RANK_CONSTANT + 1) / (RANK_CONSTANT + place))
        for place, chunk_id in enumerate(order, 1)
    ]


def fuse_ranks(
    rankings: Sequence[Ranking], weights: Sequence[float] | None = None, *, constant: int = RANK_CONSTANT
) -> list[ScoredChunk]:
    """Reciprocal rank fusion: each ranking gives `weight / (constant + place)` to what it holds.

    Scores are shares of the most there is to get: 1 for the first of every ranking.
    """
    shares = weights or [1.0] * len(rankings)
    most = sum(shares) / (constant + 1) or 1.0
    gains = [
        (hit.chunk, share / (constant + place) / most)
        for ranking, share in zip(rankings, shares, strict=True)
        for place, hit in enumerate(ranking, 1)
    ]
    return _summed(gains)


def fuse_scores(rankings: Sequence[Ranking], weights: Sequence[float] | None = None) -> list[ScoredChunk]:
    """The weighted mean of the scores, each ranking's divided by its best one; below 0 counts as 0.

    Scores are from 0 to 1: 1 for what is the best of every ranking.
    """
    shares = weights or [1.0] * len(rankings)
    total = sum(shares) or 1.0
    gains: list[tuple[Chunk, float]] = []
    for ranking, share in zip(rankings, shares, strict=True):
        best = max((hit.score for hit in ranking), default=0.0)
        if best > 0:  # divided first: a best score next to nothing must not make the scale infinite
            gains += [(hit.chunk, max(hit.score, 0.0) / best * (share / total)) for hit in ranking]
        else:
            gains += [(hit.chunk, 0.0) for hit in ranking]
    return _summed(gains)


def above_the_least(ranking: Ranking) -> list[ScoredChunk]:
    """The ranking with scores from 0, its last one, to 1, its best; all 1 when they are equal.

    For cosines, of which some models give none below .7 and others none above .5.
    """
    best, least = (ranking[0].score, ranking[-1].score) if ranking else (0.0, 0.0)
    spread = best - least
    return [ScoredChunk(hit.chunk, (hit.score - least) / spread if spread > 0 else 1.0) for hit in ranking]


def _summed(gains: Sequence[tuple[Chunk, float]]) -> list[ScoredChunk]:
    """Best first; equal ones in the order they were first met."""
    scores: dict[str, float] = {}
    chunks: dict[str, Chunk] = {}
    for chunk, gain in gains:
        chunks.setdefault(chunk.id, chunk)
        scores[chunk.id] = scores.get(chunk.id, 0.0) + gain
    hits = [ScoredChunk(chunks[chunk_id], min(score, 1.0)) for chunk_id, score in scores.items()]
    return sorted(hits, key=lambda hit: -hit.score)
