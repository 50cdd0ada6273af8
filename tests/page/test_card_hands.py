"""What a person does with cards that mostly show something, and what of it is there after a reload."""

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from dialoom.apps.geo.picture import png
from dialoom.conversation import prompt
from dialoom.llm import ProviderError
from tests.page.stage import Stage, ask, card, staged, text

pytestmark = pytest.mark.slow


def opened(page: Page, stage: Stage, *entries: object) -> str:
    known = stage.conversation(*entries)  # pyright: ignore[reportArgumentType] - entries, as made by `text` and `card`
    page.goto(f"{stage.url}/c/{known}")
    expect(page.locator(".card, .entry").first).to_be_visible()
    return known


def test_a_source_is_unfolded_and_leads_to_where_it_is_from(
    page: Page, context: BrowserContext, stage: Stage
) -> None:
    passages = [
        {"index": 1, "title": "a.md", "id": "/srv/docs/a.md#2", "text": "Five working days."},
        {"index": 2, "title": "Web", "text": "Open from nine.", "url": f"{stage.url}/plain"},
    ]
    opened(page, stage, card("Sources", id="s", title="Where from", sources=passages, cited=[2]))
    items = page.locator(".card .sources > li")
    expect(items.nth(1).locator(".badge")).to_have_text("cited")
    expect(items.nth(0).locator("blockquote")).to_be_hidden()
    items.nth(0).locator("summary").click()
    expect(items.nth(0).locator("blockquote")).to_have_text("Five working days.")
    expect(items.nth(0).locator(".help")).to_have_text(
        "a.md#2"
    )  # the place in the file, and no folder of ours
    items.nth(1).locator("summary").focus()
    page.keyboard.press("Enter")
    with context.expect_page() as elsewhere:
        items.nth(1).locator("a").click()
    expect(elsewhere.value).to_have_url(f"{stage.url}/plain")
    assert elsewhere.value.evaluate("window.opener") is None


def test_a_run_that_failed_is_tried_again_from_its_card(page: Page, stage: Stage) -> None:
    failed = card("Error", id="e", code="overloaded", message="busy", hint="wait", retryable=True)
    known = opened(page, stage, text("user", "Hello?"), failed)
    shown = page.locator(".card[data-type=Error]")
    expect(shown).to_contain_text("wait")
    gate = stage.gate()
    stage.says("here ", gate, "I am")
    shown.locator("text=Try again").click()
    stage.reach(gate)
    expect(page.locator(".live .text")).to_have_text("here")
    stage.open(gate)
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("here I am")
    page.reload()
    expect(page.locator(".entry.assistant .text")).to_have_text("here I am")
    assert stage.provider.requests[-1].messages[0].text == "Hello?"
    assert stage.entries(known)[-1] == text("assistant", "here I am")


def test_a_run_that_fails_again_is_told_and_can_be_tried_once_more(page: Page, stage: Stage) -> None:
    stage.provider.queue_error(ProviderError("overloaded", "busy", retryable=False))
    ask(page, "Hello?")
    expect(page.locator(".failure")).to_contain_text("busy")
    stage.says("here")
    page.click(".failure >> text=Try again")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("here")
    expect(page.locator(".failure")).to_have_count(0)


def test_a_plot_is_looked_at_large_and_at_its_true_size_with_the_keys_alone(page: Page, stage: Stage) -> None:
    pixels = np.zeros((900, 1600, 4), dtype=np.uint8)
    pixels[..., 3] = 255
    made = page.request.post(
        f"{stage.url}/api/v1/files",
        data=png(pixels),
        headers={"Content-Type": "image/png", "Origin": stage.url, "X-Filename": "map.png"},
    ).json()
    plot = card("Plot", id="p", title="Map", caption="depth in metres", imageId=made["id"])
    opened(page, stage, plot, card("Plot", id="q", title="Gone", imageId="0" * 64))
    small = page.locator(".card[data-type=Plot] img").first
    expect(small).to_have_js_property("naturalWidth", 1600)
    expect(small).to_have_attribute("alt", "depth in metres")
    page.focus(".enlarges >> nth=0")
    page.keyboard.press("Enter")
    large = page.locator("dialog.large img")
    expect(large).to_be_visible()
    inside = large.bounding_box()
    assert inside is not None
    assert inside["width"] <= 1280
    page.focus("dialog.large .picture-room button")
    page.keyboard.press("Enter")
    expect(page.locator("dialog.large button[aria-pressed=true]")).to_be_visible()
    whole = large.bounding_box()
    assert whole is not None
    assert round(whole["width"]) == 1600
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator(".enlarges").first).to_be_focused()  # where one came from


def test_parameters_that_were_applied_are_so_after_a_reload(page: Page, stage: Stage) -> None:
    items = [
        {"name": "power", "valueText": "2", "default": "2", "min": 0, "max": 10},
        {"name": "kernel", "valueText": "rbf", "default": "rbf", "options": ["rbf", "linear"]},
    ]
    known = opened(page, stage, card("ParameterSet", id="p", title="Run", items=items))
    page.fill("input[aria-label=power]", "3")
    page.reload()
    expect(page.locator("input[aria-label=power]")).to_have_value("3")  # not applied yet, and not lost
    page.select_option("select[aria-label=kernel]", "linear")
    page.click("text=Apply")
    expect(page.locator(".badge.applied")).to_be_visible()
    page.reload()
    expect(page.locator(".badge.applied")).to_be_visible()
    expect(page.locator("input[aria-label=power]")).to_have_value("3")
    expect(page.locator("select[aria-label=kernel]")).to_have_value("linear")
    told = prompt(stage.entries(known))[-1].text
    assert "power=3" in told
    assert "kernel=linear" in told


def test_columns_that_were_confirmed_are_so_after_a_reload(page: Page, stage: Stage) -> None:
    wanted = {"requiredColumns": ["depth", "age"], "previewColumns": ["tiefe", "alter"]}
    known = opened(page, stage, card("ColumnMatch", id="m", title="Columns", **wanted))
    page.select_option("select[aria-label=depth]", "tiefe")
    page.reload()
    expect(page.locator("select[aria-label=depth]")).to_have_value("tiefe")  # not confirmed yet, and not lost
    page.select_option("select[aria-label=age]", "alter")
    page.click("text=Confirm")
    expect(page.locator(".badge.confirmed")).to_be_visible()
    page.reload()
    expect(page.locator(".badge.confirmed")).to_be_visible()
    expect(page.locator(".card tr", has_text="depth")).to_contain_text("tiefe")
    expect(page.locator(".card tr", has_text="age")).to_contain_text("alter")
    expect(page.locator(".card select:enabled, .card button.primary")).to_have_count(0)
    assert "depth=tiefe, age=alter" in prompt(stage.entries(known))[-1].text


def test_a_form_leads_to_its_own_first_wrong_field(page: Page, stage: Stage) -> None:
    fields = [
        {"id": "tags", "type": "multiselect", "label": "Tags", "options": ["x", "y"], "required": True},
        {"id": "name", "label": "Name", "required": True},
    ]
    forms = [card("Form", id=name, title=name, fields=fields, inline=True) for name in ("one", "two")]
    opened(page, stage, *forms)
    second = page.locator(".card >> nth=1")
    second.locator("text=Submit").click()
    expect(second.locator("input[type=checkbox]").first).to_be_focused()
    second.locator("label:has-text('y') input").check()
    second.locator("text=Submit").click()
    expect(second.locator("[data-field=name]")).to_be_focused()


def test_a_call_that_waits_says_until_when(
    context: BrowserContext, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with staged(tmp_path_factory.mktemp("data"), approval_seconds=86_400) as stage:
        page = context.new_page()
        page.goto(stage.login_url())
        stage.provider.queue_tool_call("call-1", "refund", {"order": "7", "amount": 90})
        ask(page, "Refund order 7")
        until = page.locator(".card .until")
        expect(until).to_contain_text("Answer until")
        card_shown = page.request.get(
            f"{stage.url}/api/v1/conversations/{page.url.rpartition('/')[2]}/entries"
        )
        moment = card_shown.json()["entries"][-1]["card"]["expiresAt"]
        expected = page.evaluate(
            "(at) => new Date(at).toLocaleString('en', {dateStyle: 'medium', timeStyle: 'short'})", moment
        )
        expect(until).to_have_text(f"Answer until {expected}; then it expires.")  # tomorrow: with its day
        page.reload()
        expect(until).to_contain_text("Answer until")
        stage.says("Done.")
        page.click("text=Approve")
        expect(page.locator(".badge.approved")).to_be_visible()
        expect(until).to_have_count(0)
