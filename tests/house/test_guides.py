"""The guides that were promised are there and speak of what they should; their code runs with the suite."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


DEVELOPMENT = {
    "Set-up, build, tests": ("make test", "make check", "hatchling build"),
    "Layers": ("cli >", "decisions"),
    "How a run is executed": ("supersteps", "checkpoint", "interrupt"),
    "Places to extend": ("`CheckpointStore`", "`Provider`", "`Tool`", "`VectorStore`", "```python"),
    "Threads and tasks": ("threads", "event loops", "bound", "`CancelScope`"),
    "Errors": ("`DialoomError`", "`code`", "`raise_for_error()`"),
    "CI and releases": ("`.ci/run`", "`changes/`", "CHANGELOG.md", "version"),
}
INTEGRATION = {
    "Installing": ('pip install "dialoom[rag]"', 'pip install "dialoom[server]"'),
    "The smallest program": ("GraphBuilder", ".run_sync("),
    "An agent": ("ReActAgent", "@tool", "`OpenAIProvider`"),
    "Answers from documents": ("load_document", "build_rag_query_graph", "answer_cited_indexes"),
    "Settings and keys": ("environment variable", "cli.md", "Keys are never shown"),
    "Going live": ("`SqliteCheckpointStore`", "`thread_id`", "OpenTelemetry", "HTTP"),
}


def unsaid(page: str, wanted: Mapping[str, Sequence[str]]) -> list[str]:
    """What a page's sections should speak of and do not."""
    _, *parts = re.split(r"^## (.*)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    said = dict(zip(parts[::2], parts[1::2], strict=True))
    return [
        f"{title}: {words}" for title, each in wanted.items() for words in each if words not in said[title]
    ]


def headings(page: str) -> list[str]:
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    return [line.lstrip("# ") for line in lines if line.startswith("## ")]


@pytest.mark.promise("docs-026")
def test_a_development_guide_covers_the_work_on_dialoom() -> None:
    assert headings("docs/development.md") == list(DEVELOPMENT)
    assert unsaid("docs/development.md", DEVELOPMENT) == []
    named = re.findall(r"\bmake ([a-z]+)", (ROOT / "docs/development.md").read_text(encoding="utf-8"))
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [target for target in named if f"\n{target}:" not in made] == []
    assert (ROOT / ".ci/run").exists()


@pytest.mark.promise("docs-027")
def test_an_integration_guide_leads_from_installing_to_going_live() -> None:
    assert headings("docs/integrate.md") == list(INTEGRATION)
    assert unsaid("docs/integrate.md", INTEGRATION) == []
    named = re.findall(r"dialoom\[(\w+)\]", (ROOT / "docs/integrate.md").read_text(encoding="utf-8"))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(named) <= extras["optional-dependencies"].keys()


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
