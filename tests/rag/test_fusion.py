"""Several rankings become one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.rag.fusion import above_the_least, fuse_ranks, fuse_scores, one_after_the_other
from dialoom.rag.types import ScoredChunk
from dialoom.testing.vector_contract import chunk

RANKINGS = st.lists(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.floats(-1, 9)), max_size=6, unique_by=lambda hit: hit[0]
    ),
    max_size=3,
)


def ranking(*scored: tuple[str, float]) -> list[ScoredChunk]:
    return [ScoredChunk(chunk(name, "d"), score) for name, score in scored]


def told(hits: list[ScoredChunk]) -> list[tuple[str, float]]:
    return [(hit.chunk.id, round(hit.score, 4)) for hit in hits]


def test_what_two_rankings_agree_on_comes_first() -> None:
    fused = fuse_ranks([ranking(("a", 9), ("b", 8)), ranking(("b", 0.5), ("c", 0.4))])
    assert told(fused) == [("b", 0.9919), ("a", 0.5), ("c", 0.4919)]
    assert told(fuse_ranks([ranking(("a", 9)), ranking(("b", 1))], [1.0, 3.0])) == [("b", 0.75), ("a", 0.25)]


def test_scores_are_weighed_against_the_best_of_their_ranking() -> None:
    fused = fuse_scores([ranking(("a", 8), ("b", 4)), ranking(("b", 0.5), ("c", -0.5))], [1.0, 1.0])
    assert told(fused) == [("b", 0.75), ("a", 0.5), ("c", 0.0)]
    assert told(fuse_scores([ranking(("a", 0.0))])) == [("a", 0.0)]


def test_a_ranking_can_be_spread_from_its_last_score_to_its_best() -> None:
    assert told(above_the_least(ranking(("a", 0.9), ("b", 0.8), ("c", 0.7)))) == [
        ("a", 1.0),
        ("b", 0.5),
        ("c", 0.0),
    ]
    assert told(above_the_least(ranking(("a", 0.7), ("b", 0.7)))) == [("a", 1.0), ("b", 1.0)]
    assert above_the_least([]) == []


def test_one_ranking_may_only_fill_up_another() -> None:
    fused = one_after_the_other([ranking(("a", 2), ("b", 1)), ranking(("b", 0.9), ("c", 0.8))])
    assert told(fused) == [("a", 1.0), ("b", 0.9839), ("c", 0.9683)]


@pytest.mark.parametrize("fuse", [fuse_ranks, fuse_scores, one_after_the_other])
@given(rankings=RANKINGS)
def test_every_chunk_is_there_once_with_a_score_from_0_to_1(fuse, rankings) -> None:
    hits = fuse([ranking(*each) for each in rankings])
    scores = [hit.score for hit in hits]
    assert {hit.chunk.id for hit in hits} == {name for each in rankings for name, _ in each}
    assert len(hits) == len({hit.chunk.id for hit in hits})
    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)


def test_a_best_score_next_to_nothing_is_still_the_best() -> None:
    assert told(fuse_scores([ranking(("a", 5e-324))])) == [("a", 1.0)]
