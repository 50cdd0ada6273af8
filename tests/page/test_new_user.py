"""What a new user does first, in the example workbench: an answer, a fork, a form, a tool, a file to keep."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.page.stage import ask, conversation_id

ROOT = Path(__file__).parents[2]
BOUND = 60.0

pytestmark = pytest.mark.slow


@pytest.fixture
def link(tmp_path: Path) -> Iterator[str]:
    command = [sys.executable, "examples/help_desk.py", "--port", "0", "--data", str(tmp_path / "data")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as desk:
        assert desk.stdout is not None
        yield desk.stdout.readline().strip()
        desk.terminate()
        assert desk.wait(BOUND) == 0


def test_from_the_link_to_an_exported_conversation(
    context: BrowserContext, link: str, tmp_path: Path
) -> None:
    page = context.new_page()
    page.goto(link)
    expect(page.locator(".title .chip")).to_have_text("quotes passages, no model")
    ask(page, "How many days does the shop hold a click and collect order?")
    answer = page.locator(".entry.assistant:not(.live) .text")
    expect(answer).to_contain_text("9 days")
    page.click(".cite >> nth=0")
    expect(page.locator(".panel .sources li.cited")).to_contain_text("9 days")

    page.click("#tab-run")
    before = page.url
    page.click(".checkpoints button:has-text('Go on from here') >> nth=0")
    expect(page).not_to_have_url(before)
    expect(answer).to_contain_text("9 days")
    fork = conversation_id(page)

    ask(page, "/form")
    page.fill("[data-field=order]", "1042")
    page.select_option("[data-field=reason]", "broken")
    page.click(".card >> text=Submit")
    expect(page.locator(".badge.submitted")).to_be_visible()

    ask(page, "Please refund order 1042")
    page.click(".card[data-type=Approval] >> text=Approve")
    expect(answer.last).to_contain_text("EUR 19.90 of order 1042 are on their way back")

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
