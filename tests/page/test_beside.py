"""What stands around a conversation: its title, list, panel and commands, and the pages laid over it."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from dialoom.conversation import load_yaml
from dialoom.dialog import Skill
from dialoom.llm import ProviderError, Usage
from dialoom.llm.mock import Gate
from dialoom.tools import tool
from tests.page.stage import Stage, ask, card, staged, text

pytestmark = pytest.mark.slow

PASSAGES = [
    {"index": 1, "id": "/srv/docs/refund.md#2", "title": "refund.md", "text": "Refunds. Five working days."},
    {"index": 2, "id": "hours.md", "title": "hours.md", "text": "Open from nine."},
    {"index": 3, "id": "staff.md", "title": "staff.md", "text": "Ask at the desk."},
]


HELD: list[Gate] = []


@tool
async def look_up(order: str) -> str:
    """Find an order, once the newest gate is opened."""
    HELD[-1].reached.set()
    await HELD[-1].opened.wait()
    return f"order {order} is on its way"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One server for all tests here: each has conversations of its own."""
    skills = [Skill(name="brief", description="Short answers", instructions="Say it in one sentence.")]
    with staged(tmp_path_factory.mktemp("data"), tools=[look_up], skills=skills) as running:
        yield running


@pytest.fixture(scope="module")
def page(browser: Browser, stage: Stage) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en-US")
    context.set_default_timeout(15_000)
    opened = context.new_page()
    troubles: list[str] = []
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    opened.goto(stage.login_url())
    yield opened
    assert troubles == []
    context.close()


def looked_at(page: Page, stage: Stage, *entries: object, title: str = "Prepared") -> str:
    known = stage.conversation(*entries, title=title)  # pyright: ignore[reportArgumentType] - entries, as made by `text` and `card`
    page.goto(f"{stage.url}/c/{known}")
    expect(page.locator(".entry, .card").first).to_be_visible()
    return known


def answered(page: Page, words: str) -> None:
    expect(page.locator(".entry.assistant:not(.live) .text").last).to_have_text(words)


def test_a_checkpoint_shows_what_its_step_changed_and_the_run_what_it_used(page: Page, stage: Stage) -> None:
    page.goto(stage.url)
    stage.provider.queue_text("Done.", usage=Usage(input_tokens=1200, output_tokens=34))
    ask(page, "Do it")
    answered(page, "Done.")
    page.click(".composer >> text=1,234 tokens")
    expect(page.locator(".used")).to_contain_text("1,200 read, 34 written")
    page.click(".checkpoints li >> nth=0 >> button >> nth=0")
    changes = page.locator(".changes > div")
    rounds = changes.filter(has=page.locator("dt", has_text=re.compile("^rounds$")))
    expect(rounds.locator("del")).to_have_text("0")
    expect(rounds.locator("ins")).to_have_text("1")
    expect(changes.filter(has=page.locator("dt", has_text=re.compile(r"^turn\[0\]$")))).to_contain_text(
        "Done."
    )
    expect(changes.get_by_text('"usage"')).to_have_count(0)
    changes.get_by_text(re.compile(r"^Show all \d+ lines$")).click()
    expect(changes.filter(has_text='"usage"')).to_have_count(1)
    page.click("#tab-graph")
    expect(page.locator(".graph .node-done")).to_have_text("model")
    expect(page.locator(".graph .react-flow__edge-back")).to_have_count(1)  # from the tools to the model
    before = page.url
    page.click(".checkpoints li >> nth=1 >> text=Go on from here")
    expect(page).not_to_have_url(before)
    expect(page.locator(".entry")).to_have_count(1)
    page.click("button[aria-label=Close]")


def test_a_table_is_read_large_asked_about_and_seen_as_it_is_stored(page: Page, stage: Stage) -> None:
    table = card("Table", id="t", title="Wells", columnNames=["name", "name"], rows=[["a|b", 1], ["c", 2]])
    looked_at(page, stage, text("user", "说"), table)
    page.click(".card >> text=Enlarge")
    panel = page.locator(".panel")
    expect(panel.locator(".grid-body .grid-row")).to_have_count(2)
    panel.locator("input[aria-label='Row 1']").check()
    panel.locator("text=Ask about the chosen rows (1)").click()
    assert (
        page.input_value(".composer textarea")
        == "Wells:\n\n| name | name |\n| --- | --- |\n| a\\|b | 1 |\n\n"
    )
    page.fill(".composer textarea", "")
    with page.expect_download() as download:
        panel.locator("text=JSON").click()
    assert download.value.path().read_text(encoding="utf-8").startswith("[\n")

    page.click(".card button[aria-label='Show as YAML']")
    expect(panel.locator(".yaml")).to_contain_text("columnNames")
    assert load_yaml(panel.locator(".yaml").inner_text()) == [
        {"kind": "Special", "type": "Table", "payload": table.payload}
    ]
    page.click("text=Whole conversation")
    expect(panel.locator(".yaml")).to_contain_text("content: 说")
    wide = panel.bounding_box()
    panel.locator("[role=separator]").press("ArrowLeft")
    assert wide is not None
    assert (panel.bounding_box() or wide)["width"] == pytest.approx(wide["width"] + 40, abs=2)
    page.click(".panel button[aria-label=Close]")


def test_a_number_shows_its_passage_and_sources_are_those_that_are_cited(page: Page, stage: Stage) -> None:
    asked = text("user", "When?", meta={"sources": PASSAGES})
    looked_at(
        page, stage, asked, text("assistant", "Soon."), asked, text("assistant", "Five working days [1] [2].")
    )
    answers = page.locator(".entry.assistant")
    expect(answers.first.locator("text=Sources")).to_have_count(0)
    page.hover(".cite >> nth=1")
    expect(page.locator(".cite-tip")).to_have_text("hours.mdOpen from nine.")
    page.hover(".composer")
    expect(page.locator(".cite-tip")).to_have_count(0)
    page.focus(".cite >> nth=0")
    expect(page.locator(".cite-tip mark")).to_have_text("Five working days.")
    page.keyboard.press("Enter")
    expect(page.locator(".panel .sources li.cited")).to_have_text(
        "refund.mdRefunds. Five working days.refund.md#2"
    )
    expect(page.locator(".panel mark")).to_have_text("Five working days.")
    page.click("text=Sources (2)")
    expect(page.locator(".panel > .panel-body > .sources > li")).to_have_count(2)
    page.click("text=Also read, not cited (1)")
    expect(page.locator(".panel details blockquote")).to_have_text("Ask at the desk.")
    page.click(".panel button[aria-label=Close]")


def test_commands_are_chosen_with_the_keys_alone(page: Page, stage: Stage) -> None:
    page.goto(stage.url)
    page.click(".composer textarea")
    page.keyboard.type("/")
    expect(page.locator(".commands [aria-selected=true]")).to_contain_text("/form")
    page.keyboard.press("Escape")
    expect(page.locator(".commands")).to_have_count(0)
    page.keyboard.press("Backspace")
    page.keyboard.type("/")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.input_value(".composer textarea") == "/xyz "
    page.keyboard.press("Enter")
    expect(page.locator(".card[data-type=XyzLoadCard]")).to_be_visible()
    expect(page.locator(".title h1")).to_have_text("Point file")
    expect(page.locator(".row.chosen .name")).to_have_text("Point file")
    ask(page, "/form refnud")
    expect(page.locator(".notice")).to_contain_text("refund")
    expect(page.locator(".composer textarea")).to_have_value("/form refnud")


def test_a_file_alone_is_sent_stands_as_a_link_and_stays_when_the_words_are_edited(
    page: Page, stage: Stage
) -> None:
    page.goto(stage.url)
    stage.says("read")
    page.set_input_files(
        ".composer input[type=file]",
        {"name": "a [1].md", "mimeType": "text/markdown", "buffer": b"The code is 7."},
    )
    expect(page.locator(".composer .attached li")).to_contain_text("a [1].md")
    page.click("button[aria-label=Send]")
    answered(page, "read")
    expect(page.locator(".entry.user .bubble")).to_have_text("See the attached files.")
    with page.expect_download() as download:
        page.click(".entry.user .attached a")
    assert download.value.path().read_bytes() == b"The code is 7."
    stage.says("read again")
    page.hover(".entry.user")
    page.click(".edit-message")
    page.fill(".editing textarea", "What is the code?")
    page.click("text=Send again")
    answered(page, "read again")
    expect(page.locator(".entry.user .attached a")).to_have_text("a [1].md")
    asked = stage.provider.requests[-1].messages[-1]
    assert "What is the code?\n[file: a [1].md]" in asked.text


def test_a_file_dropped_anywhere_on_the_page_is_attached_once(page: Page, stage: Stage) -> None:
    page.goto(stage.url)
    drop = """(name) => { const data = new DataTransfer();
        data.items.add(new File(["seven"], "dropped.md", {type: "text/markdown"}));
        const event = new DragEvent(name, {bubbles: true, cancelable: true, dataTransfer: data});
        document.querySelector(".welcome, .transcript").dispatchEvent(event);
        return event.defaultPrevented }"""
    assert page.evaluate(drop, "dragover") is True
    expect(page.locator(".composer.over")).to_be_visible()
    for _ in range(2):
        with page.expect_response("**/api/v1/files"):
            assert page.evaluate(drop, "drop") is True  # else the browser would leave the page
        expect(page.locator(".composer.over, .composer [aria-busy]")).to_have_count(0)
        expect(page.locator(".composer .attached li")).to_have_text("dropped.md")
    page.click(".composer .attached button")
    expect(page.locator(".composer .attached")).to_have_count(0)


def test_versions_come_with_arrows_once_they_are_answered_and_stand_together_in_the_list(
    page: Page, stage: Stage
) -> None:
    page.goto(stage.url)
    stage.says("first")
    ask(page, "A question of versions")
    answered(page, "first")
    gate = stage.gate()
    stage.says("sec", gate, "ond")
    page.hover(".entry.assistant")
    page.click("button[aria-label='Answer again']")
    stage.reach(gate)
    expect(page.locator(".live .text")).to_have_text("sec")
    stage.open(gate)
    answered(page, "second")
    expect(page.locator(".branches")).to_have_text("2/2")
    family = page.locator(".row", has_text="A question of versions")
    expect(family).to_have_count(2)
    expect(page.locator(".row.version", has_text="A question of versions").locator("time")).to_have_count(1)


def test_a_call_that_takes_its_time_is_shown_once_and_as_running(page: Page, stage: Stage) -> None:
    page.goto(stage.url)
    HELD.append(stage.gate())
    stage.provider.queue_tool_call("slow-1", "look_up", {"order": "7"})
    stage.says("found")
    ask(page, "Look order 7 up")
    stage.reach(HELD[-1])
    expect(page.locator(".tool-call")).to_have_count(1)
    expect(page.locator(".tool-call.running .tool-state")).to_have_text("running…")
    stage.open(HELD[-1])
    answered(page, "found")
    expect(page.locator(".tool-call.done")).to_have_count(1)


def test_what_goes_wrong_is_said_in_chinese_on_a_chinese_page(browser: Browser, stage: Stage) -> None:
    context = browser.new_context(locale="zh-CN")
    page = context.new_page()
    page.goto(stage.login_url())
    stage.provider.queue_events(ProviderError("auth", "HTTP 401: the key is wrong", retryable=False))
    ask(page, "你好")
    expect(page.locator(".failure p")).to_have_text("模型服务器拒绝了密钥：HTTP 401: the key is wrong")
    context.close()


def test_cards_tell_in_chinese_what_went_wrong_by_its_code(browser: Browser, stage: Stage) -> None:
    known = stage.conversation(
        card("GriddingParamCard", id="g", error="the disk is full; free some", errorCode="no_space"),
        card("Error", id="e", code="usage_limit", message="over 100 tokens; raise it"),
        card("Plot", id="p", error="nothing to draw", errorCode="of_the_future"),
        card(
            "KnowledgeBase",
            id="k",
            sources=[
                {"id": "a", "status": "failed", "error": "it is gone", "errorCode": "attachment_not_found"}
            ],
        ),
    )
    context = browser.new_context(locale="zh-CN")
    page = context.new_page()
    page.goto(stage.login_url())
    page.goto(f"{stage.url}/c/{known}")
    shown = page.locator(".card")
    expect(shown.nth(0).locator("[role=alert]")).to_have_text("服务器磁盘空间不足。")
    expect(shown.nth(1).locator(".problem")).to_contain_text("上限")
    expect(shown.nth(2).locator("[role=alert]")).to_have_text("nothing to draw")
    expect(shown.nth(3).locator("li .problem")).to_have_text("附件已不存在，请重新上传。")
    context.close()


def test_a_title_is_changed_in_the_list_and_escape_leaves_it(page: Page, stage: Stage) -> None:
    looked_at(page, stage, text("user", "hello"), title="Before")
    title = page.locator(".title h1")
    for key, written, kept in (
        ("Escape", "Not this", "Before"),
        ("Enter", "After", "After"),
        ("Tab", "", "Untitled"),
    ):
        page.hover(".row.chosen")
        page.click(".row.chosen .menu .icon-button")
        page.click("text=Rename")
        page.fill(".renaming input", written)
        page.keyboard.press(key)
        expect(page.locator(".renaming")).to_have_count(0)
        expect(title).to_have_text(kept)
        expect(page.locator(".row.chosen .name")).to_have_text(kept)


def test_between_two_conversations_there_is_no_empty_page_and_the_panel_stays(
    page: Page, stage: Stage
) -> None:
    other = stage.conversation(text("user", "the other one"), title="The other one")
    looked_at(page, stage, text("user", "this one"))
    page.click("button[aria-label=Details]")
    wide = page.locator(".centre").bounding_box()
    held: list[Route] = []
    page.route(f"**/{other}/entries*", lambda route: held.append(route))  # noqa: PLW0108 - Playwright wants a function of Python
    page.click(".row >> text=The other one")
    expect(page.locator(".title h1")).to_have_text("The other one")
    expect(page.locator(".loading")).to_be_visible()
    expect(page.locator(".welcome")).to_have_count(0)
    assert page.locator(".centre").bounding_box() == wide
    held[0].continue_()
    expect(page.locator(".entry .bubble")).to_have_text("the other one")
    page.unroute(f"**/{other}/entries*")
    page.click(".panel button[aria-label=Close]")


def test_the_title_tells_model_and_skills_and_the_list_can_be_put_away(page: Page, stage: Stage) -> None:
    looked_at(page, stage, text("user", "hello"), title="Chips")
    expect(page.locator(".title")).to_contain_text("mock: mock-model")
    page.click(".title .chip")
    page.click("dialog >> text=brief")
    expect(page.locator(".title .skill")).to_have_text("brief")
    page.keyboard.press("Escape")
    page.click("button[aria-label=Conversations]")
    expect(page.locator(".rail")).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("no such words anywhere")
    expect(page.locator(".rail-list .empty")).to_have_text("Nothing found.")
    page.fill("#search", "Chips")
    expect(page.locator(".row")).to_have_count(1)
    page.fill("#search", "")
    expect(page.locator(".row.chosen .name")).to_have_text("Chips")


def test_a_first_message_that_is_refused_is_still_there_with_its_file(page: Page, stage: Stage) -> None:
    page.goto(stage.url)
    refusal = {"status": 507, "json": {"code": "no_space", "detail": "the disk is full"}}
    page.route("**/messages", lambda route: route.fulfill(**refusal), times=1)  # pyright: ignore[reportArgumentType] - its keywords
    page.set_input_files(
        ".composer input[type=file]", {"name": "a.md", "mimeType": "text/markdown", "buffer": b"seven"}
    )
    expect(page.locator(".composer .attached a, .composer .attached button")).to_have_count(1)
    ask(page, "Keep these words")
    expect(page.locator(".notice").last).to_contain_text("the disk is full")
    assert page.input_value(".composer textarea") == "Keep these words"
    expect(page.locator(".composer .attached")).to_contain_text("a.md")
    expect(page.locator(".title h1")).to_have_text("Untitled")
    expect(page.locator(".row.chosen .name")).to_have_text("Untitled")
    stage.says("kept")
    page.click("button[aria-label=Send]")
    answered(page, "kept")
    expect(page.locator(".entry.user .attached")).to_contain_text("a.md")
    assert page.input_value(".composer textarea") == ""
    expect(page.locator(".composer .attached")).to_have_count(0)


def test_a_provider_is_switched_off_and_on_again(page: Page, stage: Stage) -> None:
    page.goto(stage.url)
    page.click(".rail >> text=Models")
    page.click("dialog input[type=checkbox]")
    expect(page.locator(".title .chip")).to_have_text("as the server chooses")
    page.click("dialog input[type=checkbox]")
    expect(page.locator(".title .chip")).to_have_text("mock: mock-model")
    page.click("dialog button[aria-label=Close]")
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator(".rail button", has_text="Models")).to_be_focused()  # where one came from
    page.keyboard.press("Enter")
    expect(page.locator("dialog input[type=checkbox]")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator(".rail button", has_text="Models")).to_be_focused()
