"""The docs are tests: every python, sh and toml block of README.md and docs/ runs, page by page, in order."""

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from sybil import Example, Sybil
from sybil.integration.pytest import SybilItem
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from dialoom.cli.config import load_config

ROOT = Path(__file__).parent

# A fresh checkout builds hypothesis' tables during the first example, and a shared machine is slow at times:
# neither is a fault of what is tested.
settings.register_profile("dialoom", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dialoom")


def open_desk(namespace: dict[str, Any]) -> None:
    """Give a page a fresh folder to work in, with the sample documents in their usual place."""
    desk = tempfile.TemporaryDirectory(prefix="dialoom-docs-")
    (Path(desk.name) / "examples").symlink_to(ROOT / "examples")
    namespace["_desk"], namespace["_back"] = desk, Path.cwd()
    os.chdir(desk.name)


def close_desk(namespace: dict[str, Any]) -> None:
    os.chdir(namespace["_back"])
    namespace["_desk"].cleanup()


def run_shell(example: Example) -> None:
    """Run a block as a reader would, offline; it fails when any command of it does."""
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "DIALOOM_NO_PROBE": "1",
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", str(example.parsed)],
        cwd=example.namespace["_desk"].name,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the blocks of one page, and the tests of the one local model, on one worker."""
    for item in items:
        if isinstance(item, SybilItem):
            item.add_marker(pytest.mark.xdist_group(str(item.path)))
        elif item.get_closest_marker("real_model"):
            item.add_marker(pytest.mark.xdist_group("real-model"))


def read_toml(example: Example) -> None:
    """Read a settings file; one for the command as the command would."""
    tables = tomllib.loads(str(example.parsed))
    if "model" in tables:
        path = Path(example.namespace["_desk"].name) / "shown.toml"
        path.write_text(str(example.parsed), encoding="utf-8")
        load_config(path)


pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(),
        CodeBlockParser(language="sh", evaluator=run_shell),
        CodeBlockParser(language="toml", evaluator=read_toml),
    ],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    setup=open_desk,
    teardown=close_desk,
).pytest()
