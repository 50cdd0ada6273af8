"""The suite is the same wherever it is begun."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import own_environment

ROOT = Path(__file__).parents[2]
RANDOM = """
from hypothesis import given, settings, strategies as st

tried = []

@settings(max_examples=40, database=None)
@given(st.integers())
def test_any(number):
    tried.append(number)

def test_so_many():
    assert len(tried) == {wanted}
"""


def test_settings_proxies_and_looks_of_who_runs_the_suite_are_not_its_own() -> None:
    theirs = {
        "OPENAI_API_KEY": "sk-theirs",
        "DIALOOM_MODEL": "theirs",
        "https_proxy": "http://proxy:3128",
        "ALL_PROXY": "socks5://proxy",
        "NO_COLOR": "1",
        "LC_ALL": "de_DE.UTF-8",
        "COLUMNS": "40",
        "TERM": "dumb",
    }
    environment = theirs | {
        "PATH": "/bin",
        "DIALOOM_SHARED": "/shared",
        "XDG_CONFIG_HOME": "/home/they/.config",
    }
    own_environment(environment, "/nobody/config")
    ours = {"XDG_CONFIG_HOME": "/nobody/config", "COLUMNS": "80", "LINES": "24", "TERM": "xterm-256color"}
    assert environment == {"PATH": "/bin", "DIALOOM_SHARED": "/shared", **ours}


@pytest.mark.parametrize(("profile", "wanted"), [("dialoom", 40), ("quick", 10)])
def test_a_quick_run_tries_a_quarter_of_the_examples(tmp_path: Path, profile: str, wanted: int) -> None:
    (tmp_path / "conftest.py").write_bytes((ROOT / "conftest.py").read_bytes())
    (tmp_path / "test_random.py").write_text(RANDOM.replace("{wanted}", str(wanted)))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--hypothesis-profile={profile}",
    ]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=100)
    assert "2 passed" in done.stdout, done.stdout
