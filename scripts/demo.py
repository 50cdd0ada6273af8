"""The main job before your eyes: two questions over real files, answered offline, then the workbench.

`demo.py questions` and `demo.py workbench` do one half each.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
import urllib.request
import webbrowser
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(".dialoom/demo")
QUESTIONS = (
    "My hitch arm has cracked. For how many years are the hitch arm and coupling covered?",
    "退货寄到仓库、验货没问题之后，退款几天能到账？",
)
# the file the workbench keeps its passages in, so that it need not read the documents again
OPTIONS = ("--docs", "examples/kb", "--index", str(DATA / "documents.sqlite"), "--offline")
DESK = ("examples/help_desk.py", "--port", "0", "--data", str(DATA))
START_SECONDS = 60.0
END_SECONDS = 10.0
ANSWER_SECONDS = 20.0


def ask_all() -> int:
    """Show and run the questions; return the worst exit code."""
    began = time.monotonic()
    codes = [_ask(question) for question in QUESTIONS]
    files = len(list((ROOT / "examples/kb").iterdir()))
    print(f"\ntwo questions over {files} files in {time.monotonic() - began:.1f} s", flush=True)
    return max(codes)


def _ask(question: str) -> int:
    command = Path(sys.executable).parent / "dialoom"
    shown = os.path.relpath(command, ROOT)  # as it can be typed where nothing was activated
    print(f'\n$ {shown} ask "{question}" --docs examples/kb --offline\n', flush=True)
    return subprocess.run([command, "ask", question, *OPTIONS], cwd=ROOT, check=False).returncode


def open_workbench(words: Sequence[str], *, watched: bool) -> int:
    """Start the server of `words`, a Python program that prints its address first; return its exit code.

    Where somebody is watching it serves until Ctrl-C. Where nobody is, it is asked once, and ended.
    """
    with _started(words) as child:
        link = _first_line(child)
        if not link:
            print("the workbench did not start; its own lines above say why", file=sys.stderr)
            return child.wait(END_SECONDS) or 1
        if not watched:
            status = _status(link)
            print(f"\nthe workbench over examples/kb answers: {_address(link)} says {status}", flush=True)
            print("nobody is watching, so it ends; in a terminal `make demo` leaves it open", flush=True)
            return _end(child)
        print(f'\nthe workbench over examples/kb; try a question, /form and "refund order 1042"\nopen {link}')
        opened = _has_display() and webbrowser.open(link)
        print(f"({'your browser shows it' if opened else 'the link works once'}; Ctrl-C ends it)", flush=True)
        return _watch(child)


@contextmanager
def _started(words: Sequence[str]) -> Generator[subprocess.Popen[str]]:
    """Give the running program; it never outlives the block."""
    with subprocess.Popen([sys.executable, *words], cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            _end(child)


def _first_line(child: subprocess.Popen[str]) -> str:
    """Return the first line a program prints, "" when it ends before or takes over a minute."""
    assert child.stdout is not None
    overdue = Timer(START_SECONDS, child.kill)
    overdue.start()
    try:
        return child.stdout.readline().strip()
    finally:
        overdue.cancel()


def _watch(child: subprocess.Popen[str]) -> int:
    try:
        return child.wait()
    except KeyboardInterrupt:  # the terminal told the server as well, which ends in peace
        return child.wait(END_SECONDS)


def _end(child: subprocess.Popen[str]) -> int:
    child.terminate()
    try:
        return child.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait(END_SECONDS)


def _status(link: str) -> int:
    """Follow a link as a browser does, with cookies and past any proxy; return the status of the page."""
    handlers = (urllib.request.HTTPCookieProcessor(), urllib.request.ProxyHandler({}))
    with urllib.request.build_opener(*handlers).open(link, timeout=ANSWER_SECONDS) as answer:
        return answer.status


def _address(link: str) -> str:
    return link.partition("/login")[0]


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()  # None where it was closed


def _has_display() -> bool:
    return sys.platform in {"darwin", "win32"} or bool({"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys())


def _leave(number: int, _frame: object) -> None:
    """End by way of the blocks that are open, so that the server ends with us."""
    sys.exit(128 + number)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("half", nargs="?", choices=("questions", "workbench"))
    half = parser.parse_args().half
    signal.signal(signal.SIGTERM, _leave)
    try:
        code = 0 if half == "workbench" else ask_all()
        return code if code or half == "questions" else open_workbench(DESK, watched=_is_terminal())
    except BrokenPipeError:  # the reader has left (`make demo | head`), as it may
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
