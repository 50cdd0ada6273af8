"""Standard streams that are closed, full or interrupted end a command in an orderly way."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dialoom.cli
from tests.cli.terminal import Terminal

SOON = 60


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell with `dialoom` on the path."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-c", line], env=environment, capture_output=True, text=True, timeout=SOON, check=False
    )


def test_a_closed_stderr_leaves_stdout_to_the_answer(terminal: Terminal, docs: Path) -> None:
    done = shell(f"dialoom ask 'How long do refunds take?' --docs {docs} --offline --json 2>&-")
    assert done.returncode == 0
    assert json.loads(done.stdout)["mode"] == "offline"


def test_a_closed_stdin_is_the_end_of_the_input(terminal: Terminal) -> None:
    assert (shell("dialoom chat <&-").returncode, shell("dialoom rag --offline <&-").returncode) == (0, 0)


CLOSED = "dialoom: stdout is closed, so nobody can read this; open it, or send it to a file"
FULL = "dialoom: cannot read or write a standard stream: No space left on device"


COMMANDS = """\
import io, os, sys
from dialoom.cli import main
for line in sys.argv[1:]:
    os.close(1)
    sys.stdin = io.StringIO("/help")
    print(line, main(line.split()), file=sys.stderr)
"""
GRAPH = (
    """{"format": 1, "graph": "g", "nodes": [{"name": "a"}], "edges": [{"from": "__start__", "to": "a"}]}"""
)


def test_an_answer_that_nobody_can_read_is_no_success(terminal: Terminal, docs: Path) -> None:
    Path("g.json").write_text(GRAPH)
    commands = ("ask refunds", "ask refunds --json", "chat", "rag", "mcp serve")
    lines = ("graph show g.json", "--version", *(f"{each} --offline --docs {docs}" for each in commands))
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, *lines],
        capture_output=True,
        text=True,
        timeout=SOON,
        check=False,
    )
    told = [line for line in done.stderr.splitlines() if line.startswith(("dialoom:", *lines))]
    assert told == [text for line in lines for text in (CLOSED, f"{line} 1")]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_one_line_however_little_is_written(terminal: Terminal) -> None:
    done = shell("unset PYTHONUNBUFFERED; dialoom --version >/dev/full")
    assert (done.returncode, done.stderr) == (1, f"{FULL}\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_service_whose_answers_nothing_takes_is_no_success(terminal: Terminal, docs: Path) -> None:
    health = """echo '{"v": 1, "id": 1, "op": "health"}'"""
    done = shell(f"{health} | dialoom rag --offline --docs {docs} >/dev/full")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, FULL)
    left = shell(f"{health} | dialoom rag --offline --docs {docs} | true; echo ${{PIPESTATUS[1]}}")
    assert left.stdout == "0\n"


def test_a_reader_that_has_left_is_no_failure(terminal: Terminal) -> None:
    Path("g.json").write_text(GRAPH)
    done = shell("unset PYTHONUNBUFFERED; dialoom graph show g.json | true; echo ${PIPESTATUS[0]}")
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_ctrl_c_before_anything_is_loaded_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(dialoom.cli, "_open_closed_streams", interrupted)
    assert dialoom.cli.main(["ask"]) == 130
    assert capsys.readouterr().err == "dialoom: interrupted before anything was done\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_a_second_ctrl_c_does_not_break_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from dialoom.cli.exits import ExitCode, run_command

    def interrupted() -> None:
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    try:
        assert run_command(interrupted) is ExitCode.INTERRUPTED
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
