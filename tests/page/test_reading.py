"""What a reader unfolded, and where one reads, stays as it is."""

import asyncio
import threading
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from dialoom.llm import ReasoningDelta, ResponseStarted, TextDelta
from dialoom.tools import tool
from tests.page.stage import BOUND, Stage, ask, staged, text

pytestmark = pytest.mark.slow

WHOLE = ".entry.assistant:not(.live)"


def test_a_thought_that_was_unfolded_while_the_answer_came_stays_so(page: Page, stage: Stage) -> None:
    gate = stage.gate()
    said = TextDelta("Half "), gate, TextDelta("and whole.")
    stage.provider.queue_events(ResponseStarted(), ReasoningDelta("Let me see."), *said)
    ask(page, "Hi")
    stage.reach(gate)
    expect(page.locator(".live details.reasoning:not([open])")).to_be_visible()  # it folds when words come
    page.click(".live .reasoning summary")
    stage.open(gate)
    expect(page.locator(f"{WHOLE} details.reasoning[open]")).to_contain_text("Let me see.")
    page.click(".reasoning summary")
    expect(page.locator(f"{WHOLE} details.reasoning:not([open])")).to_be_visible()


def test_a_call_that_was_unfolded_while_it_ran_stays_so(context: BrowserContext, tmp_path: Path) -> None:
    may_end = threading.Event()

    @tool
    async def drill(metres: int) -> str:
        """Drill."""
        await asyncio.to_thread(may_end.wait, BOUND)
        return f"{metres} m drilled"

    with staged(tmp_path, tools=(drill,)) as stage:
        page = context.new_page()
        page.goto(stage.login_url())
        stage.provider.queue_tool_call("c1", "drill", {"metres": 9})
        stage.says("It is drilled.")
        ask(page, "Drill")
        expect(page.locator(".tool-call.running")).to_be_visible()
        page.click(".tool-call summary")
        may_end.set()
        expect(page.locator(f"{WHOLE} .text")).to_have_text("It is drilled.")
        expect(page.locator(".tool-call.done[open]")).to_contain_text("9 m drilled")


def test_another_language_moves_and_folds_nothing(page: Page, stage: Stage) -> None:
    entries = [text("assistant", f"Answer {at}\n\n```py\n{at}\n```", reasoning="Hm.") for at in range(40)]
    page.goto(f"{stage.url}/c/{stage.conversation(*entries)}")
    read = page.locator("[data-index='20']")
    read.scroll_into_view_if_needed()
    read.locator(".reasoning summary").click()
    place = "document.querySelector('.transcript').scrollTop"
    before = page.evaluate(place)
    assert before > 0
    page.click(".rail >> text=中文")
    expect(read.locator("summary")).to_have_text("思考过程")
    expect(read.locator("[data-copy]")).to_have_text("复制")
    assert page.evaluate(place) == before
    expect(read.locator("details[open]")).to_be_visible()
