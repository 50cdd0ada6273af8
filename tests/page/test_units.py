"""The page's unit tests and types, run by its own tools."""

import shutil
import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"

pytestmark = pytest.mark.slow


@pytest.fixture
def npm() -> str:
    found = shutil.which("npm")
    if found is None or not (WEB / "node_modules").is_dir():
        pytest.skip("the page's tools are not installed (npm); run make test")
    return found


@pytest.mark.parametrize("script", ["check", "test"])
def test_the_page_passes_its_own(script: str, npm: str) -> None:
    done = subprocess.run(
        [npm, "--prefix", str(WEB), "run", "--silent", script],
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
