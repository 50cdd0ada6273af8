"""How the suite runs, and with it every python, sh and toml block of README.md and docs/, page by page."""

import gc
import math
import os
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Generator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage
from hypothesis import HealthCheck, is_hypothesis_test, settings
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from dialoom.cli.config import load_config

ROOT = Path(__file__).parent
LONGEST = (
    "tests/stores/test_conversation_round_trips.py",
    "tests/peers/test_mcp_conformance.py",
    "tests/llm/test_real_model.py",
    "tests/stores/test_checkpoint_stores.py",
    "tests/llm/test_wire_cases.py",
    "tests/server/test_foreign.py",
    "tests/mcp/test_hostile_stdio.py",
    "tests/agent/test_restart.py",
)
"""The files that take longest. They begin first, or one worker is left alone with them at the end."""

# A fresh checkout builds hypothesis' tables during the first example, and a shared machine is slow at times:
# neither is a fault of what is tested.
settings.register_profile("dialoom", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("dialoom"))
settings.load_profile("dialoom")
QUICK_SHARE = 4
"""With `--hypothesis-profile=quick` a random test tries one example in so many."""

SETTINGS = ("DIALOOM_", "OPENAI_", "ANTHROPIC_", "OLLAMA_", "LC_")
LOOKS = frozenset({"NO_COLOR", "FORCE_COLOR", "LANG", "LANGUAGE", "PYTHONWARNINGS"})
ASKED_FOR = frozenset({"DIALOOM_SHARED", "DIALOOM_RIVALS_PYTHON"})
"""What of this the suite itself is told."""


def own_environment(environ: MutableMapping[str, str], settings_folder: str) -> None:
    """Take out what would change an answer in a test, or in a program that it starts.

    Keys and settings are those of who runs the suite; a proxy would be asked for servers on this machine.
    """
    for name in environ.keys() - ASKED_FOR:
        if name.startswith(SETTINGS) or name in LOOKS or name.lower().endswith("_proxy"):
            del environ[name]
    # hundreds of programs are started: where no bytecode is kept, each would compile dialoom anew
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    environ.update(COLUMNS="80", LINES="24", TERM="xterm-256color", XDG_CONFIG_HOME=settings_folder)


NO_SETTINGS = tempfile.TemporaryDirectory(prefix="dialoom-no-settings-", ignore_cleanup_errors=True)
"""Browsers write there. It goes with this process."""
own_environment(os.environ, NO_SETTINGS.name)

TRACED_CHILDREN = "COVERAGE_PROCESS_CONFIG"


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
    environment.pop(TRACED_CHILDREN, None)
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


class WholeFiles(LoadFileScheduling):
    """A file is the work of one worker, and so is all that asks the one local model."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.split("::", 1)[0]
        return "the local model" if "_real_" in path else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> WholeFiles:
    config.option.loadscopereorder = False  # by the order below, not by how many tests a file has
    return WholeFiles(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        assert "_real_" in item.path.name or not item.get_closest_marker("real_model"), item.nodeid
    items.sort(key=lambda item: _place(item.nodeid.split("::", 1)[0]))
    if settings.get_current_profile_name() == "quick":
        for test in {getattr(item, "function", None) for item in items}:
            if is_hypothesis_test(test):
                _try_fewer(test)


def _try_fewer(test: Any) -> None:
    """Lower how many examples a test tries: what it says of that itself is stronger than any profile."""
    whole: settings = test._hypothesis_internal_use_settings  # noqa: SLF001 - as Hypothesis' own plugin does
    fewer = math.ceil(whole.max_examples / QUICK_SHARE)
    test._hypothesis_internal_use_settings = settings(whole, max_examples=fewer)  # noqa: SLF001 - the same


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Have a worker write down what it measured while it is waited for.

    Once it has said that it is through, it has ten seconds to end, and is killed when a thread of some test
    keeps it from that: all it measured was lost with it.
    """
    measured = Coverage.current() if hasattr(session.config, "workerinput") else None
    if measured is not None:
        measured.stop()
        measured.save()


def pytest_collection_finish() -> None:
    """Spare what was collected each search for garbage, which is a tenth of the time: it stays to the end."""
    gc.collect()
    gc.freeze()


def _place(path: str) -> int:
    return LONGEST.index(path) if path in LONGEST else len(LONGEST)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run what is slow and what is random, and what it starts, untraced.

    The slow would take three times as long, and a line that only chance reaches is not tested. So the floors
    of coverage are held by the other tests alone. Threads are traced all the same: those that
    serve the whole process may begin here, and other tests need them traced.
    """
    tracer = sys.gettrace()
    if tracer is None or not (item.get_closest_marker("slow") or item.get_closest_marker("hypothesis")):
        return (yield)
    children = os.environ.pop(TRACED_CHILDREN, None)
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)
        if children is not None:
            os.environ[TRACED_CHILDREN] = children


@pytest.fixture(autouse=True)
def _ctrl_c() -> None:  # pyright: ignore[reportUnusedFunction] - pytest uses it
    """Have each test and its children hear Ctrl-C.

    A suite begun in the background of a shell is deaf to it, and so is the process of an interrupted command.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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
