"""Cards whose actions need work outside them, in the page: filled, refused, done, and kept after a reload."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from dialoom.cli.serve_geo import GEO_HANDLERS
from dialoom.llm import OfflineProvider
from dialoom.llm.messages import SourcePart
from dialoom.rag import LoadOptions, RagConfig
from dialoom.server.knowledge import KnowledgeBases
from tests.page.stage import BOUND, Stage, ask, card, conversation_id, staged

pytestmark = pytest.mark.slow

POINTS = "East,North,Height\n" + "\n".join(
    f"{x},{y},{2 * x + y}" for x in range(0, 100, 10) for y in range(0, 80, 10)
)
ARM = "The hitch arm is covered for 3 years."


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A server with knowledge bases and gridding."""
    bases = KnowledgeBases(
        tmp_path / "kb", OfflineProvider(), config=RagConfig(k=3), load=LoadOptions(), mounted={}
    )
    with staged(tmp_path / "data", more={"knowledge": bases, "card_handlers": GEO_HANDLERS}) as running:
        yield running


def opened(page: Page, stage: Stage, *cards: object) -> str:
    known = stage.conversation(*cards)  # pyright: ignore[reportArgumentType] - entries, as `card` makes them
    page.goto(f"{stage.url}/c/{known}")
    expect(page.locator(".card")).to_have_count(len(cards))
    return known


def told(page: Page, stage: Stage, words: str = "Go on") -> str:
    """Return what a model reads of the conversation when a person says `words`."""
    stage.says("seen")
    ask(page, words)
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("seen")
    return "\n".join(message.text for message in stage.provider.requests[-1].messages)


def test_a_file_of_points_is_uploaded_loaded_gridded_and_shown_as_a_map(page: Page, stage: Stage) -> None:
    page.fill(".composer textarea", "/xyz")
    page.keyboard.press("Enter")
    points = page.locator(".card[data-type=XyzLoadCard]")
    expect(points.locator("button.primary")).to_be_disabled()
    points.locator("input[type=file]").set_input_files(
        {"name": "wells.csv", "mimeType": "text/csv", "buffer": POINTS.encode("gb18030")}
    )
    expect(points).to_contain_text("wells.csv")
    selects = points.locator("label:has(> select)")
    expect(selects.filter(has_text=re.compile("^z")).locator("select")).to_have_value("Height")
    points.locator("button.primary").click()
    expect(points.locator("img.thumbnail")).to_be_visible()
    page.reload()
    expect(points.locator(".badge.loaded")).to_be_visible()
    expect(page.locator(".card[data-type=Table]")).to_contain_text("of 80")

    grid = page.locator(".card[data-type=GriddingParamCard]")
    size = grid.locator("label:has-text('Cell in x') input")
    size.fill("0.0001")
    expect(grid.locator("p.problem")).to_contain_text("nodes")
    expect(grid.locator("button.primary")).to_be_disabled()
    size.fill("5")
    grid.locator("label:has-text('Cell in y') input").fill("5")
    grid.locator("button.primary").click()
    expect(page.locator(".card[data-type=Plot] img")).to_be_visible(timeout=BOUND * 1000)  # another process
    expect(page.locator(".card[data-type=WorkflowStatus] li.done")).to_have_count(3)
    page.reload()
    expect(grid.locator("img.map")).to_be_visible()
    expect(grid.locator(".contours path")).to_have_count(12)  # z goes from 0 to about 250
    expect(grid.locator("figcaption")).to_contain_text("contours every 20")
    expect(grid.locator(".chips")).to_contain_text("wells.csv.asc")
    sent = told(page, stage)
    assert 'point file "wells.csv" loaded: file=wells.csv, x=East, y=North, z=Height, points=80]' in sent
    assert "method=idw, cell=5.0×5.0, nodes=19×15" in sent
    assert "columnNames" not in sent


def test_a_file_that_holds_no_points_is_refused_on_its_card(page: Page, stage: Stage) -> None:
    opened(page, stage, card("XyzLoadCard", id="x", title="Points"))
    points = page.locator(".card[data-type=XyzLoadCard]")
    points.locator("input[type=file]").set_input_files(
        {"name": "photo.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n" + bytes(64)}
    )
    expect(points.locator("p.problem, p.warning").first).to_be_visible()
    expect(points.locator("button.load")).to_be_disabled()
    points.locator("input[type=file]").set_input_files(
        {"name": "names.csv", "mimeType": "text/csv", "buffer": "x,y,z\na,b,c\n东,北,高\n".encode()}
    )
    expect(points).to_contain_text("names.csv")
    for axis in "xyz":
        points.locator("label", has_text=re.compile(f"^{axis}")).locator("select").select_option(axis)
    expect(points.locator("button.load")).to_be_disabled()  # it would load what is stored, not what is shown
    points.locator("text=Apply").click()
    expect(points.locator("button.load")).to_be_enabled()
    points.locator("button.load").click()
    expect(points.locator("p.problem")).to_be_visible()
    expect(page.locator(".badge.loaded")).to_have_count(0)


def test_a_grid_that_cannot_be_computed_says_why_on_its_card(page: Page, stage: Stage) -> None:
    opened(page, stage, card("GriddingParamCard", id="g", title="Map", method="idw"))
    page.click(".card button.primary")
    expect(page.locator(".card p.problem")).to_contain_text("no extent or no cell")


def test_a_knowledge_card_takes_a_document_in_and_answers_from_it(page: Page, stage: Stage) -> None:
    made = stage.post(page, "/kb", '{"name": "Warranty"}', "application/json")
    opened(page, stage, card("KnowledgeBase", id="k", kbId=made["id"], title="Warranty"))
    shown = page.locator(".card[data-type=KnowledgeBase]")
    shown.locator("input[type=url]").fill("ftp://a.example/x")
    shown.locator("input[type=url]").press("Enter")
    expect(shown.locator("p.problem")).to_contain_text("http")
    shown.locator("input[type=file]").set_input_files(
        {"name": "arm.md", "mimeType": "text/markdown", "buffer": ARM.encode()}
    )
    expect(shown.locator("li.done")).to_contain_text("arm.md")
    expect(shown).to_contain_text("Documents: 1,")
    shown.locator("text=Answer from this base").click()
    expect(shown.locator("text=Answer without this base")).to_be_visible()
    page.reload()
    expect(shown.locator("li.done")).to_contain_text("arm.md")
    sent = told(page, stage, "For how long is the hitch arm covered?")
    assert "knowledge base: Warranty (docs=1, chunks=1)]" in sent
    assert "answers-from-sources" in sent
    parts = stage.provider.requests[-1].messages[-1].parts
    assert [part.text for part in parts if isinstance(part, SourcePart)] == [ARM]
    shown.locator("button[aria-label^=Remove]").click()
    expect(shown.locator("li")).to_have_count(0)


def test_a_document_that_cannot_be_read_is_told_in_chinese_on_a_chinese_page(
    browser: Browser, page: Page, stage: Stage
) -> None:
    stage.post(page, "/kb", '{"name": "Warranty"}', "application/json")
    context = browser.new_context(locale="zh-CN")
    chinese = context.new_page()
    chinese.goto(stage.login_url())
    chinese.click(".rail >> text=知识库")
    chinese.locator("dialog input[type=file]").set_input_files(
        {"name": "a.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7 and nothing else"}
    )
    expect(chinese.locator("dialog .problem")).to_contain_text("文件已损坏，无法读取：a.pdf")
    context.close()


def test_a_run_is_stopped_from_the_card_that_tells_of_it(page: Page, stage: Stage) -> None:
    gate = stage.gate()
    stage.says("Once upon ", gate, "a time")
    ask(page, "Tell")
    stage.reach(gate)
    told_in = conversation_id(page)
    run = page.request.get(f"{stage.url}/api/v1/conversations/{told_in}/entries").json()["run"]["id"]
    steps = [{"id": "a", "displayName": "Tell", "status": "running"}, {"id": "b", "displayName": "End"}]
    opened(page, stage, card("WorkflowStatus", id="w", title="Job", runId=run, steps=steps))
    page.click(".card >> text=Cancel")
    expect(page.locator(".badge.cancelled")).to_be_visible()
    expect(page.locator(".card li.skipped")).to_have_count(2)
    page.goto(f"{stage.url}/c/{told_in}")
    expect(page.locator(".entry.assistant .status")).to_have_text("Stopped before the end.")


def test_a_workflow_that_is_over_is_said_to_be_and_one_of_no_run_is_refused(page: Page, stage: Stage) -> None:
    steps = [{"id": "a", "displayName": "Load", "status": "running", "progress": 0.5}]
    opened(page, stage, card("WorkflowStatus", id="w", title="Job", runId="gone", steps=steps))
    page.click(".card >> text=Cancel")
    expect(page.locator(".card p.problem")).not_to_be_empty()
    page.reload()
    expect(page.locator(".card progress")).to_be_visible()
    assert "workflow: Job (0/1, Load: running)]" in told(page, stage)
