"""The postings in memory against the FTS5 table that they are the twin of."""

import sqlite3

from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.rag.lexical_postings import PostingIndex
from dialoom.rag.words import question_tokens, tokens
from dialoom.stores.sqlite_lexical import CREATE, find_words

WORDS = st.sampled_from(["lamp", "lamps", "oil", "post", "退款", "政策", "退", "x1", "…", "Zürich"])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)
CHANGES = st.lists(
    st.tuples(st.lists(st.integers(0, 30), max_size=3, unique=True), st.lists(TEXTS, max_size=4)), max_size=10
)


class Twins:
    """The same rows in both, by number."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.postings: PostingIndex[int] = PostingIndex(lambda number: self.texts[number])
        self.table = sqlite3.connect(":memory:")
        self.table.execute(CREATE)
        self.alive: list[int] = []

    def change(self, gone: list[int], texts: list[str]) -> None:
        removed = [number for number in gone if number in self.alive]
        fresh = range(len(self.texts), len(self.texts) + len(texts))
        self.texts.update(zip(fresh, texts, strict=True))
        self.postings.replace(removed, fresh)
        for number in removed:
            row = (number, " ".join(tokens(self.texts[number])))
            self.table.execute("INSERT INTO words (words, rowid, tokens) VALUES ('delete', ?, ?)", row)
        for number in fresh:
            row = (number, " ".join(tokens(self.texts[number])))
            self.table.execute("INSERT INTO words (rowid, tokens) VALUES (?, ?)", row)
        self.alive = [number for number in (*self.alive, *fresh) if number not in removed]

    def close(self) -> None:
        self.table.close()


@settings(max_examples=150, deadline=None)
@given(CHANGES, st.lists(TEXTS, min_size=1, max_size=3), st.integers(1, 40))
def test_any_history_gives_the_scores_of_fts5_in_its_order(
    changes: list[tuple[list[int], list[str]]], questions: list[str], k: int
) -> None:
    twins = Twins()
    for gone, texts in changes:
        twins.change(gone, texts)
        for question in questions:
            wanted = question_tokens(question)
            assert twins.postings.search(wanted, k) == find_words(twins.table, wanted, k)
    twins.close()


def test_a_filter_goes_on_to_the_next_ones_until_there_are_enough() -> None:
    index: PostingIndex[int] = PostingIndex(lambda number: "lamp" if number % 2 else "lamp post")
    index.replace([], range(500))
    late = index.search(["lamp"], 2, keep=lambda keys: [key >= 498 for key in keys])
    assert [key for key, _ in late] == [499, 498]
    assert index.search(["lamp"], 2, keep=lambda keys: [False] * len(keys)) == []
    assert index.search(["none"], 2) == index.search([], 2) == index.search(["lamp"], 0) == []


def test_small_additions_do_not_pile_up() -> None:
    texts = [f"lamp {number}" for number in range(200)]
    index: PostingIndex[int] = PostingIndex(lambda number: texts[number])
    for number in range(200):
        index.replace([number - 3] if number > 2 else [], [number])
        assert [key for key, _ in index.search([str(number)], 3)] == [number]
    assert sorted(key for key, _ in index.search(["lamp"], 9)) == [197, 198, 199]
