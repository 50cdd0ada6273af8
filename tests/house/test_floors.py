"""The floors of coverage: their figures are said, and what is missing where one is not held."""

from pathlib import Path

import pytest
from coverage import CoverageData
from scripts.run_tests import low_coverage


def ran(root: Path, files: dict[str, set[int]]) -> None:
    """Make files of ten statements each, of which these lines were run."""
    data = CoverageData(str(root / ".coverage"))
    for name, lines in files.items():
        path = root / "src/dialoom" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("print()\n" * 10)
        data.add_lines({str(path): lines})
    data.write()


def test_each_floor_is_told_with_its_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(
        tmp_path, {"base/a.py": set(range(1, 11)), "graph/b.py": set(range(1, 11)), "c.py": set(range(2, 11))}
    )
    assert low_coverage(tmp_path) == []
    assert capsys.readouterr().out.splitlines() == [
        "coverage of everything: 96.6 % (floor 95 %)",
        "coverage of base: 100.0 % (floor 100 %)",
        "coverage of graph: 100.0 % (floor 100 %)",
    ]


def test_a_floor_that_is_not_held_is_told_with_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(tmp_path, {"base/a.py": set(range(1, 11)), "graph/b.py": {1, 2, 3, 4, 5, 9, 10}})
    everything, graph = low_coverage(tmp_path)
    assert everything.startswith("coverage of everything is below 95 %\n")
    assert graph.startswith("coverage of graph is below 100 %\n")
    (line,) = [line for line in graph.splitlines() if "b.py" in line]
    assert line.split()[1:] == ["10", "3", "70%", "6-8"]
    assert "coverage of graph: 70.0 % (floor 100 %)" in capsys.readouterr().out
