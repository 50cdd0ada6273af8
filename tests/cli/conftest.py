"""Fixtures of the tests of the command: a terminal in an empty folder, where nothing names a model."""

from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.local_model import local_model

__all__ = ["local_model"]


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Terminal:
    monkeypatch.setenv("DIALOOM_NO_PROBE", "1")
    monkeypatch.chdir(tmp_path)
    return Terminal(capfd)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with one small document, relative to where the terminal stands."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "refunds.md").write_text("# Refunds\n\nRefunds take three working days.\n", encoding="utf-8")
    return Path("docs")
