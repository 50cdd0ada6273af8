"""The guides that were promised are there and speak of what they should; their code runs with the suite."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def headings(page: str) -> list[str]:
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    return [line.lstrip("# ") for line in lines if line.startswith("## ")]


@pytest.mark.promise("docs-026")
def test_a_development_guide_covers_the_work_on_dialoom() -> None:
    assert headings("docs/development.md") == [
        "Set-up, build, tests",
        "Layers",
        "How a run is executed",
        "Places to extend",
        "Threads and tasks",
        "Errors",
        "CI and releases",
    ]


@pytest.mark.promise("docs-027")
def test_an_integration_guide_leads_from_installing_to_going_live() -> None:
    assert headings("docs/integrate.md") == [
        "Installing",
        "The smallest program",
        "An agent",
        "Answers from documents",
        "Settings and keys",
        "Going live",
    ]


@pytest.mark.promise("docs-028")
def test_an_overview_names_each_package_with_code_to_run() -> None:
    overview = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    packages = {path.parent.name for path in (ROOT / "src/dialoom").glob("*/__init__.py")}
    inner = {"base", "net", "cli", "server", "apps"}
    unnamed = [name for name in sorted(packages - inner) if f"`dialoom.{name}`" not in overview]
    assert not unnamed
    assert overview.count("```python") >= 5


@pytest.mark.promise("docs-029")
def test_a_change_log_says_what_versions_bring_and_what_may_change() -> None:
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "semantic versioning" in log
    assert "towncrier release notes start" in log
    assert list((ROOT / "changes").glob("*.md"))
