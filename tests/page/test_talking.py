"""Asking and being answered in the page."""

import json
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from dialoom.apps.geo.picture import png
from dialoom.conversation import TextEntry
from dialoom.llm import FilePart
from dialoom.tools import ToolResult, tool
from tests.page.stage import BOUND, Stage, ask, card, conversation_id, staged, text

pytestmark = pytest.mark.slow


def test_a_question_is_answered_and_still_there_after_a_reload(page: Page, stage: Stage) -> None:
    stage.says("Five ", "**working** days")
    ask(page, "How long?")
    expect(page.locator(".entry.assistant .text")).to_have_text("Five working days")
    page.reload()
    expect(page.locator(".entry.user .bubble")).to_have_text("How long?")
    expect(page.locator(".entry.assistant strong")).to_have_text("working")
    assert [entry.content for entry in stage.entries(conversation_id(page))] == [
        "How long?",
        "Five **working** days",
    ]


def test_an_enter_of_an_input_method_sends_nothing(page: Page, context: BrowserContext, stage: Stage) -> None:
    page.click(".composer textarea")
    wire = context.new_cdp_session(page)
    wire.send("Input.imeSetComposition", {"text": "ni", "selectionStart": 2, "selectionEnd": 2})
    wire.send(
        "Input.dispatchKeyEvent",
        {"type": "rawKeyDown", "key": "Process", "code": "Enter", "windowsVirtualKeyCode": 229},
    )
    wire.send("Input.insertText", {"text": "你好"})
    assert stage.provider.requests == []
    assert page.input_value(".composer textarea") == "你好"
    stage.says("hello")
    page.wait_for_timeout(80)  # an Enter this soon after a composition ends is the input method's own
    page.keyboard.press("Enter")
    expect(page.locator(".entry.assistant .text")).to_have_text("hello")
    assert [request.messages[-1].text for request in stage.provider.requests] == ["你好"]


@pytest.mark.parametrize("reload_after", [0, 1, 2])
def test_a_reload_while_an_answer_comes_loses_and_doubles_nothing(
    page: Page, stage: Stage, reload_after: int
) -> None:
    gates = [stage.gate() for _ in range(3)]
    pieces = ["one ", "two ", "three ", "four"]
    stage.says(pieces[0], gates[0], pieces[1], gates[1], pieces[2], gates[2], pieces[3])
    ask(page, "Count")
    for at, gate in enumerate(gates):
        stage.reach(gate)
        if at == reload_after:
            page.reload()
            expect(page.locator(".live .text")).to_have_text("".join(pieces[: at + 1]).strip())
        stage.open(gate)
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("one two three four")
    expect(page.locator(".entry")).to_have_count(2)


def test_two_tabs_show_the_same_and_the_second_question_is_refused(
    page: Page, context: BrowserContext, stage: Stage
) -> None:
    gate = stage.gate()
    stage.says("half ", gate, "done")
    ask(page, "Hello")
    stage.reach(gate)
    other = context.new_page()
    other.goto(page.url)
    expect(other.locator(".live .text")).to_have_text("half")
    refused = other.evaluate(
        """async (id) => (await fetch(`/api/v1/conversations/${id}/messages`, {method: "POST",
        headers: {"Content-Type": "application/json"}, body: JSON.stringify({text: "again"})})).status""",
        conversation_id(page),
    )
    assert refused == 409
    stage.open(gate)
    for tab in (page, other):
        expect(tab.locator(".entry.assistant:not(.live) .text")).to_have_text("half done")


def test_twelve_tabs_all_get_their_answer(page: Page, context: BrowserContext, stage: Stage) -> None:
    gate = stage.gate()
    stage.says("begun ", gate, "and done")
    ask(page, "Hello")
    stage.reach(gate)
    tabs = [context.new_page() for _ in range(11)]
    for tab in tabs:
        tab.goto(page.url)
    for tab in tabs:
        expect(tab.locator(".live .text")).to_have_text("begun")
    stage.open(gate)
    for tab in [page, *tabs]:
        expect(tab.locator(".entry.assistant:not(.live) .text")).to_have_text("begun and done")


def test_stop_reaches_the_model_and_keeps_what_was_said(page: Page, stage: Stage) -> None:
    gate = stage.gate()
    stage.says("Once upon ", gate, "a time")
    ask(page, "Tell")
    stage.reach(gate)
    page.click("button[aria-label=Stop]")
    expect(page.locator(".entry.assistant .status")).to_have_text("Stopped before the end.")
    expect(page.locator(".entry.assistant .text")).to_have_text("Once upon")
    said = stage.entries(conversation_id(page))[-1]
    assert isinstance(said, TextEntry)
    assert said.status == "cancelled"


def test_finished_blocks_of_a_growing_answer_are_never_drawn_again(page: Page, stage: Stage) -> None:
    first, second = stage.gate(), stage.gate()
    stage.says("# One\n\nA first paragraph.\n\nSecond ", first, "grows\n\nthird ", second, "ends")
    ask(page, "Write")
    stage.reach(first)
    expect(page.locator(".live .block")).to_have_count(3)
    page.evaluate("document.querySelector('.live .block').marked = 'mine'")
    stage.open(first)
    stage.reach(second)
    expect(page.locator(".live .block")).to_have_count(4)
    assert page.evaluate("document.querySelector('.live .block').marked") == "mine"
    stage.open(second)


def test_nothing_moves_or_flashes_when_an_answer_is_whole(page: Page, stage: Stage) -> None:
    gate = stage.gate()
    stage.says("The law \\(E = mc^2\\) holds.\n\nA second paragraph", gate)
    ask(page, "Which law?")
    stage.reach(gate)
    expect(page.locator(".live .katex")).to_have_count(1)
    expect(page.locator(".live .block")).to_have_count(2)
    before = page.locator(".entry.live .block").last.bounding_box()
    height = "document.querySelector('.column').getBoundingClientRect().height"
    tall = page.evaluate(height)
    page.evaluate(
        """() => { window.bare = 0; const look = () => {
        if (document.querySelector(".katex") === null) window.bare += 1;
        requestAnimationFrame(look) }; requestAnimationFrame(look) }"""
    )
    stage.open(gate)
    expect(page.locator(".entry.assistant:not(.live) .block")).to_have_count(2)
    expect(page.locator(".live")).to_have_count(0)
    assert page.locator(".entry.assistant .block").last.bounding_box() == before
    assert page.evaluate(height) == tall
    assert page.evaluate("window.bare") == 0


def test_a_reader_who_scrolled_up_stays_there(page: Page, stage: Stage) -> None:
    gate = stage.gate()
    known = stage.conversation(*(text("user", f"line {at}") for at in range(60)))
    stage.says("more ", gate, "\n\nlines" * 40)
    page.goto(f"{stage.url}/c/{known}")
    expect(page.locator(".entry")).to_have_count(60)
    ask(page, "Go on")
    stage.reach(gate)
    expect(page.locator(".composer textarea")).to_have_value("")  # from here on the reader leads
    page.evaluate(
        """() => { window.late = (event) => event.stopImmediatePropagation();
        addEventListener("scroll", window.late, true);  // words may be there before the browser tells of it
        document.querySelector(".transcript").scrollTop = 0 }"""
    )
    stage.open(gate)
    expect(page.locator(".new-pill")).to_be_visible()
    assert page.evaluate("document.querySelector('.transcript').scrollTop") == 0
    page.evaluate("removeEventListener('scroll', window.late, true)")
    page.click(".new-pill")
    expect(page.locator(".new-pill")).to_have_count(0)


def test_regenerating_and_editing_open_versions_one_can_go_between(page: Page, stage: Stage) -> None:
    stage.says("first")
    ask(page, "Hi")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("first")
    stage.says("second")
    page.hover(".entry.assistant")
    page.click("button[aria-label='Answer again']")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("second")
    expect(page.locator(".branches")).to_have_text("2/2")
    page.click(".branch-before")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("first")
    expect(page.locator(".branches")).to_have_text("1/2")
    page.keyboard.press("Alt+ArrowRight")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("second")
    stage.says("third")
    page.hover(".entry.user")
    page.click(".edit-message")
    page.fill(".editing textarea", "Hi there")
    page.click("text=Send again")
    expect(page.locator(".entry.user .bubble")).to_have_text("Hi there")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("third")


def test_a_lost_session_keeps_the_words_and_goes_on_in_place(
    page: Page, context: BrowserContext, stage: Stage
) -> None:
    context.clear_cookies()
    ask(page, "Do not lose this")
    expect(page.locator(".signed-out")).to_be_visible()
    assert page.input_value(".composer textarea") == "Do not lose this"
    page.fill(".signed-out input", "a token that the page tests know")
    page.click("text=Sign in")
    expect(page.locator(".signed-out")).to_have_count(0)
    stage.says("kept")
    page.click(".composer textarea")
    page.keyboard.press("Enter")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("kept")


def test_days_are_those_of_the_reader(stage: Stage, browser: Browser) -> None:
    stage.conversation(text("user", "now"), title="At noon", at="2026-11-29T12:00:00Z")
    stage.conversation(text("user", "now"), title="At eight", at="2026-11-29T20:00:00Z")
    listed = {zone: groups_in(browser, stage, zone) for zone in ZONES}
    assert listed == ZONES


ZONES = {
    "America/Los_Angeles": ["Today", "At eight", "At noon"],  # 29 November, half past ten in the evening
    "Europe/Berlin": ["Yesterday", "At eight", "At noon"],  # the 30th, early
    "Asia/Shanghai": ["Today", "At eight", "Yesterday", "At noon"],
    "Pacific/Auckland": [
        "Today",
        "At eight",
        "At noon",
    ],  # the 30th began at eleven o'clock of the 29th in UTC
}


def groups_in(browser: Browser, stage: Stage, zone: str) -> list[str]:
    """Return the headings and titles of the list for a reader in `zone`, at 06:30 UTC of 30 November."""
    context = browser.new_context(timezone_id=zone, locale="en-US")
    page = context.new_page()
    page.clock.set_fixed_time("2026-11-30T06:30:00Z")
    page.goto(stage.login_url())
    expect(page.locator(".row")).to_have_count(2)
    found = page.locator(".rail-list h2, .rail-list .name").all_inner_texts()
    context.close()
    return found


def test_a_server_that_ends_during_an_answer_and_starts_again_goes_on_in_the_open_tab(
    context: BrowserContext, tmp_path: Path
) -> None:
    with staged(tmp_path / "data") as first:
        page = context.new_page()
        page.goto(first.login_url())
        gate = first.gate()
        first.says("half ", gate, "and never more")
        ask(page, "Tell")
        first.reach(gate)
        expect(page.locator(".live .text")).to_have_text("half")
    expect(page.locator(".offline")).to_be_visible()
    ask(page, "Are you there?")
    expect(page.locator(".notice")).to_have_text("The server cannot be reached.")
    expect(page.locator(".composer textarea")).to_have_value("Are you there?")
    with staged(tmp_path / "data", before=first) as again:
        again.says("the whole answer")
        expect(page.locator(".unfinished")).to_be_visible(timeout=BOUND * 1000)
        page.click("text=Go on")
        expect(page.locator(".entry.assistant:not(.live) .text").last).to_have_text("the whole answer")
        expect(page.locator(".unfinished")).to_have_count(0)


def test_a_newcomer_signs_in_with_the_code_of_the_link_and_a_wrong_one_is_told(
    context: BrowserContext, stage: Stage
) -> None:
    page = context.new_page()
    page.goto(stage.url)
    expect(page.locator(".signed-out p")).to_contain_text("Open the link")
    expect(page.locator(".offline")).to_have_count(0)
    page.fill(".signed-out input", "not the token")
    page.click("text=Sign in")
    expect(page.locator(".notices .notice").last).to_contain_text("not the server’s token")
    page.fill(".signed-out input", stage.login_url().rpartition("=")[2])
    page.click("text=Sign in")
    expect(page.locator(".signed-out")).to_have_count(0)
    stage.says("welcome")
    ask(page, "Hello")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("welcome")


def test_tool_calls_and_thoughts_are_folded_and_open(page: Page, stage: Stage) -> None:
    known = stage.conversation(
        text("user", "q"),
        text("assistant", "Answer", reasoning="I thought about it"),
        card("Sources", title="S"),
    )
    page.goto(f"{stage.url}/c/{known}")
    page.click("text=Thought")
    expect(page.locator(".reasoning .text")).to_have_text("I thought about it")


def test_what_is_copied_is_what_was_said_also_without_a_clipboard(
    stage: Stage, context: BrowserContext, page: Page
) -> None:
    known = stage.conversation(text("user", "copy *me*"))
    page.goto(f"{stage.url}/c/{known}")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true})")
    page.hover(".entry.user")
    page.click(".entry.user button[aria-label=Copy]")
    expect(page.locator(".notice")).to_contain_text("Copied")


def test_a_conversation_goes_out_as_yaml_and_comes_back(
    page: Page, stage: Stage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    known = stage.conversation(
        text("user", "退款要多久？"), card("Table", id="t", title="T", columnNames=["a"], rows=[["=1"]])
    )
    page.goto(f"{stage.url}/c/{known}")
    page.hover(".row.chosen")
    page.click(".row.chosen .menu .icon-button")
    with page.expect_download() as download:
        page.click("text=Export YAML")
    file = tmp_path_factory.mktemp("export") / "conversation.yaml"
    download.value.save_as(file)
    assert "退款要多久？" in file.read_text(encoding="utf-8")
    page.goto(stage.url)
    page.set_input_files(".welcome input[type=file]", file)
    expect(page.locator(".entry.user .bubble")).to_have_text("退款要多久？")
    expect(page.locator(".card h3")).to_have_text("T")


def test_every_request_stays_on_the_server_and_the_first_load_is_small(
    stage: Stage, context: BrowserContext
) -> None:
    page = context.new_page()
    wire = context.new_cdp_session(page)
    wire.send("Network.enable")
    sizes: list[int] = []
    wire.on("Network.loadingFinished", lambda event: sizes.append(int(event["encodedDataLength"])))
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.goto(stage.login_url())
    page.wait_for_selector(".composer")
    page.wait_for_load_state("load")
    assert [url for url in urls if not url.startswith(stage.url)] == []
    assert sum(sizes) < 250_000, json.dumps(sizes)


def test_a_picture_that_a_tool_returned_is_seen_with_its_call(
    context: BrowserContext, tmp_path: Path
) -> None:
    @tool
    async def shoot() -> ToolResult:
        """Take a picture."""
        pixels = png(np.full((4, 6, 4), 200, dtype=np.uint8))
        return ToolResult(
            content="A desk.", files=(FilePart(data=pixels, media_type="image/png", name="desk.png"),)
        )

    with staged(tmp_path, tools=(shoot,)) as stage:
        page = context.new_page()
        page.goto(stage.login_url())
        stage.provider.queue_tool_call("c1", "shoot", {})
        stage.says("I see.")
        ask(page, "Look")
        for _ in ("as it comes", "after a reload"):
            expect(page.locator(".entry.assistant .text")).to_have_text("I see.")
            page.click(".tool-call summary")
            picture = page.locator(".tool-call img")
            expect(picture).to_have_attribute("alt", "desk.png")
            expect(picture).to_have_js_property("naturalWidth", 6)
            page.reload()
