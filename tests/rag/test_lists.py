"""Many rows are searched in lists of those near to each other; what is found is nearly what there is."""

import logging
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.rag import matrix as matrix_module
from dialoom.rag.lists import build_lists
from dialoom.rag.matrix import Matrix
from dialoom.rag.memory_store import InMemoryVectorStore
from dialoom.rag.snapshot import Snapshot
from dialoom.rag.types import Chunk, FloatMatrix


def clustered(count: int, *, dim: int = 16, seed: int = 1) -> FloatMatrix:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(40, dim))
    rows = centres[rng.integers(0, 40, count)] + 0.4 * rng.normal(size=(count, dim))
    return rows.astype(np.float32)


def filled(rows: FloatMatrix, *, exact_up_to: int) -> Matrix[int]:
    matrix: Matrix[int] = Matrix(exact_up_to=exact_up_to)
    matrix.replace([], range(len(rows)), rows)
    return matrix


def recall(found: Snapshot[int], exact: Snapshot[int], questions: FloatMatrix) -> float:
    shares = [
        len({key for key, _ in found.search(each, 10)} & {key for key, _ in exact.search(each, 10)}) / 10
        for each in questions
    ]
    return float(np.mean(shares))


def test_lists_find_nearly_all_of_the_nearest_rows_and_their_exact_scores() -> None:
    rows, questions = np.split(clustered(6_050), [6_000])
    matrix, exact = filled(rows, exact_up_to=5_000), filled(rows, exact_up_to=10_000)
    matrix.make_lists()
    exact.make_lists()
    assert exact.snapshot.lists is None
    lists = matrix.snapshot.lists
    assert lists is not None
    assert (len(lists.centres), lists.covered) == (154, 6_000)
    assert recall(matrix.snapshot, exact.snapshot, questions) > 0.95
    scores = dict(exact.snapshot.search(questions[0], 6_000))
    assert all(scores[key] == score for key, score in matrix.snapshot.search(questions[0], 10))
    assert matrix.snapshot.search_many(questions[:3], 5) == [
        matrix.snapshot.search(each, 5) for each in questions[:3]
    ]


def test_a_search_with_a_filter_or_for_very_many_rows_looks_at_all_of_them() -> None:
    rows, question = clustered(600), clustered(1, seed=3)[0]
    matrix, exact = filled(rows, exact_up_to=500), filled(rows, exact_up_to=1_000)
    matrix.make_lists()
    rare = dict(exact.snapshot.search(question, 600, keep=lambda keys: [key % 97 == 5 for key in keys]))
    assert dict(matrix.snapshot.search(question, 600, keep=lambda keys: [k % 97 == 5 for k in keys])) == rare
    assert matrix.snapshot.search(question, 200) == exact.snapshot.search(question, 200)
    least = exact.snapshot.search(question, 4)[-1][1]
    assert all(score >= least for _, score in matrix.snapshot.search(question, 10, min_score=least))


def test_a_few_rows_are_all_looked_at() -> None:
    rows = clustered(12)
    matrix, exact = filled(rows, exact_up_to=5), filled(rows, exact_up_to=100)
    matrix.make_lists()
    for k in (1, 12, 50):
        assert matrix.snapshot.search(rows[3], k) == exact.snapshot.search(rows[3], k)


def test_where_most_of_a_neighbourhood_has_gone_every_row_is_looked_at() -> None:
    rows = clustered(2_000)
    matrix, exact = filled(rows, exact_up_to=500), filled(rows, exact_up_to=5_000)
    matrix.make_lists()
    near = [key for key, _ in exact.snapshot.search(rows[3], 400)]
    for each in (matrix, exact):
        each.replace(near, [], rows[:0])
    assert matrix.snapshot.search(rows[3], 5) == exact.snapshot.search(rows[3], 5)


def test_rows_that_came_later_are_found_and_those_that_went_are_not() -> None:
    rows = clustered(1_000)
    matrix = filled(rows, exact_up_to=500)
    matrix.make_lists()
    question = np.full(16, 3.0, np.float32)
    matrix.replace([], [5_000], question[None, :])
    assert matrix.snapshot.search(question, 1) == [(5_000, 1.0)]
    nearest = matrix.snapshot.search(rows[7], 1)[0][0]
    matrix.replace([nearest], [], rows[:0])
    assert matrix.snapshot.search(rows[7], 1)[0][0] != nearest
    assert matrix.snapshot.lists is not None


def test_lists_do_not_outlive_the_places_of_their_rows() -> None:
    matrix = filled(clustered(1_000), exact_up_to=500)
    matrix.make_lists()
    matrix.replace(range(400), [], clustered(0))
    assert matrix.snapshot.lists is None
    matrix.make_lists()
    assert matrix.snapshot.lists is not None
    matrix.clear()
    assert matrix.snapshot == Snapshot()


def test_lists_are_made_anew_only_when_the_rows_have_outgrown_them() -> None:
    matrix = filled(clustered(1_000), exact_up_to=500)
    matrix.make_lists()
    first = matrix.snapshot.lists
    matrix.replace([], range(1_000, 1_300), clustered(300, seed=4))
    matrix.make_lists()
    assert matrix.snapshot.lists is first
    matrix.replace([], range(1_300, 1_400), clustered(100, seed=5))
    matrix.make_lists()
    assert matrix.snapshot.lists is not first


def test_lists_are_made_on_a_thread_while_searches_look_at_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    held, started = threading.Event(), threading.Event()

    def slow(segments: list[FloatMatrix]):
        started.set()
        assert held.wait(30)
        return build_lists(segments)

    monkeypatch.setattr(matrix_module, "build_lists", slow)
    rows = clustered(1_000)
    store = InMemoryVectorStore(exact_up_to=500)
    store.add([Chunk(id=str(number), doc_id="d", text="") for number in range(1_000)], rows)
    assert store.search(rows[3], 1)[0].chunk.id == "3"
    assert started.wait(30)
    assert store.search(rows[4], 1)[0].chunk.id == "4"
    store.remove("900")
    held.set()
    store.make_lists()  # waits for the thread
    assert store.search(rows[5], 1)[0].chunk.id == "5"
    assert store.search(rows[900], 1)[0].chunk.id != "900"


def test_memory_that_does_not_suffice_for_lists_leaves_the_search_exact(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(segments: list[FloatMatrix]):
        raise MemoryError

    monkeypatch.setattr(matrix_module, "build_lists", broken)
    rows = clustered(1_000)
    matrix = filled(rows, exact_up_to=500)
    with caplog.at_level(logging.WARNING, "dialoom.rag"):
        matrix.to_search()
        matrix.make_lists()  # waits for the thread, and no longer wants any
    assert matrix.to_search().search(rows[3], 1)[0][0] == 3
    assert [record.getMessage() for record in caplog.records] == [
        "lists for faster searches could not be made; every row is looked at"
    ]


@settings(max_examples=30)
@given(st.integers(1, 200), st.integers(1, 4), st.integers(0, 10))
def test_lists_hold_every_row_once_whatever_the_rows_are(count: int, dim: int, seed: int) -> None:
    rows = np.round(clustered(count, dim=dim, seed=seed))
    split = count // 2
    lists = build_lists([rows[:split], rows[split:]])
    every = np.arange(len(lists.centres), dtype=np.int32)
    assert [sorted(part.of(every).tolist()) for part in lists.parts] == [
        list(range(split)),
        list(range(count - split)),
    ]
    assert 1 <= lists.probes <= len(lists.centres)
