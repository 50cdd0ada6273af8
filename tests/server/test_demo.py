"""What `make demo` shows after its two questions: the workbench, left open where somebody is watching."""

import sys
from pathlib import Path

import pytest
from scripts.demo import DESK, open_workbench

LINK = "http://127.0.0.1:1/login?token=once"


def program(text: str) -> tuple[str, str]:
    return "-c", text


@pytest.mark.slow
def test_where_nobody_watches_the_workbench_answers_once_and_the_demo_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert open_workbench((*DESK[:-1], str(tmp_path)), watched=False) == 0
    said = capsys.readouterr().out
    assert "the workbench over examples/kb answers: http://127.0.0.1:" in said
    assert "says 200" in said


def test_where_somebody_watches_the_address_is_said_and_the_server_stays(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    serving = program(f"print({LINK!r}, flush=True); raise SystemExit(7)")
    assert open_workbench(serving, watched=True) == 7
    assert f"open {LINK}\n(the link works once; Ctrl-C ends it)" in capsys.readouterr().out


def test_a_workbench_that_does_not_start_fails_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert open_workbench(program("raise SystemExit(3)"), watched=False) == 3
    assert open_workbench(program("pass"), watched=True) == 1
    assert capsys.readouterr().err == 2 * "the workbench did not start; its own lines above say why\n"
