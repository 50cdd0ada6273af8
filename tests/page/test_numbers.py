"""Numbers of sources in the page: from [1] on, while an answer comes, whole, in the list, and copied."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.stage import Stage, ask, conversation_id, staged

pytestmark = pytest.mark.slow


async def ground(_conversation: str, _question: str) -> list[object]:
    names = ("north", "east", "south", "west")
    return [{"id": f"{name}.md", "title": f"{name}.md", "text": f"All of the {name}."} for name in names]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path / "data", more={"ground": ground}) as running:
        yield running


def test_an_answer_begins_with_one_in_everything_that_people_see(
    browser: Browser, page: Page, stage: Stage
) -> None:
    first, last = stage.gate(), stage.gate()
    stage.says("All of the south [", "3", "]", first, " and the east [2], the south", last, " [3].")
    ask(page, "Where?")
    stage.reach(first)
    expect(page.locator(".live .text")).to_have_text("All of the south")  # a parenthesis may follow: not yet
    stage.open(first)
    stage.reach(last)
    live = page.locator(".live .text")
    for _ in ("as it comes", "after a reload"):
        expect(live).to_have_text("All of the south 1 and the east 2, the south")
        page.hover(".live .cite >> nth=1")
        expect(page.locator(".cite-tip")).to_have_text("east.mdAll of the east.")
        page.reload()
    page.click(".live .cite >> nth=0")
    expect(page.locator(".panel .sources li.cited")).to_have_text("south.mdAll of the south.south.md")
    stage.open(last)
    whole = page.locator(".entry.assistant:not(.live) .text")
    for _ in ("as it comes", "after a reload"):
        expect(whole).to_have_text("All of the south 1 and the east 2, the south 1.")
        expect(page.locator(".live")).to_have_count(0)
        expect(page.locator(".entry")).to_have_count(2)
        page.reload()
    page.hover(".cite >> nth=0")
    expect(page.locator(".cite-tip")).to_have_text("south.mdAll of the south.")
    page.click("text=Sources (2)")
    listed = page.locator(".panel .panel-body > .sources > li")
    expect(listed).to_have_text(["south.mdAll of the south.south.md", "east.mdAll of the east.east.md"])
    assert [each.get_attribute("value") for each in listed.all()] == ["1", "2"]
    page.click("text=Also read, not cited (2)")
    rest = page.locator(".panel details .sources > li")
    assert [each.get_attribute("value") for each in rest.all()] == ["3", "4"]
    expect(rest.first).to_contain_text("north.md")
    page.evaluate(
        "() => { Object.defineProperty(navigator, 'clipboard', {configurable: true, value:"
        " {writeText: async (words) => { window.copied = words }}}) }"
    )
    page.hover(".entry.assistant")
    page.click(".entry.assistant button[aria-label=Copy]")
    expect(page.locator(".notice")).to_contain_text("Copied")
    said = "All of the south [1] and the east [2], the south [1]."
    assert page.evaluate("window.copied") == said
    with page.expect_download() as download:
        page.hover(".row.chosen")
        page.click(".row.chosen .menu .icon-button")
        page.click("text=Export Markdown")
    assert said in Path(download.value.path()).read_text(encoding="utf-8")
    plain = page.request.get(f"{stage.url}/plain/{conversation_id(page)}").text()
    assert said in plain
    assert plain.index("south.md") < plain.index("east.md") < plain.index("north.md")
