"""Questions as people ask them, in other words than the documents': how many are answered without a model.

All were written before it was looked at which are answered, those of `later`, `third` and `fourth` after the
list of other words was made. Those of `fifth` are a stranger's, mended one by one. No threshold was chosen on
`fourth` and `sixth`: only they tell how far it goes beyond the questions it was made beside.
"""

import asyncio
from pathlib import Path

import msgspec
import pytest

from dialoom.llm import OfflineProvider
from dialoom.rag import (
    ContextSource,
    HashEmbedder,
    InMemoryVectorStore,
    SlidingWindowChunker,
    build_rag_query_graph,
    sync_folder,
)

ROOT = Path(__file__).parents[2]


class Natural(msgspec.Struct, frozen=True):
    """A question, the document that answers it, empty when none does, and words of the answer."""

    asked: str
    question: str
    doc: str
    any_of: list[str]

    def is_met(self, answer: str, cited: list[ContextSource]) -> bool:
        if not self.doc:
            return not cited
        names = {Path(source.doc_id.partition("#")[0]).name for source in cited}
        return self.doc in names and any(words in answer for words in self.any_of)


QUESTIONS = [
    msgspec.json.decode(line, type=Natural)
    for line in (ROOT / "tests/data/natural_questions.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.fixture(scope="module")
def met() -> dict[str, bool]:
    return asyncio.run(_ask_all())


async def _ask_all() -> dict[str, bool]:
    store, embedder = InMemoryVectorStore(), HashEmbedder()
    async for _ in sync_folder(
        ROOT / "examples/kb", store, embedder=embedder, chunker=SlidingWindowChunker()
    ):
        pass
    graph = build_rag_query_graph(store, embedder, OfflineProvider()).build()
    found: dict[str, bool] = {}
    for each in QUESTIONS:
        state = (await graph.run({"query": each.question})).raise_for_error().state
        found[each.question] = each.is_met(state["answer"], state["answer_sources"])
    return found


@pytest.mark.parametrize(
    ("asked", "least", "of"),
    [
        ("first", 29, 40),
        ("later", 18, 28),
        ("third", 15, 20),
        ("fourth", 14, 20),
        ("fifth", 11, 13),
        ("sixth", 15, 20),
    ],
)
def test_most_questions_in_other_words_are_answered(
    asked: str, least: int, of: int, met: dict[str, bool]
) -> None:
    answered = [met[each.question] for each in QUESTIONS if each.asked == asked and each.doc]
    print(f"{asked}: {sum(answered)} of {len(answered)} answered")
    assert (sum(answered) >= least, len(answered)) == (True, of)


@pytest.mark.parametrize(
    ("sets", "least", "of"),
    [({"first", "later", "third", "fifth"}, 27, 28), ({"fourth", "sixth"}, 17, 20)],
)
def test_most_questions_on_something_else_are_not_answered(
    sets: set[str], least: int, of: int, met: dict[str, bool]
) -> None:
    refused = [met[each.question] for each in QUESTIONS if each.asked in sets and not each.doc]
    print(f"{', '.join(sorted(sets))}: {sum(refused)} of {len(refused)} refused")
    assert (sum(refused) >= least, len(refused)) == (True, of)


@pytest.mark.parametrize(
    "question",
    [
        "Can I cancel my order?",
        "What do I do when I'm sick?",
        "退货邮费谁出？",
        "never mind, how long do refunds take?",
        "What tire pressure should I use?",
        "Do you sell helmets?",
        "怎么退货？",
    ],
)
def test_these_are(question: str, met: dict[str, bool]) -> None:
    assert met[question]
