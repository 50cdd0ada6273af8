"""The bench of knowledge says what the requirement's figures are compared with."""

import pytest
from bench import rag as bench


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], float]:
    """The rows of a small run, with what each is compared with: nothing here is about time."""
    monkeypatch.setattr(bench, "COUNT", 800)
    monkeypatch.setattr(bench, "LISTED", 800)
    monkeypatch.delenv(bench.RIVALS_PYTHON, raising=False)
    return {(row.row, row.rival): row.theirs for row in bench.rows()}


@pytest.mark.slow
@pytest.mark.promise("docs-033", "docs-034", "docs-035", "docs-038")
def test_search_storing_embedding_and_persistence_are_measured_against_their_baselines(
    rows: dict[tuple[str, str], float],
) -> None:
    assert rows["search 50,000 x 128, top 10", "the seed's C++ scan (10 ms)"] == 10.0
    assert round(rows["add 50,000 chunks", "the seed's 1.3 million chunks/s"], 1) == 38.5
    assert rows["hash embedding", "the seed's 100 MB/s"] == 10.0
    assert {
        ("save 50,000 x 128 as JSON", "Python's json"),
        ("load 50,000 x 128 from JSON", "Python's json"),
    } < (rows.keys())
