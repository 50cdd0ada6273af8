"""Fixtures of the triage: a terminal in a folder with tickets and cases, where nothing names a model."""

from pathlib import Path

import pytest

from tests.apps.triage.sample import lay_out
from tests.cli.terminal import Terminal


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Terminal:
    monkeypatch.setenv("DIALOOM_NO_PROBE", "1")
    monkeypatch.chdir(lay_out(tmp_path))
    return Terminal(capfd)
