"""Every way a command can end is one line on stderr and a documented exit code."""

import signal
import subprocess
import sys

import pytest

from dialoom.base.errors import ConflictError, DialoomError, MissingExtraError, StoreError, UsageError
from dialoom.cli.exits import ExitCode, NoModelError, exit_code_for, run_command
from dialoom.llm import ProviderError
from dialoom.rag import LoadError

ERRORS = {
    NoModelError("no model"): ExitCode.NO_MODEL,
    LoadError("unreadable", "no such folder", source="x"): ExitCode.NO_DOCUMENTS,
    StoreError("disk"): ExitCode.INDEX,
    ConflictError("held by another"): ExitCode.INDEX,
    ProviderError("auth", "refused the key"): ExitCode.MODEL,
    UsageError("wrong"): ExitCode.USAGE,
    MissingExtraError("numpy", "rag"): ExitCode.USAGE,
    DialoomError("whatever"): ExitCode.FAILED,
}


@pytest.mark.parametrize(("error", "code"), ERRORS.items(), ids=lambda value: getattr(value, "code", value))
def test_each_kind_of_error_has_its_exit_code(error: DialoomError, code: ExitCode) -> None:
    assert exit_code_for(error) is code


def test_a_command_that_works_says_nothing_and_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(lambda: None) is ExitCode.OK
    assert run_command(lambda: ExitCode.INTERRUPTED) is ExitCode.INTERRUPTED
    assert capsys.readouterr() == ("", "")


def test_an_error_is_one_line_on_stderr_whatever_its_text_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(_raising(StoreError("first\nsecond \x1b[31m"))) is ExitCode.INDEX
    assert capsys.readouterr() == ("", "dialoom: first second  [31m\n")


def test_a_bug_is_one_line_too_and_its_traceback_waits_for_those_who_ask(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DIALOOM_DEBUG", raising=False)
    assert run_command(_raising(KeyError("x"))) is ExitCode.FAILED
    told = "dialoom: internal error: KeyError: 'x'; set DIALOOM_DEBUG=1 to see where\n"
    assert capsys.readouterr().err == told
    monkeypatch.setenv("DIALOOM_DEBUG", "1")
    run_command(_raising(KeyError("x")))
    assert capsys.readouterr().err.startswith("Traceback") is True


def test_ctrl_c_ends_with_130(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # this process goes on
    assert run_command(_raising(KeyboardInterrupt())) is ExitCode.INTERRUPTED
    assert capsys.readouterr().err == "dialoom: interrupted; what was finished before is kept\n"


def test_a_reader_that_left_is_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert run_command(_raising(BrokenPipeError())) is ExitCode.OK


def _raising(error: BaseException):
    def command() -> None:
        raise error

    return command


def test_a_command_that_needs_no_documents_loads_none_of_what_reads_them() -> None:
    code = "import sys, dialoom.cli.app; sys.exit('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
