"""What a new user does first in what `make demo` opens: an answer, a fork, a form, a tool, a file."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.page.stage import ask, conversation_id

ROOT = Path(__file__).parents[2]
BOUND = 60.0
LINK = re.compile(rb"open (http://\S+)\r?\n")

pytestmark = pytest.mark.slow


class Terminal:
    """A program in a terminal, as a person has started it there."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.said = b""
        self._master, ours = pty.openpty()
        quiet = {name: value for name, value in os.environ.items() if "DISPLAY" not in name}
        self.program = subprocess.Popen(
            command, cwd=folder, env=quiet, stdin=ours, stdout=ours, stderr=ours, start_new_session=True
        )
        os.close(ours)

    def until(self, wanted: re.Pattern[bytes]) -> str:
        """Read on until something like `wanted` was said; return what its group holds."""
        end = time.monotonic() + BOUND
        while (found := wanted.search(self.said)) is None:
            ready, _, _ = select.select([self._master], [], [], max(0.0, end - time.monotonic()))
            assert ready, self.said
            self.said += os.read(self._master, 4096)
        return found[1].decode()

    def interrupt(self) -> int:
        """Press Ctrl-C: all programs of the terminal are told; return the exit code."""
        os.killpg(self.program.pid, signal.SIGINT)
        return self.program.wait(BOUND)

    def close(self) -> None:
        if self.program.poll() is None:
            os.killpg(self.program.pid, signal.SIGKILL)
            self.program.wait(BOUND)
        os.close(self._master)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Terminal]:
    """Both halves of `make demo`, in a copy of the source, which keeps what they keep."""
    for part in ("scripts", "examples"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / ".dialoom/demo").mkdir(parents=True)
    command = [sys.executable, "scripts/demo.py"]
    asked = subprocess.run(
        [*command, "questions"], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=BOUND
    )
    assert "[1]" in asked.stdout
    terminal = Terminal([*command, "workbench"], tmp_path)
    yield terminal
    terminal.close()


def test_from_make_demo_to_an_exported_conversation(
    context: BrowserContext, demo: Terminal, tmp_path: Path
) -> None:
    page = context.new_page()
    page.goto(demo.until(LINK))
    an_answer_with_its_source(page)
    a_conversation_from_a_checkpoint(page)
    fork = conversation_id(page)
    a_form(page)
    a_refund(page)
    page.reload()
    expect(page.locator(".badge.approved")).to_be_visible()
    assert conversation_id(page) == fork
    page.hover(".row.chosen")
    page.click(".row.chosen .menu .icon-button")
    with page.expect_download() as download:
        page.click("text=Export YAML")
    file = tmp_path / "conversation.yaml"
    download.value.save_as(file)
    said = file.read_text(encoding="utf-8")
    assert all(word in said for word in ("kind: Special", "submittedValues", "approved", "on their way back"))
    assert demo.interrupt() == 0
    assert (tmp_path / ".dialoom/demo/conversations.sqlite").exists()


def an_answer_with_its_source(page: Page) -> None:
    expect(page.locator(".title .chip")).to_have_text("quotes passages, no model")
    ask(page, "How many days does the shop hold a click and collect order?")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_contain_text("9 days")
    expect(page.locator(".cite").first).to_have_text("1")
    page.click(".cite >> nth=0")
    expect(page.locator(".panel .sources li.cited")).to_contain_text("9 days")


def a_conversation_from_a_checkpoint(page: Page) -> None:
    page.click("#tab-run")
    before = page.url
    page.click(".checkpoints button:has-text('Go on from here') >> nth=0")
    expect(page).not_to_have_url(before)
    expect(page.locator(".entry.assistant:not(.live) .text")).to_contain_text("9 days")


def a_form(page: Page) -> None:
    ask(page, "/form")
    page.fill("[data-field=order]", "1042")
    page.select_option("[data-field=reason]", "broken")
    page.click(".card >> text=Submit")
    expect(page.locator(".badge.submitted")).to_be_visible()


def a_refund(page: Page) -> None:
    ask(page, "Please refund order 1042")
    page.click(".card[data-type=Approval] >> text=Approve")
    answer = page.locator(".entry.assistant:not(.live) .text").last
    expect(answer).to_contain_text("EUR 19.90 of order 1042 are on their way back")
