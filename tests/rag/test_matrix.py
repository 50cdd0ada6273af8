"""The matrix against the plainest search there is."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.rag.matrix import Matrix

SMALL = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0])
CHANGES = st.lists(
    st.tuples(
        st.lists(st.integers(0, 12), max_size=4, unique=True),
        st.lists(st.tuples(st.integers(0, 12), SMALL, SMALL), max_size=5, unique_by=lambda put: put[0]),
    ),
    max_size=12,
)


def plainly(rows: dict[int, tuple[float, float]], k: int) -> list[int]:
    """Keys in the order they were put, by cosine to (1, 0.5)."""

    def score(vector: tuple[float, float]) -> float:
        length = np.hypot(*vector) or 1.0
        unit = np.array(vector, np.float32) / np.float32(length)
        return round(float(unit @ (np.array([1, 0.5]) / np.hypot(1, 0.5))), 5)

    return sorted(rows, key=lambda key: -score(rows[key]))[:k]


@settings(max_examples=200)
@given(CHANGES, st.integers(1, 15))
def test_any_history_of_changes_is_searched_like_a_plain_list(
    changes: list[tuple[list[int], list[tuple[int, float, float]]]], k: int
) -> None:
    matrix: Matrix[int] = Matrix()
    rows: dict[int, tuple[float, float]] = {}
    for gone, puts in changes:
        before = matrix.snapshot
        seen = before.search(np.array([1, 0.5], np.float32), k) if before.alive else []
        vectors = np.array([put[1:] for put in puts], np.float32).reshape(len(puts), 2)
        matrix.replace(gone, [put[0] for put in puts], vectors)
        for key in (*gone, *(put[0] for put in puts)):
            rows.pop(key, None)
        rows |= {put[0]: put[1:] for put in puts}
        hits = matrix.snapshot.search(np.array([1, 0.5], np.float32), k)
        assert [key for key, _ in hits] == plainly(rows, k)
        odd = matrix.snapshot.search(
            np.array([1, 0.5], np.float32), k, keep=lambda keys: [key % 2 == 1 for key in keys]
        )
        assert [key for key, _ in odd] == [key for key in plainly(rows, 99) if key % 2][:k]
        assert before.alive == 0 or before.search(np.array([1, 0.5], np.float32), k) == seen
        assert (len(matrix), set(matrix.snapshot.rows()[0])) == (len(rows), set(rows))
    matrix.clear()
    assert matrix.snapshot.rows()[0] == []


def test_many_rows_are_ordered_as_few_are() -> None:
    rng = np.random.default_rng(5)
    angles = np.round(rng.uniform(0, 1.5, 5_000), 2)  # many are equal, and come in the order they were put
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    matrix: Matrix[int] = Matrix()
    matrix.replace([], range(5_000), vectors)
    matrix.replace(range(1_000), [], vectors[:0])
    expected = sorted(range(1_000, 5_000), key=lambda key: angles[key])
    for k in (1, 7, 40, 900):
        found = [key for key, _ in matrix.snapshot.search(np.array([1, 0], np.float32), k)]
        assert found == expected[:k]
        (many,) = matrix.snapshot.search_many(np.array([[1, 0]], np.float32), k)
        assert [round(score, 5) for _, score in many] == [
            round(float(np.cos(angles[key])), 5) for key in found
        ]
    matrix.replace(range(1_000, 4_990), [], vectors[:0])
    left = sorted(range(4_990, 5_000), key=lambda key: angles[key])
    assert [key for key, _ in matrix.snapshot.search(np.array([1, 0], np.float32), 9)] == left[:9]


def test_more_rows_than_a_segment_holds_are_searched_too(monkeypatch) -> None:
    monkeypatch.setattr("dialoom.rag.matrix.SEGMENT_ROWS", 300)
    matrix: Matrix[int] = Matrix()
    angles = np.linspace(0, 1, 1000)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    query = vectors[700] + 0.2 * (vectors[701] - vectors[700])
    matrix.replace([], range(1000), vectors)
    matrix.replace(range(0, 1000, 10), [], vectors[:0])
    assert len(matrix.snapshot.segments) == 4
    assert [key for key, _ in matrix.snapshot.search(query, 3)] == [701, 699, 702]
    matrix.replace(range(600), [], vectors[:0])
    assert (len(matrix.snapshot.segments), len(matrix), 701 in matrix, 5 in matrix) == (2, 360, True, False)
    assert [key for key, _ in matrix.snapshot.search(query, 3)] == [701, 699, 702]
