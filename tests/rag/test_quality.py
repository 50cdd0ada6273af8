"""How often the default set-up finds the passage that holds the answer, on sets that others made."""

import os
from pathlib import Path

import pytest

from dialoom.rag.chunk import SlidingWindowChunker
from dialoom.rag.embed import HashEmbedder
from dialoom.rag.evaluate import build_eval_index, evaluate
from dialoom.rag.evaluate_set import load_eval_set
from dialoom.rag.hybrid import HybridRetriever
from dialoom.rag.retrieve import LexicalRetriever, VectorRetriever

SHARED = Path(os.environ.get("DIALOOM_SHARED") or Path(__file__).parents[3] / "shared")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size", "overlap", "least_by_words", "least_by_hash"),
    [
        ("xquad.en.json", 400, 60, 0.94, 0.86),
        ("xquad.zh.json", 120, 20, 0.945, 0.89),
        ("cmrc2018_dev.json", 150, 20, 0.92, 0.84),
    ],
)
async def test_the_chunk_with_the_answer_is_among_the_first_five(
    name: str, size: int, overlap: int, least_by_words: float, least_by_hash: float
) -> None:
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(f"THE SHARED DATA ARE NOT AT {path}: set DIALOOM_SHARED")
    questions = load_eval_set(path).sample(1_190)
    store = await build_eval_index(questions, HashEmbedder(), SlidingWindowChunker(size, overlap))
    words = (await evaluate(questions, store, LexicalRetriever(store))).recall_5
    near = (await evaluate(questions, store, VectorRetriever(store, HashEmbedder()))).recall_5
    default = (await evaluate(questions, store, HybridRetriever(store, HashEmbedder()))).recall_5
    print(f"{name}: recall@5 by words {words}, by hash {near}, by default {default}")
    assert words.mean >= least_by_words
    assert near.mean >= least_by_hash
    assert default.mean >= words.mean
