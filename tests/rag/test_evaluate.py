"""How good is what is found, measured."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.llm import MockProvider
from dialoom.rag.chunk import SlidingWindowChunker
from dialoom.rag.embed import HashEmbedder
from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.evaluate import (
    build_eval_index,
    eval_lines,
    evaluate,
    evaluate_citations,
    tune,
)
from dialoom.rag.evaluate_metrics import Figure, Outcome, figure, ndcg, recall_at, reciprocal_rank
from dialoom.rag.evaluate_set import Answered, EvalSet, load_eval_set
from dialoom.rag.retrieve import LexicalRetriever
from dialoom.rag.types import Document

LAMP = "A lamp costs nine euros. Refunds take three days."
ROAD = "The road to Norway is long. Bring a coat."
SET = EvalSet(
    [Document(id="lamp", text=LAMP), Document(id="road", text=ROAD)],
    [
        Answered(question="What does a lamp cost?", doc_id="lamp", start=13, end=23),
        Answered(question="How long do refunds take?", doc_id="lamp", start=LAMP.index("three"), end=48),
        Answered(question="Where does the road go?", doc_id="road", start=12, end=18),
        Answered(question="Nothing of the kind?", doc_id="road", start=0, end=3),
    ],
)
ONE = Figure(1.0, 1.0, 1.0)


def test_ranks_become_figures() -> None:
    second = Outcome((False, True, False, True), relevant=3)
    assert [recall_at(k)(second) for k in (1, 2, 9)] == [0.0, 1.0, 1.0]
    assert (second.rank, reciprocal_rank(second), round(ndcg(second), 4)) == (2, 0.5, 0.4982)
    none = Outcome((False,), relevant=0)
    assert (none.rank, reciprocal_rank(none), ndcg(none)) == (0, 0.0, 0.0)


@given(st.lists(st.floats(0, 1), max_size=30))
def test_a_mean_lies_in_its_interval_and_is_the_same_every_time(values: list[float]) -> None:
    told = figure(values)
    assert told == figure(values)
    assert -1e-9 <= told.low <= told.high <= 1 + 1e-9
    assert min(values, default=0) - 1e-9 <= told.mean <= max(values, default=0) + 1e-9


async def test_a_retriever_is_measured_over_all_questions() -> None:
    store = await build_eval_index(SET, HashEmbedder(), SlidingWindowChunker(26, 0))
    scores = await evaluate(SET, store, LexicalRetriever(store))
    assert (scores.recall_5.mean, scores.mrr.mean) == (0.75, 0.75)
    cited = await evaluate_citations(SET, store, HashEmbedder())
    assert cited.recall.mean >= 0.75
    provider = MockProvider()
    for answer in ("Nine [1].", "Three [1], [2].", "none", "none"):
        provider.queue_text(answer)
    told = await evaluate_citations(SET, store, HashEmbedder(), provider=provider)
    assert (told.recall.mean, told.precision.mean) == (0.5, 0.75)


async def test_weights_are_chosen_on_one_half_and_judged_on_the_other() -> None:
    store = await build_eval_index(SET, HashEmbedder(), SlidingWindowChunker(26, 0))
    tuned = await tune(SET, store, HashEmbedder())
    assert tuned.recall_5.mean >= tuned.plain_recall_5.mean - 1
    assert tuned.weights.vectors == 1.0
    with pytest.raises(InvalidOptionsError, match="two questions"):
        await tune(SET.sample(1), store, HashEmbedder())


async def test_the_table_names_every_retriever() -> None:
    lines = await eval_lines(SET, chunker=SlidingWindowChunker(26, 0), tuned=True)
    assert lines[0].startswith(
        "4 questions, 2 documents, 4 chunks (sliding-v1/26/0/chars, hash-v1/1024/sqrt)"
    )
    assert [line.split()[0] for line in lines[1:]] == [
        "retriever",
        "words",
        "hash",
        "default",
        "rrf",
        "citations:",
        "tuned",
        "on",
    ]


async def test_a_document_that_cannot_be_indexed_is_named() -> None:
    class Broken(SlidingWindowChunker):
        def chunk(self, document: Document):
            raise RuntimeError("cannot cut")

    with pytest.raises(InvalidOptionsError, match="document lamp cannot be indexed: cannot cut"):
        await build_eval_index(SET, HashEmbedder(), Broken())


def test_a_set_of_the_squad_layout_is_read(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    asked = [
        {"id": "q", "question": "Cost?", "answers": [{"text": "nine euros", "answer_start": 13}]},
        {"id": "u", "question": "Unanswered?", "answers": []},
    ]
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": LAMP, "qas": asked}]}]}))
    assert load_eval_set(path) == EvalSet(
        [Document(id="0", text=LAMP)], [Answered(question="Cost?", doc_id="0", start=13, end=23)]
    )


def test_a_set_of_lines_may_ask_about_documents_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    lines = [
        {"id": "lamp", "text": LAMP},
        {"question": "Cost?", "doc": "lamp", "answer": "nine euros"},
        {"question": "Where to?", "doc": "road.md", "answer": "Norway"},
    ]
    path.write_text("\n\n".join(map(json.dumps, lines)))
    road = Document(id="/kb/road.md", text=ROAD)
    assert load_eval_set(path, [road]) == EvalSet(
        [road, Document(id="lamp", text=LAMP)],
        [
            Answered(question="Cost?", doc_id="lamp", start=13, end=23),
            Answered(question="Where to?", doc_id="/kb/road.md", start=12, end=18),
        ],
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("set.json", b"{", "not laid out as SQuAD"),
        ("set.json", b"[" * 100_000, "not laid out as SQuAD"),
        ("set.jsonl", b'{"id": 1}', "line 1: "),
        ("set.jsonl", b'\n{"question": "?", "doc": "x", "answer": "y"}', "line 2: there is no document 'x'"),
        (
            "set.jsonl",
            b'{"id": "a", "text": "b"}\n{"question": "?", "doc": "a", "answer": "c"}',
            "does not hold",
        ),
        ("set.jsonl", b'{"id": "a", "text": "b"}\n{"question": "?", "doc": "a"}', "does not hold"),
    ],
)
def test_a_set_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidOptionsError, match=message):
        load_eval_set(tmp_path / name)


def test_a_set_that_is_not_there_or_endless_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidOptionsError, match="cannot be read"):
        load_eval_set(tmp_path / "none.json")
    monkeypatch.setattr("dialoom.rag.evaluate_set._MOST_BYTES", 3)
    (tmp_path / "set.json").write_text("{   }")
    with pytest.raises(InvalidOptionsError, match="too large"):
        load_eval_set(tmp_path / "set.json")


def test_a_sample_is_taken_evenly() -> None:
    assert [asked.start for asked in SET.sample(2).questions] == [13, 12]
    assert SET.sample(99) == SET
    with pytest.raises(InvalidOptionsError):
        SET.sample(0)
